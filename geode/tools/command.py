"""Reads a shell command as far as the host needs: how a place in it is quoted, and which paths it names.

This spares accidents. It is no sandbox and no shell: a command can always build a path that no reader of its text
sees, so it never makes a command safe. What may run at all is for policy and approval.
"""

import os
import posixpath
import re
import shlex
from collections.abc import Iterator

_MODEL_ROOT = "workspace"
_SEGMENT = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^'\"\\]+|.", re.DOTALL)

# Where programs and what they read live; a command may name these.
_TOOL_PLACES = ("bin", "sbin", "lib", "lib64", "usr", "opt")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr")

# An absolute path begins at a word's border or after an option letter (`-I/usr/include`).
_ABSOLUTE = re.compile(r"(?:(?<![\w.~/\\})\]$*?-])|(?<=\s-[A-Za-z]))/[^\s'\"`;|&<>()]*")
_EXPANSION = re.compile(r"[*?\[{`\\]|\$[A-Za-z_({]")
_REDIRECTED = re.compile(r">\|?\s*['\"]?$")
_URL_HEAD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:$")
_OTHER_HOME = re.compile(r"(?<![^\s=:'\"(;|&])~[A-Za-z_][\w-]*")
_WHOLE_DISK = re.compile(
    r"(?:^|[;|&(\n])[ \t]*(?:cd|ls|find|rm|cat|du|tree|chmod|chown|tar|cp|mv|ln)\s(?:[^;|&\n]*\s)?/\*?(?=$|[\s;|&)])"
)
_WORD = re.compile(r"[^\s'\"`;|&<>(){}=:,]+")


def quoted_for_place(text: str, command: str, position: int) -> str:
    """Return `text` written so that it stands for itself at `position` of `command`: bare, or inside quotes."""
    match _quote_at(command, position):
        case "'":
            return text.replace("'", "'\\''")
        case '"':
            return re.sub(r'([\\"$`])', r"\\\1", text)
        case _:
            return shlex.quote(text)


def named_paths(command: str) -> Iterator[str]:
    """Yield each word of `command`, and where it leads from the folders that the command changes into."""
    folders, moves = [""], False
    for word in _WORD.findall(command):
        yield from dict.fromkeys(posixpath.join(folder, word) for folder in folders)
        if moves and not word.startswith("-"):
            folders.append(posixpath.join(folders[-1], word))
        moves = word in ("cd", "pushd")


def path_outside(command: str) -> str | None:
    """Return the first path that `command` names outside the workspace and the places of tools, or None."""
    if found := _WHOLE_DISK.search(command) or _OTHER_HOME.search(command):
        return found[0].strip(" \t\n;|&(")
    for found in _ABSOLUTE.finditer(command):
        following = command[found.end() : found.end() + 1]
        if _leads_out(found[0] + following if following in ("(", "`") else found[0], command, found.start()):
            return found[0] + following.strip()
    return _climbs_out(command)


def _leads_out(path: str, command: str, start: int) -> bool:
    before = command[max(0, start - 40) : start]
    if url := _URL_HEAD.search(before):
        # The host of a URL is a matter of policy; only a file's URL is a path.
        if url[0].lower() != "file:":
            if path.startswith("//"):
                return False
        elif not path.strip("/"):
            return True
    plain = posixpath.normpath("/" + path.strip("/"))
    first = plain.split("/")[1]
    if not first:
        return False  # a lone slash is an operator or a separator far more often than the root; see _WHOLE_DISK
    if first == _MODEL_ROOT or plain in _DEVICES or plain.startswith("/dev/fd/"):
        return False
    if first in _TOOL_PLACES:
        return _REDIRECTED.search(before) is not None
    if _REDIRECTED.search(before):
        return True
    if _EXPANSION.search(first):
        return _quote_at(command, start) != "'" and not (_quote_at(command, start) == '"' and "$" not in first)
    # A pattern such as `/^def/` looks like a path, and does no harm where nothing has that name.
    return os.path.lexists("/" + first)


def _climbs_out(command: str) -> str | None:
    """Follow the depth of `cd` through the command, and return the first word whose `..` goes above the workspace."""
    depth, moves = 0, False
    for word in _WORD.findall(command):
        parts = [part for part in word.split("/") if part not in ("", ".")]
        level = lowest = 0
        for part in parts:
            level += -1 if part == ".." else 1
            lowest = min(lowest, level)
        if word.startswith("/"):
            depth_then = level - 1  # `/workspace` itself is at 0
        elif depth + lowest < 0:
            return str(word)
        else:
            depth_then = depth + level
        if moves and not word.startswith("-"):
            depth, moves = depth_then, False
        moves = moves or word in ("cd", "pushd")
    return None


def _quote_at(command: str, position: int) -> str:
    for segment in _SEGMENT.finditer(command):
        if segment.end() > position:
            return segment[0][0] if segment[0][0] in "'\"" and len(segment[0]) > 1 else ""
    return ""
