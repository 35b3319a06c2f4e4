"""The file tools: list, read, write and edit, confined to the workspace and bounded in size.

A write replaces the file in one step, so a reader sees the old content or the new, never half of it. It is not flushed
to the disk: it survives the death of this process, not of the machine.
"""

import hashlib
import io
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from pydantic import JsonValue

from geode.redaction import clean_text
from geode.tools.edit import replaced_once
from geode.tools.output import is_binary
from geode.tools.spec import (
    Arguments,
    OutOfScope,
    ResourceClaim,
    SafetyLevel,
    ToolFailed,
    ToolOutput,
    ToolSpec,
)
from geode.tools.workspace import MODEL_ROOT, NotThere, Place, Workspace, is_file

MAX_FILE_BYTES = 8_000_000
MAX_SHOWN_CHARS = 32_000
MAX_ENTRIES = 1_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")

TREE_SHARED = ResourceClaim(resource="tree", exclusive=False)
TREE_EXCLUSIVE = ResourceClaim(resource="tree", exclusive=True)

_PATH: Final[dict[str, JsonValue]] = {
    "type": "string",
    "minLength": 1,
    "description": f"Relative to the workspace, or below {MODEL_ROOT}.",
}


def _schema(properties: dict[str, JsonValue], *required: str) -> Mapping[str, JsonValue]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_LIST_SCHEMA = _schema({"path": {**_PATH, "description": 'A folder; "." by default.'}})
_READ_SCHEMA = _schema(
    {
        "path": _PATH,
        "start_line": {"type": "integer", "minimum": 1, "description": "The first line to return; 1 by default."},
        "line_count": {"type": "integer", "minimum": 1, "description": "How many lines; all by default."},
    },
    "path",
)
_WRITE_SCHEMA = _schema(
    {"path": _PATH, "content": {"type": "string", "description": "The whole file."}}, "path", "content"
)
_EDIT_SCHEMA = _schema(
    {
        "path": _PATH,
        "old": {"type": "string", "minLength": 1, "description": "The exact text to replace; it must occur once."},
        "new": {"type": "string", "description": "What stands in its place."},
    },
    "path",
    "old",
    "new",
)


def list_files_tool(workspace: Workspace) -> ToolSpec:
    """The `list_files` tool on `workspace`."""
    return ToolSpec(
        name="list_files",
        description="List a folder, one path a line, relative to the workspace. Folders end in '/'.",
        input_schema=dict(_LIST_SCHEMA),
        level=SafetyLevel.READ,
        handler=partial(_list_files, workspace),
        check_scope=partial(check_path_scope, workspace),
        claims=claim_tree,
    )


def read_file_tool(workspace: Workspace) -> ToolSpec:
    """The `read_file` tool on `workspace`."""
    return ToolSpec(
        name="read_file",
        description="Read a text file, or a range of its lines.",
        input_schema=dict(_READ_SCHEMA),
        level=SafetyLevel.READ,
        handler=partial(_read_file, workspace),
        check_scope=partial(check_path_scope, workspace),
        claims=partial(_claim_file, workspace, exclusive=False),
    )


def write_file_tool(workspace: Workspace) -> ToolSpec:
    """The `write_file` tool on `workspace`."""
    return ToolSpec(
        name="write_file",
        description="Write a whole file. It is created with its folders, or replaced.",
        input_schema=dict(_WRITE_SCHEMA),
        level=SafetyLevel.WRITE,
        handler=partial(_write_file, workspace),
        check_scope=partial(check_path_scope, workspace),
        claims=partial(_claim_file, workspace, exclusive=True),
        intent=partial(_intent, workspace, _content_to_write),
        settled_by_probe=partial(_probe, workspace),
    )


def edit_file_tool(workspace: Workspace) -> ToolSpec:
    """The `edit_file` tool on `workspace`."""
    return ToolSpec(
        name="edit_file",
        description="Replace text in a file. `old` must match exactly, blanks included, and occur exactly once.",
        input_schema=dict(_EDIT_SCHEMA),
        level=SafetyLevel.WRITE,
        handler=partial(_edit_file, workspace),
        check_scope=partial(check_path_scope, workspace),
        claims=partial(_claim_file, workspace, exclusive=True),
        intent=partial(_intent, workspace, _content_after_edit),
        settled_by_probe=partial(_probe, workspace),
    )


