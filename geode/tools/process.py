"""One child process that cannot outstay its welcome: bounded in time, output and what it may start.

The child leads a session of its own. However it ends, its whole process group is killed before it is reaped (so the
group's number cannot have passed to somebody else), and then every process that left the group but still has the
child's private HOME in its environment. What clears its environment and leaves the group escapes; this is no sandbox.
"""

import asyncio
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from geode.tools.output import Capture

TERM_GRACE_S = 0.3
KILL_GRACE_S = 1.0
DRAIN_GRACE_S = 0.3
MAX_NEW_TASKS = 512
MAX_FILE_BYTES = 1 << 30
HOME_PREFIX = "geode-home-"
# A sandbox forks at once, so it is held until the limits are set, which its own children then inherit.
_GATE = ("/bin/sh", "-c", 'read -r _; exec "$@" </dev/null', "sh")
_READ_BYTES = 1 << 16
_MAX_SAID_BYTES = 8_000
_MAX_PIDS_LOOKED_AT = 5_000
_MAX_SWEEPS = 5
_STANDARD_PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a child ended. `exit_code` is None if its time ran out; `home` is the path that it knew as its HOME.

    `started` is false if an `Opening` was awaited and never came.
    """

    exit_code: int | None
    home: str
    started: bool = True


@dataclass(slots=True, kw_only=True)
class Opening:
    """The bytes that tell a child's own output from what the wrapper around it said before.

    `limit_s` is the time until they come. The child's own time limit counts from there.
    """

    mark: bytes
    limit_s: float
    said: bytearray = field(default_factory=bytearray)
    begun: bool = False

    def split(self, data: bytes) -> bytes:
        """Take the next bytes, and return those that come after the mark."""
        if self.begun:
            return data
        self.said += data
        before, mark, own = self.said.partition(self.mark)
        self.begun, self.said = bool(mark), before[-_MAX_SAID_BYTES:]
        return bytes(own)


@cache
def child_path() -> str:
    """The fixed PATH of every child: the standard places, and where this Python lives if they have none."""
    if shutil.which("python3", path=_STANDARD_PLACES):
        return _STANDARD_PLACES
    return f"{_STANDARD_PLACES}:{os.path.join(sys.base_prefix, 'bin')}"


def child_environment(home: str, path: str) -> dict[str, str]:
    """All that a child inherits: nothing of ours, so no key of ours.

    Compiled Python files are not written: within one second they would hide an edit that keeps a file's size.
    """
    return {
        "PATH": path,
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextmanager
def private_home() -> Iterator[str]:
    """A new empty folder for one child, which is gone afterwards. This process holds its lock as long as it lives."""
    home = tempfile.mkdtemp(prefix=HOME_PREFIX)
    held = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a disk without such locks; who looks for orphans finds it locked, too
            fcntl.flock(held, fcntl.LOCK_SH)
        yield home
    finally:
        _remove(home)
        os.close(held)


async def run_child(
    argv: Sequence[str], *, folder: Path, path: str, timeout_s: float, capture: Capture, handles: Sequence[int] = ()
) -> Finished:
    """Run `argv` in `folder` until it ends or its time is up, feeding `capture` with stdout and stderr merged.

    When it returns or raises, nothing that the child started runs on, and its private HOME is gone.

    Raises:
        OSError: if the child cannot be started.
        subprocess.TimeoutExpired: if it cannot be killed.
    """
    with private_home() as home:
        return await run_at_home(
            argv, home=home, folder=folder, path=path, timeout_s=timeout_s, capture=capture, handles=handles
        )


async def run_at_home(
    argv: Sequence[str],
    *,
    home: str,
    folder: Path,
    path: str,
    timeout_s: float,
    capture: Capture,
    handles: Sequence[int] = (),
    opening: Opening | None = None,
) -> Finished:
    """Do what `run_child` does, with a HOME of the caller's; with an `opening`, feed `capture` only from there on."""
    child = subprocess.Popen(  # noqa: ASYNC220, S603 (starting takes 0.3 ms; asyncio's own way reaps too early)
        argv if opening is None else (*_GATE, *argv),
        cwd=folder,
        env=child_environment(home, path),
        stdin=subprocess.DEVNULL if opening is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,
        pass_fds=handles,
    )
    try:
        _limit(child.pid)
        if child.stdin is not None:
            child.stdin.close()
        in_time = await _Watch(child, capture, home, opening).until_end(timeout_s)
    finally:
        assert child.stdout is not None
        child.stdout.close()
        # It was killed: this takes no time, unless the kernel itself holds it.
        child.wait(timeout=KILL_GRACE_S)
    return Finished(
        exit_code=child.returncode if in_time else None, home=home, started=opening is None or opening.begun
    )


