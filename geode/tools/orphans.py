"""Ends what the tools of a process that was killed left running; one that ends by itself leaves nothing."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from geode.tools.process import HOME_PREFIX


def kill_orphans(workspace: Path) -> int:
    """Kill every process that a tool started and that works in `workspace`; return how many there were.

    Nobody else may use the workspace any more. A person's own shell in there is spared: no tool gave it its HOME.
    """
    if sys.platform != "linux":
        return 0
    killed = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):  # it ended meanwhile, or belongs to another user
                if _works_in(workspace, name) and _started_by_tool(name):
                    os.kill(int(name), signal.SIGKILL)
                    killed += 1
    return killed


def _works_in(workspace: Path, pid: str) -> bool:
    return Path(os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")).is_relative_to(workspace)


def _started_by_tool(pid: str) -> bool:
    with open(f"/proc/{pid}/environ", "rb") as file:
        homes = [entry for entry in file.read().split(b"\0") if entry.startswith(b"HOME=")]
    return any(Path(os.fsdecode(home)).name.startswith(HOME_PREFIX) for home in homes)
