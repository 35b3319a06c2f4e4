"""Request middleware: ordinary functions that a call's arguments pass before policy looks at them."""

from collections.abc import Callable, Sequence

from pydantic import JsonValue

_ROOT = "/workspace"

RequestMiddleware = Callable[[str, dict[str, JsonValue]], dict[str, JsonValue]]
"""Takes a tool's name and its arguments and returns the arguments to go on with. It may raise `ToolFailed` to refuse.

It runs before scope is checked a second time, so whatever it makes is judged like the model's own words.
"""


def apply_middleware(
    chain: Sequence[RequestMiddleware], tool: str, arguments: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    """Pass `arguments` through the chain, in order."""
    for step in chain:
        arguments = step(tool, arguments)
    return arguments


def fold_workspace_paths(tool: str, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Give every spelling of a path below the workspace one form, so that hooks and locks see one name for one file."""
    path = arguments.get("path")
    # A name with "__" is that of another program's tool, whose paths are not ours.
    if tool == "shell" or "__" in tool or not isinstance(path, str):
        return arguments
    trimmed = path.strip()
    inside = trimmed == _ROOT or trimmed.startswith(f"{_ROOT}/") or not trimmed.startswith("/")
    if not inside:
        return arguments
    # ".." stays as it is: where it leads depends on links, which only the workspace can follow.
    parts = [part for part in trimmed.removeprefix(_ROOT).split("/") if part not in ("", ".")]
    folded = "/".join(parts) or "."
    return arguments if folded == path else {**arguments, "path": folded}
