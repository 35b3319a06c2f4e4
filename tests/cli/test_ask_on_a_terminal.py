"""`geode ask` as a person at a terminal has it: the installed command on a pty."""

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geode.records.timeline import read_timeline
from tests.done.command import GEODE, environment

QUESTION = "Allow this call?"
TIME_LIMIT_S = 60
POLICY = """schema: geode.policy/1
rules:
  - {ask: list_files, why: the owner wants to see it}
"""


class Asking:
    """One `geode ask` whose standard streams are a terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.root.mkdir()
        (self.root / "policy.yaml").write_text(POLICY)
        (folder / "workspace").mkdir()
        (folder / "workspace" / "notes.txt").write_text("hello")
        self.start("ask", "Look around")

    def start(self, *arguments: str) -> None:
        """Start the command on a terminal of its own."""
        self._person, side = pty.openpty()
        self.process = subprocess.Popen(
            [str(GEODE), *arguments, "--root", str(self.root), "--workspace", str(self.folder / "workspace")],
            stdin=side,
            stdout=side,
            stderr=side,
            env=environment(self.folder),
            cwd=self.folder,
            start_new_session=True,
        )
        os.close(side)
        self.screen = ""

    def until(self, text: str, count: int = 1) -> None:
        """Read on until `text` stands on the screen `count` times."""
        deadline = time.monotonic() + TIME_LIMIT_S
        while self.screen.count(text) < count:
            assert time.monotonic() < deadline, self.screen
            if select.select([self._person], [], [], 0.1)[0]:
                try:
                    self.screen += os.read(self._person, 65_536).decode("utf-8", "replace")
                except OSError:  # the other side is closed
                    assert self.screen.count(text) >= count, self.screen

    def type(self, text: str) -> None:
        os.write(self._person, text.encode())

    def ended(self) -> int:
        while self.process.poll() is None:
            try:
                self.screen += os.read(self._person, 65_536).decode("utf-8", "replace")
            except OSError:
                break
        return self.process.wait(TIME_LIMIT_S)

    def events(self, kind: str) -> list[dict[str, object]]:
        (session,) = (self.root / "sessions").iterdir()
        return [dict(body) for body in read_timeline(session / "timeline.jsonl") if body["kind"] == kind]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._person)


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    made = Asking(tmp_path)
    yield made
    made.close()


@pytest.mark.slow
def test_a_yes_lets_the_call_go_and_the_timeline_says_who_was_asked(asking: Asking) -> None:
    asking.until(QUESTION)
    assert "list_files wants to run, level read" in asking.screen
    assert "because a rule asks for it [policy.yaml, rules.0: ask list_files" in asking.screen
    asking.type("y\n")
    assert asking.ended() == 0, asking.screen
    assert "notes.txt" in asking.screen
    (approval,) = asking.events("approval_decided")
    assert (approval["answer"], approval["tool"]) == ("once", "list_files")


@pytest.mark.slow
def test_a_no_is_told_to_the_model_and_stands_in_the_timeline_with_the_rule(asking: Asking) -> None:
    asking.until(QUESTION)
    asking.type("n\n")
    asking.ended()
    call = next(body for body in asking.events("call_ended") if body["tool"] == "list_files")
    assert (call["stage"], call["end"]) == ("approval", "not_started")
    assert "nobody approved this call" in str(call["result"])


@pytest.mark.slow
def test_ctrl_c_at_the_question_ends_it_at_once_and_nothing_ran(asking: Asking) -> None:
    """Without a key pressed after it."""
    asking.until(QUESTION)
    began = time.monotonic()
    asking.process.send_signal(signal.SIGINT)
    assert asking.ended() == 130, asking.screen
    assert time.monotonic() - began < 10
    assert "geode sessions resume" in asking.screen
    (call,) = asking.events("call_ended")
    assert (call["stage"], call["end"]) == ("cancelled", "not_started")


@pytest.mark.slow
def test_a_session_that_is_resumed_at_a_terminal_asks_there(asking: Asking) -> None:
    """Its mode says that somebody attends, so somebody is asked."""
    asking.until(QUESTION)
    asking.process.send_signal(signal.SIGINT)
    asking.ended()
    asking.close()
    (session,) = (asking.root / "sessions").iterdir()
    (asking.root / "policy.yaml").write_text(POLICY.replace("list_files", "search"))
    asking.start("sessions", "resume", session.name)
    asking.until(QUESTION)
    asking.type("y\n")
    asking.ended()
    assert [approval["answer"] for approval in asking.events("approval_decided")] == ["once"]
