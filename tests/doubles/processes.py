"""What runs on this machine, as far as a test has to know: the workers of a sweep, and what a sweep left behind."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LIMIT_S = 60.0


def workers_of(pid: int) -> list[int]:
    """Return the worker processes of a sweep that are alive."""
    return [child for child in _children(pid) if b"popen_loky_posix" in _read(child, "cmdline")]


def left_behind(home: Path, root: Path) -> list[str]:
    """Return the command line of each process of a command that was started with this home, tools included."""
    mark = f"HOME={home}".encode()
    return [
        _read(pid, "cmdline").replace(b"\0", b" ").decode()
        for pid in _pids()
        if mark in _read(pid, "environ").split(b"\0") or _folder(pid).is_relative_to(root / "workspaces")
    ]


def wait_until(condition: Callable[[], object], limit_s: float = LIMIT_S) -> float:
    """Wait until something is true of another process; return how long it took."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < limit_s, f"it did not happen within {limit_s} s"
        time.sleep(0.02)
    return time.monotonic() - began_s


def _children(pid: int) -> Iterator[int]:
    for child in _pids():
        fields = _read(child, "stat").rpartition(b")")[2].split()
        if fields and int(fields[1]) == pid and fields[0] != b"Z":
            yield child


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _folder(pid: int) -> Path:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return Path("/")