def check_path_scope(workspace: Workspace, arguments: Arguments) -> None:
    """Raise `OutOfScope` if the argument `path` leads out of the workspace."""
    path = arguments.get("path")
    if isinstance(path, str):
        try:
            workspace.resolve(path)
        except OutOfScope:
            raise
        except ToolFailed:
            return  # It leads nowhere, which is for the handler to say.


def claim_tree(_: Arguments) -> tuple[ResourceClaim, ...]:
    """What a reader of many files claims: that nobody may change anything by a command meanwhile."""
    return (TREE_SHARED,)


def shown_name(name: str) -> str:
    """A file's name as results show it: what does not print (controls, text direction, raw bytes) is escaped."""
    return name if name.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def content_of(place: Place, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a whole regular file.

    Raises:
        ToolFailed: if it is none, or larger than `max_bytes`.
    """
    handle = place.open(os.O_RDONLY)
    try:
        state = os.fstat(handle)
        if not is_file(state):
            kind = "a folder" if stat.S_ISDIR(state.st_mode) else "no regular file"
            raise ToolFailed(f"{place.relative!r} is {kind}")
        with open(handle, "rb", buffering=0, closefd=False) as file:
            data = _read_up_to(file, max_bytes + 1)
    finally:
        os.close(handle)
    if len(data) > max_bytes:
        raise ToolFailed(f"{place.relative!r} has more than {max_bytes} bytes: search it, or use the shell")
    return data


def _read_up_to(file: io.FileIO, count: int) -> bytes:
    parts = []
    while count and (part := file.read(count)):  # a single read may give less than there is
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


async def _list_files(workspace: Workspace, arguments: Arguments) -> ToolOutput:
    with workspace.locate(str(arguments.get("path", "."))) as place:
        handle = place.open(os.O_RDONLY)
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                raise ToolFailed(f"{place.relative!r} is a file, not a folder")
            with os.scandir(handle) as entries:
                names = sorted(entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries)
        finally:
            os.close(handle)
        prefix = "" if place.relative == "." else place.relative + "/"
    lines = [shown_name(prefix + name) for name in names[:MAX_ENTRIES]]
    if len(names) > MAX_ENTRIES:
        lines.append(f"[{len(names) - MAX_ENTRIES} more entries]")
    return ToolOutput(text="\n".join(lines) or "(empty folder)")


async def _read_file(workspace: Workspace, arguments: Arguments) -> ToolOutput:
    with workspace.locate(str(arguments["path"])) as place:
        data = content_of(place)
    text = data.decode("utf-8", "replace")
    if "\0" in text or is_binary(text):
        return ToolOutput(text=f"[binary file, {len(data)} bytes, not shown]")
    if not text:
        return ToolOutput(text="(empty file)")
    # Not `splitlines`: editors and programs count line feeds only.
    lines = _LINE.findall(text)
    shown = _range_of(lines, _whole(arguments, "start_line", 1), _whole(arguments, "line_count", len(lines)))
    # A command may have written where it ran; no result holds a path of this machine.
    return ToolOutput(text=workspace.hide(shown))


def _whole(arguments: Arguments, name: str, default: int) -> int:
    value = arguments.get(name)
    return int(value) if isinstance(value, int | float) else default  # 3.0 is an integer to JSON Schema


def _range_of(lines: list[str], start: int, count: int) -> str:
    """The wanted lines as far as they fit, and what part of the file they are if they are not all of it."""
    total = len(lines)
    if start > total:
        raise ToolFailed(f"start_line is {start}, and the file has {total} lines")
    kept: list[str] = []
    room = MAX_SHOWN_CHARS
    for line in lines[start - 1 : start - 1 + count]:
        if len(line) > room:
            break
        kept.append(line)
        room -= len(line)
    if not kept:
        line = lines[start - 1]
        shown, size = line[:MAX_SHOWN_CHARS], len(line)
        return f"{shown}\n[line {start} of {total}: its first {MAX_SHOWN_CHARS} of {size} characters]"
    text = "".join(kept)
    if len(kept) == total:
        return text
    return f"{text.removesuffix(chr(10))}\n[lines {start}-{start + len(kept) - 1} of {total}]"


async def _write_file(workspace: Workspace, arguments: Arguments) -> ToolOutput:
    content = _content_to_write(None, arguments)
    with workspace.locate(str(arguments["path"]), make_folders=True) as place:
        _replace(place, content)
    return ToolOutput(text=f"wrote {shown_name(place.relative)} ({len(content.decode())} characters)")


async def _edit_file(workspace: Workspace, arguments: Arguments) -> ToolOutput:
    with workspace.locate(str(arguments["path"])) as place:
        _replace(place, _content_after_edit(content_of(place), arguments))
    return ToolOutput(text=f"edited {shown_name(place.relative)}: 1 replacement")


def _replace(place: Place, content: bytes) -> None:
    """Put `content` where `place` is, in one step, with the mode of what stood there."""
    state = place.state()
    if state is not None and not is_file(state):
        raise ToolFailed(f"{place.relative!r} is no regular file, so it cannot be written")
    if state is not None and not state.st_mode & 0o222:
        raise ToolFailed(f"{place.relative!r} is read-only")
    beside = Place(folder=place.folder, name=f".geode-{secrets.token_hex(6)}.tmp", relative=place.relative)
    handle = beside.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(handle, "wb", buffering=0) as file:
            view = memoryview(content)
            while view:
                view = view[file.write(view) :]
            if state is not None:
                os.fchmod(handle, stat.S_IMODE(state.st_mode))
        os.rename(beside.name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except OSError as error:
        with suppress(OSError):
            os.unlink(beside.name, dir_fd=place.folder)
        raise ToolFailed(f"{place.relative!r} could not be written: {error.strerror}; it is as it was") from error


def _content_to_write(_: bytes | None, arguments: Arguments) -> bytes:
    return clean_text(str(arguments["content"])).encode()


def _content_after_edit(content: bytes | None, arguments: Arguments) -> bytes:
    path = str(arguments["path"])
    if content is None:
        raise NotThere(f"there is no {path!r}")
    return replaced_once(content, clean_text(str(arguments["old"])), clean_text(str(arguments["new"])), path)


def _claim_file(workspace: Workspace, arguments: Arguments, *, exclusive: bool) -> tuple[ResourceClaim, ...]:
    try:
        path = workspace.display(workspace.resolve(str(arguments.get("path"))))
    except ToolFailed:
        return (TREE_EXCLUSIVE,)  # The handler will fail; until then nobody else moves.
    return ResourceClaim(resource=f"file:{MODEL_ROOT}/{path}", exclusive=exclusive), TREE_SHARED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hashes:
    """The content before and after a write, as SHA-256; None for no file, or for an edit that does not apply."""

    before: str | None
    after: str | None


def _intent(
    workspace: Workspace, content_after: Callable[[bytes | None, Arguments], bytes], arguments: Arguments
) -> str:
    before = _current(workspace, arguments)
    try:
        after = _hash(content_after(before, arguments))
    except ToolFailed:
        after = None
    return json.dumps({"before": _hash(before), "after": after})


def _probe(workspace: Workspace, arguments: Arguments, intent: str) -> bool | None:
    hashes = _Hashes(**json.loads(intent))
    try:
        found = _hash(_current(workspace, arguments))
    except ToolFailed:
        return None
    if hashes.after is not None and found == hashes.after:
        return True
    return False if found == hashes.before else None


def _current(workspace: Workspace, arguments: Arguments) -> bytes | None:
    try:
        with workspace.locate(str(arguments["path"])) as place:
            return content_of(place)
    except NotThere:
        return None


def _hash(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
