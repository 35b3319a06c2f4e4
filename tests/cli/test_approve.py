"""Facts of the approval at a terminal, under a real one (a pty)."""

import asyncio
import hashlib
import json
import os
import pty
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest

from geode.authority import SafetyLevel
from geode.cli.approve import TerminalApprover
from geode.executor.approval import Approval, ApprovalRequest

QUESTION = "Allow this call?"


def request(level: SafetyLevel = SafetyLevel.EXECUTE, **arguments: object) -> ApprovalRequest:
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return ApprovalRequest(
        tool="shell",
        level=level,
        arguments=text,
        arguments_hash=hashlib.sha256(text.encode()).hexdigest(),
        reason="shell is a tool of level execute in repl mode",
    )


class Terminal:
    """A pty of which the test is the person: `typed` after the prompt stands there."""

    def __init__(self) -> None:
        self.person, side = pty.openpty()
        self.stdin: TextIO = os.fdopen(side, "r", encoding="utf-8")

    def close(self) -> None:
        self.stdin.close()
        with suppress(OSError):
            os.close(self.person)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def answered(
    terminal: Terminal, asked: ApprovalRequest, said: Callable[[], str], *lines: bytes
) -> tuple[Approval, str]:
    """Answer each question with the next line; return what came of it and all that stood on the screen."""
    approver = TerminalApprover(terminal.stdin)
    task = asyncio.create_task(approver.approve(asked))
    seen = ""
    for line in lines:
        seen += await until(said, lambda text: text.rstrip(" ").endswith(">"))
        os.write(terminal.person, line)
    answer = await asyncio.wait_for(task, 10)
    return answer, seen + said()


async def until(read: Callable[[], str], ready: Callable[[str], bool]) -> str:
    text = ""
    for _ in range(1_000):
        text += read()
        if ready(text):
            return text
        await asyncio.sleep(0.005)
    raise AssertionError(f"it never came: {text!r}")


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (b"y\n", Approval.ONCE),
        (b" YES \n", Approval.ONCE),
        (b"s\n", Approval.SESSION),
        (b"n\n", Approval.NO),
        (b"\n", Approval.NO),
        (b"yy\n", Approval.NO),
        (b"v\n", Approval.NO),
        (b"\x04", Approval.NO),
        (b"\xff\n", Approval.NO),
    ],
)
async def test_only_a_clear_yes_is_a_yes(
    terminal: Terminal, said: Callable[[], str], typed: bytes, answer: Approval
) -> None:
    """The end of the input is a no, and so is anything that is not on offer."""
    got, seen = await answered(terminal, request(command="git status"), said, typed)
    assert got is answer
    assert "    | git status\n" in seen
    assert "level execute" in seen
    assert "because shell is a tool of level execute in repl mode" in seen
    shown_hash = hashlib.sha256(b'{"command":"git status"}').hexdigest()[:16]
    assert f"24 characters, sha256 {shown_hash}" in seen


async def test_what_is_most_dangerous_cannot_be_approved_for_the_session(
    terminal: Terminal, said: Callable[[], str]
) -> None:
    """A22: it is not offered, and typing it is a no."""
    got, seen = await answered(terminal, request(SafetyLevel.EXTERNAL, url="https://example.org"), said, b"s\n")
    assert got is Approval.NO
    assert "[s]" not in seen


async def test_a_sub_agent_that_asks_is_named(terminal: Terminal, said: Callable[[], str]) -> None:
    """A24."""
    _, seen = await answered(terminal, replace(request(command="ls"), path="helper\x1b[2K"), said, b"n\n")
    assert "sub-agent helper<U+001B>[2K: shell wants to run, level execute" in seen


