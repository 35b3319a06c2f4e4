"""Searches the lines of the files below an open folder.

Knows nothing of GEODE and imports only the standard library, because it also runs as a program of its own
(`python -I -S grep.py`): a regular expression cannot be interrupted, but a process can be killed.
"""

import json
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Generator
from contextlib import closing

MAX_HITS = 200
MAX_FILES = 20_000
MAX_FILE_BYTES = 2_000_000
MAX_LINE_CHARS_MATCHED = 2_000  # bounds a quick pattern to some milliseconds a line
MAX_LINE_CHARS_SHOWN = 300
MAX_FOLDERS_DEEP = 64
SLICE_S = 0.02
_IGNORED_FOLDERS = frozenset({".git"})
_SNIFFED_BYTES = 8_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


# Plain classes: the import of `dataclasses` alone would double what a child takes to start.
class Found:
    """What a search saw. `hits` counts all of them; `lines` holds the first `MAX_HITS`, as (path, number, text)."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int, str]] = []
        self.hits = 0
        self.files = 0
        self.skipped = 0  # binary, too large, unreadable, or past the bound on files
        self.out_of_time = False


class Query:
    """What to search for: lines that `pattern` matches, in files that `glob` matches, for at most `seconds`."""

    def __init__(self, pattern: str, glob: str | None, seconds: float, longest: int = MAX_LINE_CHARS_MATCHED) -> None:
        self.pattern = pattern
        self.glob = glob
        self.seconds = seconds
        self.longest = longest


class LongLine(Exception):  # noqa: N818  (it names what was met)
    """A line is longer than the query's `longest`: matching it could take too long to wait for."""


def search_steps(folder: int, name: str, prefix: str, query: Query, found: Found) -> Generator[None, None, None]:
    """Search what `name` is in the folder handle `folder`, filling `found`; pause every `SLICE_S` for the caller.

    `prefix` is the path of `folder` as results show it, with its "/" (or empty). Links are not followed.

    Raises:
        LongLine: at the first line that is longer than `query.longest`.
    """
    wanted = _compiled(query.pattern)
    named = glob_pattern(query.glob) if query.glob else None
    slice_end = time.monotonic() + SLICE_S
    end = time.monotonic() + query.seconds
    with closing(_files(folder, name, prefix, named, depth=0)) as files:
        for path, handle in files:
            for number, line in enumerate(_lines(handle, found), 1):
                matched = line[:MAX_LINE_CHARS_MATCHED]
                if len(matched) > query.longest:
                    raise LongLine
                if wanted.search(matched):
                    found.hits += 1
                    if len(found.lines) < MAX_HITS:
                        found.lines.append((path, number, line[:MAX_LINE_CHARS_SHOWN].removesuffix("\r")))
                if (now := time.monotonic()) > slice_end:
                    if now > end:
                        found.out_of_time = True
                        return
                    yield
                    slice_end = time.monotonic() + SLICE_S


def _lines(handle: int, found: Found) -> list[str]:
    with open(handle, "rb") as file:
        try:
            data = file.read(MAX_FILE_BYTES + 1) if found.files < MAX_FILES else b"\0"
        except OSError:
            data = b"\0"
    if len(data) > MAX_FILE_BYTES or b"\0" in data[:_SNIFFED_BYTES]:
        found.skipped += 1
        return []
    found.files += 1
    return data.decode("utf-8", "replace").removesuffix("\n").split("\n")


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Translate a file filter: `*` and `?` stay within a name, `**` does not, `{a,b}` is a choice, `[a-c]` a class.

    A filter without "/" is for the name alone, else for the path relative to the workspace.
    """
    out, choices = "" if "/" in glob else "(?:.*/)?", 0
    for token in re.findall(r"\*\*/|\*\*|\[[^\]/]+\]|.", glob.removeprefix("/"), re.DOTALL):
        match token:
            case "**/":
                out += "(?:.*/)?"
            case "**":
                out += ".*"
            case "*":
                out += "[^/]*"
            case "?":
                out += "[^/]"
            case "{":
                choices += 1
                out += "(?:"
            case "}" if choices:
                choices -= 1
                out += ")"
            case "," if choices:
                out += "|"
            case _ if len(token) > 1:
                out += _class(token)
            case _:
                out += re.escape(token)
    return _compiled("(?s:" + out + ")" * choices + r")\Z")


def _class(token: str) -> str:
    body = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
    try:
        return _compiled(f"[{'^' + body[1:] if body[0] == '!' else body}]").pattern
    except re.error:
        return re.escape(token)  # `[z-a]` is no class: it stands for itself


def _compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hints to the author of a pattern are not for our log
        return re.compile(pattern)


def _files(
    folder: int, name: str, prefix: str, named: re.Pattern[str] | None, depth: int
) -> Generator[tuple[str, int], None, None]:
    """Yield (path, handle) of the regular files at or below `name`, in the order of their names."""
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(state.st_mode):
            path = prefix + name
            if named is None or named.match(path):
                opened = os.open(name, _FILE, dir_fd=folder)
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    yield path, opened
                else:
                    os.close(opened)
            return
        if not stat.S_ISDIR(state.st_mode) or depth > MAX_FOLDERS_DEEP:
            return
        handle = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        return  # It went away, changed its kind, or may not be read: nothing to search.
    try:
        below = prefix if name == "." else f"{prefix}{name}/"
        for inner in sorted(os.listdir(handle)):
            if inner not in _IGNORED_FOLDERS:
                yield from _files(handle, inner, below, named, depth + 1)
    finally:
        os.close(handle)


def main(arguments: list[str]) -> None:
    """Search in a folder handle, for a name, with a prefix and a query as JSON; print what was found as JSON."""
    folder, name, prefix, query = arguments
    found = Found()
    for _ in search_steps(int(folder), name, prefix, Query(**json.loads(query)), found):
        pass
    sys.stdout.write(json.dumps(vars(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
