"""The shell tool: one command in the workspace, in a fresh environment, with nothing left running afterwards."""

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Final

from pydantic import JsonValue

from geode.canonical import content_hash
from geode.redaction import clean_text
from geode.tools.command import named_paths, path_outside
from geode.tools.environment import LOCAL, Environment
from geode.tools.files import TREE_EXCLUSIVE, content_of
from geode.tools.output import Capture
from geode.tools.spec import Arguments, OutOfScope, ResourceClaim, SafetyLevel, ToolFailed, ToolOutput, ToolSpec
from geode.tools.workspace import MODEL_ROOT, Workspace, is_file

DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 600.0
_ENDING_S = 5.0  # what stopping and collecting a child may take beyond the command's own limit
_SIGNAL_CODES_FROM = 128  # as shells report a command that a signal ended
_NAMES_MAX = 500
_SCRIPT_BYTES_MAX = 64_000_000
_SCRIPTS = (
    ".sh",
    ".bash",
    ".py",
    ".pl",
    ".rb",
    ".js",
    ".mjs",
    ".ts",
    ".php",
    ".lua",
    ".awk",
    ".sed",
    "Makefile",
    ".mk",
)

_SCHEMA: Final[Mapping[str, JsonValue]] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "A POSIX shell command."},
        "timeout_s": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": MAX_TIMEOUT_S,
            "description": f"Seconds after which the command is stopped ({DEFAULT_TIMEOUT_S:g} by default).",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}
_DESCRIPTION = (
    f"Run a command with `sh -c` in {MODEL_ROOT}. Returns its exit code, then stdout and stderr as they came. "
    "There is no input, variables and folders are fresh for each call, and background processes end with the command."
)


def shell_tool(workspace: Workspace, environment: Environment = LOCAL) -> ToolSpec:
    """The `shell` tool on `workspace`, whose commands run in `environment`."""
    return ToolSpec(
        name="shell",
        description=_DESCRIPTION,
        input_schema=dict(_SCHEMA),
        level=SafetyLevel.EXECUTE,
        handler=partial(_run, workspace, environment),
        timeout_s=MAX_TIMEOUT_S + _ENDING_S + environment.overhead_s,
        check_scope=partial(check_scope, workspace),
        claims=_claims,
        basis=partial(_scripts, workspace),
    )


def check_scope(workspace: Workspace, arguments: Arguments) -> None:
    """Refuse a command whose text names a path outside the workspace and the standard places of tools, or by a link.

    This spares accidents. It is no sandbox: a command can build any path at run time.
    """
    command = arguments.get("command")
    if not isinstance(command, str):
        return
    path = path_outside(command) or next(
        (path for path in islice(named_paths(command), _NAMES_MAX) if _is_led_out(workspace, path)), None
    )
    if path is not None:
        raise OutOfScope(
            f"the command names {path[:200]!r}, which is outside {MODEL_ROOT}: use paths in the workspace, "
            "or $TMPDIR for scratch files of this one call"
        )


def _is_led_out(workspace: Workspace, path: str) -> bool:
    """Whether a link of the workspace leads `path` out of it. Dots are followed with the command's own folders."""
    first, *rest = path.removeprefix(f"{MODEL_ROOT}/").split("/")
    # Most words are no paths, which one look tells.
    if not first or ".." in (first, *rest) or not os.path.lexists(os.path.join(workspace.root, first)):
        return False
    try:
        workspace.resolve("/".join((first, *rest)))
    except OutOfScope:
        return True
    except ToolFailed:
        return False
    return False


def _claims(_: Arguments) -> tuple[ResourceClaim, ...]:
    return (TREE_EXCLUSIVE,)


def _scripts(workspace: Workspace, arguments: Arguments) -> str:
    """Name the scripts and programs of the workspace that the command names, by what they hold; nothing for none.

    What these load in turn is not looked at.
    """
    found: dict[str, str] = {}
    for path in islice(named_paths(str(arguments["command"])), _NAMES_MAX):
        try:
            with workspace.locate(path) as place:
                state = place.state()
                if state is not None and is_file(state):
                    content = content_of(place, _SCRIPT_BYTES_MAX)
                    if state.st_mode & 0o111 or content.startswith(b"#!") or place.name.endswith(_SCRIPTS):
                        found[place.relative] = hashlib.sha256(content).hexdigest()
        except ToolFailed:
            continue  # it names no file of the workspace
    return content_hash(found) if found else ""


async def _run(workspace: Workspace, environment: Environment, arguments: Arguments) -> ToolOutput:
    seen_as = environment.workspace_path(workspace.root)
    command = workspace.reveal(clean_text(str(arguments["command"])), seen_as)
    asked_s = arguments.get("timeout_s")
    timeout_s = float(asked_s) if isinstance(asked_s, int | float) else DEFAULT_TIMEOUT_S
    capture = Capture()
    finished = await environment.run(
        ("/bin/sh", "-c", command), workspace=workspace.root, timeout_s=timeout_s, capture=capture
    )
    output = workspace.hide(capture.text().replace(finished.home, "~"), seen_as).rstrip("\n")
    return ToolOutput(
        text=f"exit code: {_ending(finished.exit_code, timeout_s)}\n{output or '(no output)'}",
        is_error=finished.exit_code != 0,
    )


def _ending(exit_code: int | None, timeout_s: float) -> str:
    if exit_code is None:
        return (
            f"none (stopped at its time limit of {timeout_s:g} s with all that it had started; its output until then)"
        )
    if exit_code < 0:
        return f"{_SIGNAL_CODES_FROM - exit_code} (ended by signal {-exit_code})"
    return str(exit_code)
