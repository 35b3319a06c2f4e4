"""A server as a child process: lines of JSON-RPC over its standard input and output, and nothing left of it afterwards.

The SDK's own transport reads lines of any length and leaves the children of a server that ends by itself; this one
bounds what it reads, survives noise on the channel, and always ends the whole process group.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from geode.tools.mcp.serverlog import ServerLog

LINE_BYTES_MAX = 8 << 20
CLOSE_GRACE_S = 1.0
TERM_GRACE_S = 0.5
_DRAIN_GRACE_S = 0.2
_REAP_S = 1.0
_POLL_S = 0.1
_READ_BYTES = 1 << 16
_WRITES_WAITING_MAX = 64
_DEPTH_MAX = 100  # the parser of messages gives up at 200
_ANSWER_HEAD = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*,\s*"(?:result|error)"')
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_BOM = b"\xef\xbb\xbf"

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildServer:
    """How to start a server. `note` hears what the owner should know, `lost` that the server is gone."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    log: ServerLog
    note: Callable[[str], None]
    lost: Callable[[], None]


@asynccontextmanager
async def child_streams(server: ChildServer) -> AsyncIterator[Streams]:
    """Start the server and give what it says, and where to write to it.

    What it says ends when its output closes or it dies, whichever is first.

    Raises:
        OSError: if it cannot be started.
    """
    try:
        child = subprocess.Popen(  # noqa: ASYNC220, S603 (starting takes a moment; asyncio's own way reaps too early)
            server.command,
            cwd=server.folder,
            env=dict(server.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except BaseException:
        server.log.close()
        raise
    said, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, to_write = anyio.create_memory_object_stream[SessionMessage](_WRITES_WAITING_MAX)
    pipes = _Pipes(child=child, server=server, said=said, to_write=to_write)
    try:
        async with anyio.create_task_group() as group:
            for task in (pipes.read, pipes.write, pipes.log, pipes.watch):
                group.start_soon(task)
            try:
                yield incoming, outgoing
            finally:
                incoming.close()
                with anyio.CancelScope(shield=True):
                    await pipes.end()
                group.cancel_scope.cancel()
    finally:
        pipes.kill()
        for stream in (said, incoming, outgoing, to_write):
            stream.close()


@dataclass(slots=True, kw_only=True)
class _Pipes:
    """The child's three pipes, and its death. Each method up to `watch` is a task of its own."""

    child: "subprocess.Popen[bytes]"
    server: ChildServer
    said: MemoryObjectSendStream[Incoming]
    to_write: MemoryObjectReceiveStream[SessionMessage]
    ended: anyio.Event = field(default_factory=anyio.Event)
    noise: int = 0
    handle: int | None = field(init=False)

    def __post_init__(self) -> None:
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        self.handle = _process_handle(self.child.pid)

    async def read(self) -> None:
        """Turn what the server prints into messages; skip and count what is none."""
        assert self.child.stdout is not None
        lines = _Lines()
        try:
            while data := await _read(self.child.stdout.fileno()):
                for line in lines.feed(data):
                    if (message := self._message(line)) is not None:
                        await self.said.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # nobody listens any more
        finally:
            self._give_up()

    async def write(self) -> None:
        """Write the messages. A server that takes none any more is lost."""
        assert self.child.stdin is not None
        try:
            async for message in self.to_write:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await _write(self.child.stdin.fileno(), f"{text}\n".encode())
        except (OSError, anyio.ClosedResourceError):
            self._give_up()

    async def log(self) -> None:
        """Keep what the server prints to its standard error."""
        assert self.child.stderr is not None
        while data := await _read(self.child.stderr.fileno()):
            self.server.log.feed(data)

    async def watch(self) -> None:
        """Notice a death that leaves the output open, in the hands of a child of the server's."""
        if self.handle is not None:
            await anyio.wait_readable(self.handle)
        else:
            while self.child.poll() is None:  # noqa: ASYNC110  (the system tells nobody)
                await anyio.sleep(_POLL_S)
        self.ended.set()
        await anyio.sleep(_DRAIN_GRACE_S)
        self._give_up()

    def _give_up(self) -> None:
        self.said.close()
        self.server.lost()

    def _message(self, line: "bytes | _TooLong") -> SessionMessage | None:
        if isinstance(line, _TooLong):
            self._count_noise(f"a line of more than {LINE_BYTES_MAX} bytes")
            answers = _ANSWER_HEAD.match(line.head)
            if answers is None:
                return None
            # Whoever waits for this answer is told at once, not at the end of their time.
            error = ErrorData(code=CONNECTION_CLOSED, message=f"its answer has more than {LINE_BYTES_MAX} bytes")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(answers[1]), error=error))
        text = line.removeprefix(_BOM).decode("utf-8", "replace").strip()
        for attempt in (text, _without_depth(text)):
            with suppress(ValidationError):
                return SessionMessage(jsonrpc_message_adapter.validate_json(attempt, by_name=False))
        if text:
            self._count_noise("a line that is no message")
        return None

    def _count_noise(self, what: str) -> None:
        self.noise += 1
        if self.noise == 1:
            self.server.note(f"it printed {what} where only messages belong; such lines are skipped")

    async def end(self) -> None:
        """Ask the server to end: by closing its input, then by a signal. `kill` sees to the rest."""
        assert self.child.stdin is not None
        anyio.notify_closing(self.child.stdin)
        self.child.stdin.close()
        for grace_s, number in ((CLOSE_GRACE_S, signal.SIGTERM), (TERM_GRACE_S, signal.SIGKILL)):
            with anyio.move_on_after(grace_s):
                await self.ended.wait()
                return
            self._signal(number)

    def kill(self) -> None:
        """End the whole group, whoever is left in it, and reap the server."""
        self._signal(signal.SIGKILL)
        # It was killed: this takes no time, unless the kernel itself holds it.
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(timeout=_REAP_S)
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            assert pipe is not None
            pipe.close()
        if self.handle is not None:
            os.close(self.handle)
        self.server.log.close()

    def _signal(self, number: signal.Signals) -> None:
        # While the child is not reaped its number, and so its group's, belongs to nobody else. Without a handle its
        # death is noticed by reaping it; then the group keeps the number as long as anybody is in it.
        if self.child.returncode is None or self.handle is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, number)


