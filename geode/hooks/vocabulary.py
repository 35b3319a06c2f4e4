"""The words that a hook's command is spoken to in: those of hooks for Claude Code, so that existing ones can be used.

A tool of ours that has a counterpart there is told by that name, with that tool's keys and with paths on this machine;
a rewrite is translated back. A tool without a counterpart keeps its name and its keys. Matchers may use either name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from geode.authority import Arguments
from geode.hooks.outcomes import NoAnswer
from geode.hooks.points import (
    Compacting,
    Decision,
    HookEvent,
    PermissionAsked,
    PromptSubmitted,
    Rewrite,
    Stopping,
    ToolEnded,
    ToolProposed,
    TurnVerified,
    Verifying,
)

_MODEL_ROOT = PurePosixPath("/workspace")
_PATH_KEYS = frozenset({"path"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    name: str
    keys: Mapping[str, str]


_TOOLS: Mapping[str, _Tool] = {
    "shell": _Tool(name="Bash", keys={"command": "command", "timeout_s": "timeout"}),
    "read_file": _Tool(name="Read", keys={"path": "file_path", "start_line": "offset", "line_count": "limit"}),
    "write_file": _Tool(name="Write", keys={"path": "file_path", "content": "content"}),
    "edit_file": _Tool(name="Edit", keys={"path": "file_path", "old": "old_string", "new": "new_string"}),
    "search": _Tool(name="Grep", keys={"pattern": "pattern", "path": "path", "glob": "glob"}),
    "list_files": _Tool(name="LS", keys={"path": "path"}),
    "web_fetch": _Tool(name="WebFetch", keys={"url": "url"}),
    "delegate_task": _Tool(name="Task", keys={"task": "prompt"}),
}
_MS_PER_S = 1_000  # the other side counts a shell command's limit in milliseconds


class Vocabulary:
    """Translates events and rewrites. It has no state."""

    def matches(self, matcher: str, tool: str) -> bool:
        """Return whether `matcher` (a name, `A|B`, a regular expression, or empty for all) means `tool`."""
        if matcher in ("", "*"):
            return True
        names = [tool, _TOOLS[tool].name] if tool in _TOOLS else [tool]
        return any(re.fullmatch(matcher, name) for name in names)

    def event(self, event: HookEvent, workspace: Path) -> dict[str, JsonValue]:
        """Return what a command is told of `event`, besides what it is told of the session."""
        match event:
            case PromptSubmitted():
                return {"prompt": event.text}
            case ToolProposed() | PermissionAsked():
                return _call(event.tool, event.arguments, workspace)
            case ToolEnded():
                response: dict[str, JsonValue] = {"text": event.text, "is_error": event.is_error}
                return {**_call(event.tool, event.arguments, workspace), "tool_response": response}
            case Compacting():
                return {"trigger": "auto", "tokens": event.tokens, "tokens_max": event.tokens_max}
            case Verifying():
                return {"answer": event.answer, "repairs_left": event.repairs_left}
            case TurnVerified():
                return {
                    "answer": event.answer,
                    "passed": event.passed,
                    "reasons": list(event.reasons),
                    "repairs_left": event.repairs_left,
                }
            case Stopping():
                return {"answer": event.answer, "stop_hook_active": event.continuations_left <= 0}

    def decision(self, decision: Decision, event: HookEvent, workspace: Path) -> Decision:
        """Translate a rewrite back into the keys of our tool.

        Raises:
            NoAnswer: if it names a key that the tool does not have.
        """
        if not isinstance(decision, Rewrite) or not isinstance(event, ToolProposed) or event.tool not in _TOOLS:
            return decision
        ours = {theirs: key for key, theirs in _TOOLS[event.tool].keys.items()}
        if unknown := sorted(decision.arguments.keys() - ours.keys()):
            raise NoAnswer(f"updatedInput.{unknown[0]} is no key of {_TOOLS[event.tool].name}")
        arguments = {ours[key]: _back(ours[key], value, workspace) for key, value in decision.arguments.items()}
        return replace(decision, arguments=arguments)


def _call(tool: str, arguments: Arguments, workspace: Path) -> dict[str, JsonValue]:
    if tool not in _TOOLS:
        return {"tool_name": tool, "tool_input": dict(arguments)}
    keys = _TOOLS[tool].keys
    told = {keys.get(key, key): _there(key, value, workspace) for key, value in arguments.items()}
    return {"tool_name": _TOOLS[tool].name, "tool_input": told}


def _there(key: str, value: JsonValue, workspace: Path) -> JsonValue:
    if key == "timeout_s" and isinstance(value, int | float):
        return round(value * _MS_PER_S)
    if key not in _PATH_KEYS or not isinstance(value, str):
        return value
    path = PurePosixPath(value)
    if path.is_relative_to(_MODEL_ROOT):
        path = path.relative_to(_MODEL_ROOT)
    return str(workspace / path)


def _back(key: str, value: JsonValue, workspace: Path) -> JsonValue:
    if key == "timeout_s" and isinstance(value, int | float):
        return value / _MS_PER_S
    if key not in _PATH_KEYS or not isinstance(value, str) or not Path(value).is_relative_to(workspace):
        return value
    return Path(value).relative_to(workspace).as_posix()
