"""What a hook can know of files: the names in calls and in their results. A hook has no access to files."""

import re
from collections.abc import Iterator

from geode.authority import Arguments
from geode.hooks.points import ToolEnded

_NAME_CHARS_MAX = 200
_NAMES_MAX = 500
_ROOT = "/workspace/"
_WORD = re.compile(r"[^\s'\"`;|&<>(){}=:,*?]+")
_FOUND_LINE = re.compile(r"^(.+?):\d+: ", re.MULTILINE)


def plain(name: str) -> str:
    """Return a name as the file tools write it: relative to the workspace."""
    return name.removeprefix(_ROOT).removeprefix("./")


def path_of(arguments: Arguments) -> str:
    """Return the path that a call of a file tool names, or nothing."""
    path = arguments.get("path")
    return plain(path)[:_NAME_CHARS_MAX] if isinstance(path, str) else ""


def command_of(arguments: Arguments) -> str:
    """Return the command of a shell call, or nothing."""
    command = arguments.get("command")
    return command if isinstance(command, str) else ""


def names_in_command(command: str) -> tuple[str, ...]:
    """Return the words of a shell command that may be names of files."""
    words = (plain(word)[:_NAME_CHARS_MAX] for word in _WORD.findall(command)[:_NAMES_MAX])
    return tuple(dict.fromkeys(word for word in words if not word.startswith("-")))


def listed(event: ToolEnded) -> Iterator[str]:
    """Yield the files that a result of `list_files` names; folders are left out."""
    if event.tool == "list_files" and not event.is_error:
        for line in event.text.splitlines()[:_NAMES_MAX]:
            if line and line[0] not in "[(" and not line.endswith("/"):
                yield line[:_NAME_CHARS_MAX]


def found(event: ToolEnded) -> Iterator[str]:
    """Yield the files of which a result of `search` shows lines."""
    if event.tool == "search" and not event.is_error:
        names = dict.fromkeys(match[1] for match in _FOUND_LINE.finditer(event.text))
        for name in list(names)[:_NAMES_MAX]:
            yield name[:_NAME_CHARS_MAX]


def shown_list(names: list[str], limit: int) -> str:
    """Return names as a sentence holds them: the first few, and how many there are besides."""
    text = ", ".join(names[:limit])
    return f"{text} and {len(names) - limit} more" if len(names) > limit else text
