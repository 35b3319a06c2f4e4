"""Runs verifiers for a limited time each, whatever they do, and never holds the event loop up meanwhile."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path

from experiments.suite import Outcome, Verifier, VerifierBroke
from experiments.suites.verify_command import CommandVerifier
from experiments.suites.verify_file import READY, FileVerifier, Seen, looked

_START_LIMIT_S = 60.0
_STOP_GRACE_S = 0.5
_READ_BYTES = 1 << 16
_MAIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from experiments.suites.verify_file import serve; serve()"
)


class VerifierRunner:
    """Asks verifiers. Those that are files look from one other process, which is started when it is needed.

    That process looks at one workspace at a time. It ends with this object or this process, however that ends.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[[subprocess.Popen[bytes]], VerifierRunner] | None = None
        self._ready = False
        self._free = asyncio.Lock()
        self._cpu_s = 0.0

    @property
    def cpu_s(self) -> float:
        """CPU of the other process, as far as this process does not count it among its ended children yet."""
        return self._cpu_s

    async def outcome(self, verify: Verifier, workspace: Path) -> Outcome:
        """Return what a verifier says of `workspace`.

        Raises:
            VerifierBroke: if it says nothing, or not in time.
            EnvironmentBroken: if it is a command, and its environment starts nothing.
        """
        match verify:
            case CommandVerifier():
                return await verify.averify(workspace)
            case FileVerifier():
                async with self._free:
                    return await self._look(verify, workspace)
            case _:
                return looked(verify, workspace)

    def start(self, verify: Verifier) -> None:
        """Start the other process if `verify` looks from there, so that it is ready when it is asked."""
        if isinstance(verify, FileVerifier):
            with suppress(OSError):  # which is told when it is asked
                self._started()

    def close(self) -> None:
        """End the other process, and whatever verifiers have left running in it."""
        if self._end is not None:
            self._end()
        self._child, self._end, self._ready, self._cpu_s = None, None, False, 0.0

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._child = subprocess.Popen(  # noqa: S603  (this interpreter)
                (sys.executable, "-P", "-c", _MAIN, json.dumps(sys.path)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C goes to a whole process group, and only this process decides what it means.
                start_new_session=True,
            )
            self._end = weakref.finalize(self, _ended, self._child)
        return self._child

    async def _look(self, verify: FileVerifier, workspace: Path) -> Outcome:
        try:
            child = self._started()
        except OSError as error:
            raise VerifierBroke(f"its process cannot be started: {error}", error.errno) from error
        answer: bytes | None = None
        try:
            if not self._ready:
                self._ready = await _line(child, _START_LIMIT_S) == READY
            if not self._ready:
                raise VerifierBroke("its process does not start")
            _ask(child, verify.look(workspace).model_dump_json().encode() + b"\n")
            answer = await _line(child, verify.time_limit_s)
        finally:
            if not answer:
                how = await self._stopped(child)
        if answer is None:
            raise VerifierBroke(f"it did not end within {verify.time_limit_s:g} s")
        if not answer:
            raise VerifierBroke(f"it ended its own process ({how})")
        seen = Seen.model_validate_json(answer)
        self._cpu_s = seen.cpu_s
        if seen.outcome is None:
            raise VerifierBroke(seen.broke, seen.errno)
        return seen.outcome

    async def _stopped(self, child: subprocess.Popen[bytes]) -> str:
        """End the other process, with a moment to clean up, and say how it ended."""
        try:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
            await _line(child, _STOP_GRACE_S)
        finally:
            self.close()
        return f"exit code {child.returncode}" if child.returncode >= 0 else f"signal {-child.returncode}"


def _ended(child: subprocess.Popen[bytes]) -> None:
    """Kill a process with its whole group, and reap it."""
    if child.returncode is None:  # else the group's number may be somebody else's
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()
    child.wait()


def _ask(child: subprocess.Popen[bytes], line: bytes) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, which its silence will tell
        child.stdin.write(line)
        child.stdin.flush()


async def _line(child: subprocess.Popen[bytes], limit_s: float) -> bytes | None:
    """Return what the process writes until the end of a line, empty if it ended, or None if its time is up."""
    assert child.stdout is not None
    pipe, loop = child.stdout.fileno(), asyncio.get_running_loop()
    came: asyncio.Future[bytes] = loop.create_future()
    read = bytearray()

    def take() -> None:
        data = os.read(pipe, _READ_BYTES)
        read.extend(data)
        if data and not data.endswith(b"\n"):
            return
        loop.remove_reader(pipe)
        if not came.done():
            came.set_result(bytes(read) if data else b"")

    loop.add_reader(pipe, take)
    try:
        done, _ = await asyncio.wait({came}, timeout=limit_s)
    finally:
        loop.remove_reader(pipe)
    return came.result() if done else None