@dataclass(slots=True)
class _Watch:
    child: subprocess.Popen[bytes]
    capture: Capture
    home: str
    opening: Opening | None
    ended: asyncio.Future[None] = field(init=False)
    drained: asyncio.Future[None] = field(init=False)
    begun: asyncio.Future[None] = field(init=False)

    async def until_end(self, timeout_s: float) -> bool:
        """Return whether the child ended in time. Whatever happens, nothing of it is left."""
        loop = asyncio.get_running_loop()
        self.ended, self.drained, self.begun = loop.create_future(), loop.create_future(), loop.create_future()
        assert self.child.stdout is not None
        pipe = self.child.stdout.fileno()
        os.set_blocking(pipe, False)
        loop.add_reader(pipe, self._read, pipe)
        handle = _process_handle(self.child.pid)
        if handle is None:
            waiting = loop.run_in_executor(None, self.child.wait)
            waiting.add_done_callback(lambda _: self._note_end())
        else:
            loop.add_reader(handle, self._note_end)
        try:
            if self.opening is not None:
                done, _ = await asyncio.wait(
                    {self.ended, self.begun}, timeout=self.opening.limit_s, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    return False
            done, _ = await asyncio.wait({self.ended}, timeout=timeout_s)
            return bool(done)
        finally:
            try:
                await self._end_all()
            finally:
                loop.remove_reader(pipe)
                if handle is not None:
                    loop.remove_reader(handle)
                    os.close(handle)

    async def _end_all(self) -> None:
        try:
            if not self.ended.done():
                self._signal_group(signal.SIGTERM)
                await asyncio.wait({self.ended, self.drained}, timeout=TERM_GRACE_S)
        finally:  # also when the wait above is cancelled once more
            self._signal_group(signal.SIGKILL)
            for _ in range(_MAX_SWEEPS):
                if not _kill_by_home(self.home, self.child.pid):
                    break
        if not self.ended.done():
            await asyncio.wait({self.ended}, timeout=KILL_GRACE_S)
        if not self.drained.done():
            await asyncio.wait({self.drained}, timeout=DRAIN_GRACE_S)

    def _signal_group(self, number: signal.Signals) -> None:
        # While the child is not reaped its number, and so its group's, belongs to nobody else.
        if self.child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, number)

    def _note_end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _read(self, pipe: int) -> None:
        try:
            data = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._take(data)
        elif not self.drained.done():
            asyncio.get_running_loop().remove_reader(pipe)
            self.drained.set_result(None)

    def _take(self, data: bytes) -> None:
        if self.opening is not None:
            data = self.opening.split(data)
            if self.opening.begun and not self.begun.done():
                self.begun.set_result(None)
        if data:
            self.capture.feed(data)


def _process_handle(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system has such a thing."""
    if sys.platform == "linux":
        try:
            return os.pidfd_open(pid)
        except OSError:
            return None
    return None


def _limit(pid: int) -> None:
    """Bound the tasks, the size of a file and the core dumps of a child that has just started."""
    if sys.platform != "linux":
        return
    with suppress(ProcessLookupError, PermissionError):
        # The kernel counts tasks by user, so the bound stands above all that run now.
        _lower(pid, resource.RLIMIT_NPROC, _running_tasks() + MAX_NEW_TASKS)
        _lower(pid, resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
        _lower(pid, resource.RLIMIT_CORE, 0)


def _lower(pid: int, which: int, value: int) -> None:
    if sys.platform == "linux":
        _, ceiling = resource.prlimit(pid, which)
        value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.prlimit(pid, which, (value, value))


def _running_tasks() -> int:
    return int(_load_average().split()[3].split("/")[1])


def _last_pid() -> int:
    return int(_load_average().split()[4])


def _load_average() -> str:
    with open("/proc/loadavg", encoding="ascii") as file:
        return file.read()


def _kill_by_home(home: str, first_pid: int) -> int:
    """Kill whatever was started after `first_pid` and has `home` as its HOME; return how many there were."""
    if sys.platform != "linux":
        return 0
    last = _last_pid()
    if first_pid < last <= first_pid + _MAX_PIDS_LOOKED_AT:
        pids = list(range(first_pid + 1, last + 1))
    elif last == first_pid:
        pids = []
    else:  # the numbers have wrapped, or the machine is busy
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    mark, killed = f"HOME={home}".encode(), 0
    for pid in pids:
        with suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = mark in file.read().split(b"\0")
            if ours:
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _remove(home: str) -> None:
    try:
        os.rmdir(home)
    except OSError:
        shutil.rmtree(home, ignore_errors=True)
