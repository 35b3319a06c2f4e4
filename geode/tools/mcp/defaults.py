"""Values that a server would fill in by itself, written into the call, so that policy, hooks and approver see them."""

from collections.abc import Sequence

from pydantic import JsonValue

from geode.tools.spec import ToolSpec


class DeclaredDefaults:
    """Request middleware for tools of MCP servers; other tools pass through it unchanged."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._defaults: dict[str, dict[str, JsonValue]] = {}
        for spec in specs:
            properties = spec.input_schema.get("properties")
            if isinstance(properties, dict):
                self._defaults[spec.name] = {
                    name: item["default"]
                    for name, item in properties.items()
                    if isinstance(item, dict) and item.get("default") is not None
                }

    def __call__(self, tool: str, arguments: dict[str, JsonValue], /) -> dict[str, JsonValue]:
        """Return the arguments with the declared value of each property that is not given."""
        missing = {name: value for name, value in self._defaults.get(tool, {}).items() if name not in arguments}
        return {**arguments, **missing} if missing else arguments
