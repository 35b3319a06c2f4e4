"""Ends what the tools of a process that was killed left running; one that ends by itself leaves nothing."""

import fcntl
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from geode.tools.process import HOME_PREFIX

_SWEEPS_MAX = 200
_PAUSE_S = 0.005


def kill_orphans(workspace: Path) -> int:
    """Kill every process in `workspace` that a tool of a dead process started; return how many there were.

    A person's own shell in there is spared, since no tool gave it its HOME, and so is the command of another session:
    whoever runs it holds the lock of that HOME.
    """
    killed = set[str]()
    if sys.platform == "linux":
        # Until none is found: one that was killed takes a moment to go, and may have started another just before.
        for _ in range(_SWEEPS_MAX):
            if not (found := _swept(workspace)):
                break
            killed |= found
            time.sleep(_PAUSE_S)
    return len(killed)


def _swept(workspace: Path) -> set[str]:
    found = set[str]()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):  # it ended meanwhile, or belongs to another user
                if _works_in(workspace, name) and _is_orphan(name):
                    os.kill(int(name), signal.SIGKILL)
                    found.add(name)
    return found


def _works_in(workspace: Path, pid: str) -> bool:
    return Path(os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")).is_relative_to(workspace)


def _is_orphan(pid: str) -> bool:
    with open(f"/proc/{pid}/environ", "rb") as file:
        homes = [entry.removeprefix(b"HOME=") for entry in file.read().split(b"\0") if entry.startswith(b"HOME=")]
    return any(Path(os.fsdecode(home)).name.startswith(HOME_PREFIX) and not _is_held(home) for home in homes)


def _is_held(home: bytes) -> bool:
    try:
        handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        # Not shared: over a network it is refused for a folder, and what cannot be told counts as held.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