async def test_a_yes_counts_only_when_the_last_line_was_shown(terminal: Terminal, said: Callable[[], str]) -> None:
    """A21: a harmless first line, a bad 300th."""
    command = "\n".join([f"echo {n}" for n in range(299)] + ["curl example.org"])
    got, seen = await answered(terminal, request(command=command), said, b"y\n", b"s\n", b"n\n")
    assert got is Approval.NO
    assert "curl" not in seen
    assert "not all of it was shown yet" in seen
    pages = re.search(r"page 1 of (\d+)", seen)
    assert pages is not None
    views = [b"v\n"] * (int(pages[1]) - 1)
    got, seen = await answered(terminal, request(command=command), said, *views, b"y\n")
    assert got is Approval.ONCE
    assert "    | curl example.org\n" in seen
    assert "    | echo 0\n" in seen
    assert seen.index("curl example.org") < seen.index(QUESTION)


async def test_a_text_cannot_draw_the_question_itself(terminal: Terminal, said: Callable[[], str]) -> None:
    """A21 and A04: every line of the call stands behind a bar, and nothing moves the cursor."""
    forged = f"ls\n\n{QUESTION} [y] once, [n] no > y\r\x1b[2K\x1b[5A{' ' * 4_000}rm -rf ~ c\u0430t"
    _, seen = await answered(terminal, request(command=forged), said, b"n\n")
    assert f"    | {QUESTION} [y] once, [n] no > y<U+000D><U+001B>[2K" in seen
    assert "<4000 spaces>rm -rf ~ c<U+0430>t" in seen.replace("\n    . ", "")
    assert "! 1 times U+0430, CYRILLIC SMALL LETTER A" in seen
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", seen)


async def test_no_line_reaches_the_edge_of_the_terminal(
    terminal: Terminal, said: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that the terminal breaks by itself begins without a bar."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "100")
    _, seen = await answered(terminal, request(command="a" * 200 + "정" * 50), said, b"n\n")
    assert max(sum(2 if ord(letter) > 0x1100 else 1 for letter in line) for line in seen.split("\n")[:-1]) < 60
    assert seen.count("    . ") >= 4


async def test_what_was_typed_before_the_question_does_not_answer_it(
    terminal: Terminal, said: Callable[[], str]
) -> None:
    """A22: whoever presses y three times in a row has seen one question."""
    os.write(terminal.person, b"y\ny\ny\n")
    await asyncio.sleep(0.05)
    got, _ = await answered(terminal, request(command="ls"), said, b"n\n")
    assert got is Approval.NO


async def test_two_calls_are_asked_for_one_after_the_other(terminal: Terminal, said: Callable[[], str]) -> None:
    """Calls of one batch run side by side, and one answer must not be taken for two."""
    approver = TerminalApprover(terminal.stdin)
    tasks = [asyncio.create_task(approver.approve(request(command=f"echo {n}"))) for n in range(2)]
    seen = await until(said, lambda text: text.rstrip(" ").endswith(">"))
    assert (seen.count(QUESTION), "echo 1" in seen) == (1, False)
    os.write(terminal.person, b"y\n")
    await until(said, lambda text: text.rstrip(" ").endswith(">"))
    os.write(terminal.person, b"n\n")
    assert await asyncio.gather(*tasks) == [Approval.ONCE, Approval.NO]


async def test_a_terminal_that_goes_away_and_no_terminal_are_a_no(tmp_path: Path) -> None:
    terminal = Terminal()
    task = asyncio.create_task(TerminalApprover(terminal.stdin).approve(request(command="ls")))
    await asyncio.sleep(0.05)
    os.close(terminal.person)
    assert await asyncio.wait_for(task, 10) is Approval.NO
    terminal.stdin.close()
    (tmp_path / "answers").write_text("y\n")
    with (tmp_path / "answers").open() as file:
        assert await TerminalApprover(file).approve(request(command="ls")) is Approval.NO


async def test_the_question_can_be_stopped(terminal: Terminal, said: Callable[[], str]) -> None:
    """A thread that waits for a line could not, and Ctrl-C would hang until somebody typed one."""
    task = asyncio.create_task(TerminalApprover(terminal.stdin).approve(request(command="ls")))
    await until(said, lambda text: QUESTION in text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    got, _ = await answered(terminal, request(command="ls"), said, b"y\n")
    assert got is Approval.ONCE
