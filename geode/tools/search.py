"""The search tool: a regular expression over the workspace's lines, which cannot hang the host.

Where pattern and lines are such that no line can take long, the search runs here, in slices. Otherwise it runs in a
child that is killed when its time is up, because nothing else stops a regular expression.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Final

from pydantic import JsonValue

from geode.redaction import clean_text
from geode.tools import grep
from geode.tools.files import check_path_scope, claim_tree, shown_name
from geode.tools.grep import Found, LongLine, Query, search_steps
from geode.tools.output import Capture, without_controls
from geode.tools.patterns import MAX_PATTERN_CHARS, compiled_pattern, degree
from geode.tools.process import child_path, run_child
from geode.tools.spec import Arguments, SafetyLevel, ToolFailed, ToolOutput, ToolSpec
from geode.tools.workspace import Place, Workspace

TIME_LIMIT_S = 5.0
_MAX_STEPS_A_LINE = 10_000_000  # some 50 ms
_STARTING_S = 1.0  # what a child may take to start, beyond the time for searching
_MAX_ANSWER_BYTES = 2_000_000

_SCHEMA: Final[Mapping[str, JsonValue]] = {
    "type": "object",
    "properties": {
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PATTERN_CHARS,
            "description": "A regular expression (Python's syntax), matched within a line.",
        },
        "path": {"type": "string", "minLength": 1, "description": 'A file or a folder; "." by default.'},
        "glob": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "Only files that match, such as '*.py' or 'src/**/*.py'.",
        },
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def search_tool(workspace: Workspace, time_limit_s: float = TIME_LIMIT_S) -> ToolSpec:
    """The `search` tool on `workspace`."""
    return ToolSpec(
        name="search",
        description="Search files line by line. Returns `path:line: text`, one a line. Skips .git and binary files.",
        input_schema=dict(_SCHEMA),
        level=SafetyLevel.READ,
        handler=partial(_search, workspace, time_limit_s),
        check_scope=partial(check_path_scope, workspace),
        claims=claim_tree,
    )


async def _search(workspace: Workspace, time_limit_s: float, arguments: Arguments) -> ToolOutput:
    pattern = clean_text(str(arguments["pattern"]))
    _check(pattern)
    glob = arguments.get("glob")
    query = Query(pattern, str(glob) if glob else None, time_limit_s)
    with workspace.locate(str(arguments.get("path", "."))) as place:
        if place.state() is None:
            place.open(os.O_RDONLY)  # raises, and names what is near
        found = await _search_here(place, query) or await _search_in_child(workspace, place, query)
    return ToolOutput(text=workspace.hide(_told(found, time_limit_s)))


def _check(pattern: str) -> None:
    try:
        compiled_pattern(pattern)
    except ValueError as error:
        raise ToolFailed(f"{error}; put a backslash before a character that is meant itself") from error


async def _search_here(place: Place, query: Query) -> Found | None:
    """Search in this process, or return None where the pattern, on lines of this length, could keep it too long."""
    power = degree(query.pattern)
    if power is None:
        return None
    found, bounded = Found(), Query(**vars(query))
    bounded.longest = int(_MAX_STEPS_A_LINE ** (1 / (power + 1)))
    try:
        with closing(search_steps(place.folder, place.name, _prefix(place), bounded, found)) as steps:
            for _ in steps:
                await asyncio.sleep(0)
    except LongLine:
        return None
    return found


async def _search_in_child(workspace: Workspace, place: Place, query: Query) -> Found:
    capture = Capture(head_bytes=_MAX_ANSWER_BYTES, tail_bytes=0)
    program = (sys.executable, "-I", "-S", grep.__file__)
    finished = await run_child(
        (*program, str(place.folder), place.name, _prefix(place), json.dumps(vars(query))),
        folder=workspace.root,
        path=child_path(),
        timeout_s=query.seconds + _STARTING_S,
        capture=capture,
        handles=(place.folder,),
    )
    if finished.exit_code is None:
        raise ToolFailed(f"{query.pattern!r} took more than {query.seconds:g} s and was stopped; use fewer repetitions")
    if finished.exit_code != 0:
        raise ToolFailed(f"the search failed: {capture.text()[-300:]}")
    found = Found()
    vars(found).update(json.loads(capture.head))
    return found


def _prefix(place: Place) -> str:
    folder = os.path.dirname(place.relative) if place.name != "." else place.relative
    return "" if folder in ("", ".") else folder + "/"


def _told(found: Found, time_limit_s: float) -> str:
    lines = [f"{shown_name(path)}:{number}: {without_controls(text)}" for path, number, text in found.lines]
    if found.hits > len(lines):
        lines.append(f"[{found.hits - len(lines)} more matches; narrow the pattern, the path or the glob]")
    if found.out_of_time:
        lines.append(f"[stopped after {time_limit_s:g} s, with {found.files} files searched: not all of them]")
    if not lines:
        skipped = f" ({found.skipped} skipped: binary or too large)" if found.skipped else ""
        return f"no matches in {found.files} files{skipped}"
    return "\n".join(lines)
