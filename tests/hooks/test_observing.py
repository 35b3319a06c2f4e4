"""Facts of commands that are told what happened: what they hear, that nobody waits for them, and that they end."""

import json
import os
from pathlib import Path

import pytest

from geode.events import CallEnded, ContextCompacted, Event, Notice, SessionOpened
from geode.hooks.command import CommandPlace
from geode.hooks.observing import CommandObservers, ObserverEntry, Watching
from tests.doubles.processes import wait_until

OPENED = SessionOpened(mode="repl", scaffold_id="s", model="m", plan_hash="p", resumed=False)


def notice(about: str) -> Notice:
    return Notice(about=about, text="look")


def ended(tool: str) -> CallEnded:
    return CallEnded(
        turn=1, round=1, call_id="c", tool=tool, arguments="{}", end="succeeded", is_error=False, stage="",
        elapsed_ms=1.0, result="", result_chars=0,
    )  # fmt: skip


class Bench:
    """Observers in a folder; a command `heard NAME` there keeps what it was told in NAME."""

    def __init__(self, folder: Path, path: tuple[str, ...] = (), close_limit_s: float = 20) -> None:
        self.folder, self._path, self._close_limit_s = folder, path, close_limit_s
        self.noted: list[tuple[str, str]] = []
        self._watching: list[Watching] = []
        self.observers = CommandObservers((), self.noted_by)

    def noted_by(self, about: str, text: str) -> None:
        self.noted.append((about, text))

    def watch(
        self, event: str, command: str, *, matcher: str = "", time_limit_s: float = 20, may_run: bool = True
    ) -> None:
        place = CommandPlace(
            session_id="01S", mode="repl", workspace=self.folder, timeline=self.folder / "t",
            environment=dict(os.environ),
        )  # fmt: skip
        entry = ObserverEntry(
            name=f"{event}[{len(self._watching)}.0]", event=event, command=command, time_limit_s=time_limit_s,
            matcher=matcher,
        )  # fmt: skip
        self._watching.append(Watching(entry=entry, place=place, may_run=lambda: may_run))
        self.observers = CommandObservers(self._watching, self.noted_by, self._path, close_limit_s=self._close_limit_s)

    def tell(self, *events: Event) -> None:
        for event in events:
            self.observers(event)

    def heard(self, name: str) -> list[dict[str, object]]:
        file = self.folder / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def keep(name: str) -> str:
    return f"cat >> {name}; echo >> {name}"


def test_a_session_is_heard_from_its_start_to_its_end_in_order(bench: Bench) -> None:
    """The names of Claude Code, with the keys that its hooks know, and the event as our timeline has it."""
    bench.watch("SessionStart", keep("start"), matcher="startup")
    bench.watch("SessionStart", keep("resumed"), matcher="resume")
    bench.watch("Notification", keep("notices"), matcher="sandbox|policy")
    bench.watch("SessionEnd", keep("end"))
    bench.tell(OPENED, notice("sandbox"), notice("other"), notice("policy"))
    bench.observers.close()
    (start,) = bench.heard("start")
    assert start["hook_event_name"] == "SessionStart"
    assert (start["session_id"], start["source"], start["model"]) == ("01S", "startup", "m")
    assert start["event"] == {"kind": "session_opened", "mode": "repl", "scaffold_id": "s", "model": "m",
                              "plan_hash": "p", "resumed": False}  # fmt: skip
    assert [told["notification_type"] for told in bench.heard("notices")] == ["sandbox", "policy"]
    assert [told["reason"] for told in bench.heard("end")] == ["other"]
    assert (bench.heard("resumed"), bench.noted) == ([], [])


def test_any_event_can_be_heard_by_its_own_name(bench: Bench) -> None:
    bench.watch("call_ended", keep("calls"), matcher="Bash")
    bench.watch("PostCompact", keep("compact"))
    bench.tell(OPENED, ended("shell"), ended("read_file"), ContextCompacted(turn=1, round=2, elided_rounds=1))
    bench.observers.close()
    (call,) = bench.heard("calls")
    assert isinstance(call["event"], dict)
    assert (call["hook_event_name"], call["event"]["tool"]) == ("call_ended", "shell")
    assert len(bench.heard("compact")) == 1