@dataclass(frozen=True, slots=True)
class _TooLong:
    """The beginning of a line that was not kept."""

    head: bytes


class _Lines:
    """Cuts a stream into lines, and keeps no more of one than its bound."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping: _TooLong | None = None

    def feed(self, data: bytes) -> list[bytes | _TooLong]:
        """Return the lines that `data` completes."""
        done: list[bytes | _TooLong] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            if self._skipping is not None:
                done.append(self._skipping)
                self._skipping = None
            elif len(self._rest) + len(end) > LINE_BYTES_MAX:
                done.append(_TooLong(bytes(self._rest + end)[:200]))
            else:
                done.append(bytes(self._rest) + end)
            self._rest.clear()
        if self._skipping is None:
            self._rest += rest
            if len(self._rest) > LINE_BYTES_MAX:
                self._skipping = _TooLong(bytes(self._rest[:200]))
                self._rest.clear()
        return done


def _without_depth(text: str) -> str:
    """Replace what is nested too deep by null, so that one bad part costs itself alone."""
    kept: list[str] = []
    depth, at, cut_at = 0, 0, -1
    for token in _STRING_OR_BRACKET.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                if depth == _DEPTH_MAX:
                    cut_at = token.start()
            case "]" | "}":
                if depth == _DEPTH_MAX and cut_at >= 0:
                    kept += (text[at:cut_at], "null")
                    at = token.end()
                depth -= 1
            case _:
                pass
    return "".join((*kept, text[at:]))


async def _read(fd: int) -> bytes:
    await anyio.wait_readable(fd)  # also a pause, so that a server that never stops talking starves nobody
    return os.read(fd, _READ_BYTES)


async def _write(fd: int, data: bytes) -> None:
    while data:
        await anyio.wait_writable(fd)
        data = data[os.write(fd, data) :]


def _process_handle(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system has such a thing."""
    if sys.platform == "linux":
        try:
            return os.pidfd_open(pid)
        except OSError:
            return None
    return None
