"""A hook that is a command of the operator's: JSON on its stdin, an exit code or JSON back, in a limited time.

The command runs in the workspace, outside of any sandbox, as its owner's own program; it sees no key of ours.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from geode.hooks.outcomes import CommandEnd, NoAnswer, decision_of
from geode.hooks.points import Decision, HookEvent, HookPoint, Pass, PermissionAsked, ToolEnded, ToolProposed
from geode.hooks.vocabulary import Vocabulary
from geode.redaction import clean_text

OUTPUT_BYTES_MAX = 1_000_000
_SHELL = "/bin/sh"
_READ_BYTES = 1 << 16
_KILL_GRACE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """One entry of a hook file.

    `matcher` names tools, and is only asked at points that have one. An `observer` is never heard. `on_error_allow`
    makes a broken hook no opinion. Hooks of a higher `priority` have their say first.
    """

    name: str
    point: HookPoint
    command: str
    time_limit_s: float
    matcher: str = ""
    observer: bool = False
    on_error_allow: bool = False
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlace:
    """Where the commands of one session run, and what they are told of it."""

    session_id: str
    mode: str
    workspace: Path
    timeline: Path
    environment: Mapping[str, str]


class CommandHook:
    """A `DecisionHook` that asks a command."""

    def __init__(self, entry: CommandEntry, place: CommandPlace, vocabulary: Vocabulary) -> None:
        self._entry, self._place, self._vocabulary = entry, place, vocabulary
        self.name, self.points = entry.name, frozenset({entry.point})

    @property
    def time_limit_s(self) -> float:
        """The command's own limit, with room for ending it."""
        return self._entry.time_limit_s + _KILL_GRACE_S

    async def decide(self, event: HookEvent) -> Decision:
        """Run the command on one event.

        Raises:
            NoAnswer: if it gave none, and the entry does not say that this is no matter.
        """
        entry = self._entry
        if isinstance(event, ToolProposed | PermissionAsked | ToolEnded) and not self._vocabulary.matches(
            entry.matcher, event.tool
        ):
            return Pass()
        body = {**self._told(), **self._vocabulary.event(event, self._place.workspace)}
        end = await run_command(entry.command, json.dumps(body), self._place, entry.time_limit_s)
        if entry.observer:
            return Pass()
        try:
            return self._vocabulary.decision(decision_of(entry.point, end), event, self._place.workspace)
        except NoAnswer:
            if entry.on_error_allow:
                return Pass()
            raise

    def snapshot(self) -> JsonValue:
        """A command keeps its own memory."""
        return None

    def restore(self, memory: JsonValue) -> None:
        """See `snapshot`."""

    def _told(self) -> dict[str, JsonValue]:
        return {
            "session_id": self._place.session_id,
            "transcript_path": str(self._place.timeline),
            "cwd": str(self._place.workspace),
            "permission_mode": self._place.mode,
            "hook_event_name": self._entry.point.value,
        }


async def run_command(command: str, told: str, place: CommandPlace, time_limit_s: float) -> CommandEnd:
    """Run `command` by the shell with `told` on its stdin. Whatever happens, its process group is gone afterwards.

    Raises:
        OSError: if it cannot be started.
    """
    child = await asyncio.create_subprocess_exec(
        _SHELL,
        "-c",
        command,
        cwd=place.workspace,
        env=dict(place.environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    outputs = [_Output(child.stdout), _Output(child.stderr)]
    talk = [asyncio.create_task(_tell(child, told)), *(asyncio.create_task(o.read(child.pid)) for o in outputs)]
    ended = False
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(_exited(child), time_limit_s)
            ended = True
    finally:
        _kill_group(child.pid)  # also what it left running in the background, which holds its pipes open
        await asyncio.wait([*talk, asyncio.create_task(child.wait())], timeout=_KILL_GRACE_S)
        for task in talk:
            task.cancel()
    stdout, stderr = (clean_text(output.data.decode("utf-8", "replace")) for output in outputs)
    too_long = any(output.too_long for output in outputs)
    exit_code = child.returncode if ended else None
    return CommandEnd(exit_code=exit_code, stdout=stdout, stderr=stderr, too_long=too_long)


@dataclass(slots=True)
class _Output:
    stream: asyncio.StreamReader
    data: bytearray = field(default_factory=bytearray)
    too_long: bool = False

    async def read(self, group: int) -> None:
        while more := await self.stream.read(_READ_BYTES):
            if self.too_long:
                continue  # what was under way when it was ended; unread, it would keep the pipe open
            self.data += more
            self.too_long = len(self.data) > OUTPUT_BYTES_MAX
            if self.too_long:
                _kill_group(group)


async def _exited(child: asyncio.subprocess.Process) -> None:
    """Wait for the command itself. asyncio's own `wait` also waits for whoever else holds its pipes."""
    if sys.platform != "linux":
        await child.wait()
        return
    try:
        handle = os.pidfd_open(child.pid)
    except ProcessLookupError:
        return
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def _tell(child: asyncio.subprocess.Process, told: str) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it is told
        child.stdin.write(told.encode())
        await child.stdin.drain()
        child.stdin.close()


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