def test_a_sub_agent_starts_and_stops_by_other_names(tmp_path: Path) -> None:
    """Its session is a part of another one; whoever counts sessions must not count it."""
    bench = Bench(tmp_path, path=("helper",))
    for event in ("SessionStart", "SessionEnd", "SubagentStart", "SubagentStop"):
        bench.watch(event, keep(event))
    bench.tell(OPENED)
    bench.observers.close()
    assert (bench.heard("SessionStart"), bench.heard("SessionEnd")) == ([], [])
    assert [bench.heard(name)[0]["agent_type"] for name in ("SubagentStart", "SubagentStop")] == ["helper", "helper"]


def test_nobody_waits_for_a_command_until_the_end(bench: Bench) -> None:
    """The event is put down; a command that never looks at it costs the session nothing."""
    bench.watch("notice", "while [ ! -e go ]; do sleep 0.01; done; touch done")
    bench.tell(OPENED, notice("x"))
    assert not (bench.folder / "done").exists(), "told, and gone on"
    (bench.folder / "go").touch()
    bench.observers.close()
    assert (bench.folder / "done").exists()


def test_no_command_outlives_its_session(tmp_path: Path) -> None:
    """Nor what it left running in the background; and the end does not wait for ever."""
    bench = Bench(tmp_path, close_limit_s=0.5)
    bench.watch("notice", "sleep 600 & echo $! > child; echo $$ > own; wait", time_limit_s=900)
    bench.watch("SessionEnd", keep("end"))
    bench.tell(OPENED, notice("x"))
    wait_until(lambda: (bench.folder / "own").exists() and (bench.folder / "own").read_text().strip())
    bench.observers.close()
    pids = [int((bench.folder / name).read_text()) for name in ("child", "own")]
    wait_until(lambda: not any(alive(pid) for pid in pids))
    assert len(bench.heard("end")) == 1, "the others are heard all the same"
    ((about, text),) = bench.noted
    assert (about, "was ended" in text) == ("hook notice[0.0]", True)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo broken >&2; exit 1", "exit code 1 (broken)"),
        ("exit 2", "exit code 2"),
        ("./no_such_thing", "exit code 127"),
        ("sleep 60", "did not end within 0.3 s"),
        ("head -c 3000000 /dev/zero", "more than a hook may"),
    ],
)
def test_what_fails_is_noted_once_and_changes_nothing(bench: Bench, command: str, said: str) -> None:
    """Also an objection: what is only told has nothing to object to."""
    bench.watch("notice", command, time_limit_s=0.3 if "sleep" in command else 20)
    bench.watch("notice", keep("others"))
    bench.tell(OPENED, *(notice(str(number)) for number in range(3)))
    bench.observers.close()
    ((about, text),) = bench.noted
    assert (about, said in text) == ("hook notice[0.0]", True), text
    assert len(bench.heard("others")) == 3


def test_a_command_that_changed_since_it_was_trusted_does_not_run(bench: Bench) -> None:
    bench.watch("notice", keep("told"), may_run=False)
    bench.tell(OPENED, notice("x"))
    bench.observers.close()
    assert (bench.heard("told"), "changed since it was trusted" in bench.noted[0][1]) == ([], True)


def test_a_session_without_such_hooks_has_no_thread_and_one_that_never_opened_has_no_end(bench: Bench) -> None:
    """Most sessions have none, and thousands run in a sweep."""
    before = threads()
    bench.tell(OPENED, notice("x"))
    assert threads() == before
    bench.watch("SessionEnd", keep("end"))
    bench.observers.close()
    assert bench.heard("end") == []


def threads() -> int:
    return len(os.listdir("/proc/self/task"))
