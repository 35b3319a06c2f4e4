"""Looks at the machine: what GEODE stands on, what is missing, and what to do about it. It changes nothing."""

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import geode
from geode.config.settings import Settings
from geode.hooks.hook_file import HookFileError, read_hook_file
from geode.llm.catalog import catalog
from geode.llm.credentials import ACCESS, credentials, has_key
from geode.llm.errors import ConfigurationError
from geode.tools.sandbox import why_no_sandbox

_FREE_BYTES_WANTED = 1 << 30
_PYTHON_OLDEST = (3, 11)
_WAL_RACE_FROM, _WAL_RACE_FIXED = (3, 7, 0), (3, 51, 3)
_WAL_RACE_BACKPORTS = ((3, 44, 6), (3, 50, 7))
_PROGRAMS = {
    "git": "the git tools need it",
    "rg": "the search tool is slower without it",
    "docker": "a sandbox for what the agent executes (environment: in a suite)",
}
_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "ceph", "glusterfs"})


class Health(StrEnum):
    """What a check found. MISSING is a part that can be done without; BAD is what will fail."""

    OK = "ok"
    MISSING = "missing"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. `todo` is empty where nothing is to be done."""

    about: str
    health: Health
    text: str
    todo: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield what was found, one thing after the other. No check can stop the others."""
    checks: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
        _python,
        _state_root,
        _sqlite,
        _hooks,
        _sandbox,
        _programs,
        _keys,
    )
    for check in checks:
        try:
            yield from check(settings)
        except OSError as error:
            yield Finding(
                about=check.__name__.lstrip("_"),
                health=Health.BAD,
                text=f"it cannot be looked at: {error}",
                todo="repair what the message names",
            )


def has_wal_race(version: tuple[int, ...]) -> bool:
    """Return whether this SQLite can lose a commit when two connections reset its write-ahead log at once.

    Versions 3.7.0 to 3.51.2, but for the back-ports 3.44.6 and 3.50.7 and what follows each in its own line.
    """
    if not _WAL_RACE_FROM <= version < _WAL_RACE_FIXED:
        return False
    return not any(version[:2] == fixed[:2] and version >= fixed for fixed in _WAL_RACE_BACKPORTS)


def _python(_: Settings) -> Iterator[Finding]:
    text = f"GEODE {geode.__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    good = sys.version_info[:2] >= _PYTHON_OLDEST
    yield Finding(
        about="python",
        health=Health.OK if good else Health.BAD,
        text=text,
        todo="" if good else "use Python 3.11 or newer",
    )


def _state_root(settings: Settings) -> Iterator[Finding]:
    root = settings.root.path
    standing = next(folder for folder in (root, *root.parents) if folder.exists())
    if not os.access(standing, os.W_OK | os.X_OK):
        todo = "give yourself the right to write there, or name another root with --root or GEODE_HOME"
        yield Finding(about="state root", health=Health.BAD, text=f"{standing} cannot be written", todo=todo)
        return
    free = shutil.disk_usage(standing).free
    shown = f"{root}{'' if root.exists() else ' (not made yet)'}, {free / (1 << 30):.1f} GiB free"
    if free < _FREE_BYTES_WANTED:
        yield Finding(about="state root", health=Health.BAD, text=shown, todo="make room: an episode takes some 60 KB")
    elif (kind := _file_system(standing)) in _NETWORK_FILE_SYSTEMS:
        todo = "put the root on a local disk: SQLite's write-ahead log and its locks do not hold on a network disk"
        yield Finding(about="state root", health=Health.BAD, text=f"{shown}, on {kind}", todo=todo)
    else:
        yield Finding(about="state root", health=Health.OK, text=shown)


def _file_system(folder: Path) -> str:
    """Return the kind of file system that `folder` lies on, where the system tells."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    found = (line.split(" ")[1:3] for line in mounts)
    holding = [(where, kind) for where, kind in found if folder.resolve().is_relative_to(where)]
    return max(holding, key=lambda mount: len(mount[0]), default=("", ""))[1]


def _sqlite(_: Settings) -> Iterator[Finding]:
    version = tuple(int(part) for part in sqlite3.sqlite_version.split("."))
    text = f"SQLite {sqlite3.sqlite_version}"
    if has_wal_race(version):
        # Nothing is to be done: the race takes two connections, and a session's files have one, held exclusively.
        text += ", whose write-ahead log can lose a commit of two connections; sessions open theirs for one alone"
    yield Finding(about="sqlite", health=Health.OK, text=text)


def _hooks(settings: Settings) -> Iterator[Finding]:
    path = settings.root.hooks_file
    try:
        found = read_hook_file(path)
    except HookFileError as error:
        yield Finding(about="hooks", health=Health.BAD, text=str(error), todo="no session begins until it is repaired")
        return
    text = f"{len(found.commands)} of your own" if found.commands else "none of your own"
    yield Finding(about="hooks", health=Health.OK, text=text)
    for reason in found.not_used:
        yield Finding(about="hooks", health=Health.MISSING, text=reason, todo="geode hooks ls shows what decides")


def _sandbox(_: Settings) -> Iterator[Finding]:
    if why := why_no_sandbox():
        todo = "without a sandbox, what sessions execute can reach all that you can; geode policy says what asks first"
        yield Finding(about="sandbox", health=Health.MISSING, text=why, todo=todo)
    else:
        text = "bubblewrap works: what sessions execute sees the workspace and programs, and nothing else"
        yield Finding(about="sandbox", health=Health.OK, text=text)


def _programs(_: Settings) -> Iterator[Finding]:
    for name, use in _PROGRAMS.items():
        path = shutil.which(name)
        if path:
            yield Finding(about=name, health=Health.OK, text=path)
        else:
            yield Finding(about=name, health=Health.MISSING, text=f"not on the PATH: {use}", todo=f"install {name}")


def _keys(settings: Settings) -> Iterator[Finding]:
    held = [route for route in ACCESS if has_key(route, settings.environment)]
    text = f"routes with a key: {', '.join(f'{route} ({ACCESS[route].variable})' for route in held)}"
    none = "no key of a route is set: only simulated models answer"
    yield Finding(about="keys", health=Health.OK, text=text if held else none)
    for route in held:
        try:
            credentials(next(name for name, _ in catalog().of_route(route)), settings.environment)
        except ConfigurationError as error:
            todo = "until then the route refuses every session"
            yield Finding(about="keys", health=Health.MISSING, text=f"{route}: {error}", todo=todo)
