"""The person at the terminal approves a call, after all of it was shown."""

import asyncio
import json
import os
import shutil
import sys
import termios
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TextIO

import typer

from geode.authority import DataClass
from geode.cli.shown import shown
from geode.executor.approval import STORED_S, Approval, ApprovalRequest

_ANSWER_BYTES_MAX = 4_096
_KEPT_ROWS = 8  # what is said around the text
_ROWS_MIN, _COLUMNS_MIN = 5, 40


def person_here() -> "TerminalApprover | None":
    """Return who approves if a person sees what is asked and can answer: both streams are terminals. Else nobody."""
    attended = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    return TerminalApprover() if attended else None


class TerminalApprover:
    """Asks at a terminal, one call after the other. The end of the input, Ctrl-C, and no terminal mean no.

    What was typed before the question stood there does not answer it, and a yes counts only when the whole text was
    shown: a harmless first page says nothing of the last one.
    """

    def __init__(self, stdin: TextIO | None = None) -> None:
        self._stdin = stdin if stdin is not None else sys.stdin
        self._one_at_a_time = asyncio.Lock()

    async def approve(self, request: ApprovalRequest) -> Approval:
        """See `geode.executor.approval.Approver`."""
        async with self._one_at_a_time:
            if self._stdin is None or not self._stdin.isatty():
                return Approval.NO
            size = shutil.get_terminal_size()
            pages = list(_pages(request, max(size.columns, _COLUMNS_MIN), max(size.lines - _KEPT_ROWS, _ROWS_MIN)))
            for number, page in enumerate(pages, 1):
                _say(*page)
                if number < len(pages):
                    answer = await self._asked(f"page {number} of {len(pages)}: [v] view the next one, [n] no")
                    while answer in ("y", "yes", "s"):
                        answer = await self._asked("not all of it was shown yet: [v] view the next page, [n] no")
                    if answer != "v":
                        return Approval.NO
            return await self._answer(request)

    async def _answer(self, request: ApprovalRequest) -> Approval:
        choice = "[y] once, "
        if request.may_be_stored:
            choice += f"[s] exactly this for {STORED_S / 60:.0f} minutes of this session, "
        match await self._asked(f"Allow this call? {choice}[n] no"):
            case "y" | "yes":
                return Approval.ONCE
            case "s" if request.may_be_stored:
                return Approval.SESSION
            case _:
                return Approval.NO

    async def _asked(self, question: str) -> str:
        """Ask, and return the line that is typed from then on, in small letters; nothing at the end of the input."""
        handle = self._stdin.fileno()
        with suppress(termios.error):
            termios.tcflush(handle, termios.TCIFLUSH)
        typer.echo(f"{question} > ", nl=False, err=True)
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            loop.remove_reader(handle)
            try:
                data = os.read(handle, _ANSWER_BYTES_MAX)
            except OSError:  # the terminal is gone
                data = b""
            if not ready.done():
                ready.set_result(data)

        # Not in a thread: one that waits for a line cannot be stopped, and would keep the process after Ctrl-C.
        loop.add_reader(handle, read)
        try:
            answer = await ready
        except asyncio.CancelledError:
            typer.echo(err=True)  # what is said next stands on a line of its own
            raise
        finally:
            loop.remove_reader(handle)
        return answer.decode("utf-8", "replace").strip().lower()


def _pages(request: ApprovalRequest, columns: int, rows: int) -> Iterator[Sequence[str]]:
    """Yield the question in pieces that a terminal of this size shows at once."""
    data = "" if request.data_class is DataClass.NONE else f", {request.data_class.name.lower()} data"
    who = f"sub-agent {_plain(request.path)}: " if request.path else ""
    head = [
        "",
        f"{who}{_plain(request.tool)} wants to run, level {request.level.name.lower()}{data}",
        *_folded(f"because {_plain(request.reason)}", columns, "  "),
    ]
    body, warnings = _body(request, columns)
    foot = [f"{len(request.arguments)} characters, sha256 {request.arguments_hash[:16]}"]
    foot += [line for warning in warnings for line in _folded(f"! {warning}", columns, "  ")]
    lines = [*head, *body, *foot]
    for start in range(0, len(lines), rows):
        yield lines[start : start + rows]


def _body(request: ApprovalRequest, columns: int) -> tuple[list[str], list[str]]:
    """Return each argument under its name. `|` begins a line of the text, `.` goes on with a long one."""
    lines: list[str] = []
    warnings: list[str] = []
    for name, value in json.loads(request.arguments).items():
        said = shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        lines.append(f"  {_plain(name)}:")
        for line in said.lines:
            first, *more = _folded(line, columns - 6, "")
            lines += [f"    | {first}", *(f"    . {part}" for part in more)]
        warnings += said.warnings
    return lines, list(dict.fromkeys(warnings))


def _folded(text: str, columns: int, indent: str) -> list[str]:
    """Break `text` where it would reach the edge, so that no terminal breaks it elsewhere."""
    lines, width = [""], 0
    for letter in text:
        wide = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if width + wide > columns - len(indent) - 1:
            lines.append("")
            width = 0
        lines[-1] += letter
        width += wide
    return [indent + line for line in lines]


def _plain(text: str) -> str:
    return " ".join(shown(text).lines)


def _say(*lines: str) -> None:
    for line in lines:
        typer.echo(line, err=True)
