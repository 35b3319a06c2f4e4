"""One tool as its server lists it. What is wrong with it is its own problem, never that of the tools beside it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff

from pydantic import JsonValue

from geode.canonical import content_hash
from geode.tools.mcp.plain import plain_text
from geode.tools.mcp.schemas import cleaned_schema
from geode.tools.mcp.trust import ApprovedTool
from geode.tools.schema import BadSchema

DESCRIPTION_CHARS_MAX = 4_000
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SCHEMA_CHARS_SHOWN = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool, its cleaned description and schema, and the fingerprint of everything that its server said of it.

    `input_schema` is None if it cannot be used; `problem` says why. `hints` are what the server claims of the tool:
    they are shown, and give no right.
    """

    name: str
    description: str
    fingerprint: str
    input_schema: dict[str, JsonValue] | None = field(hash=False)
    hints: tuple[str, ...] = ()
    problem: str = ""

    @property
    def as_approved(self) -> ApprovedTool:
        """What is kept of the tool when it is approved as it is now."""
        schema = json.dumps(self.input_schema, ensure_ascii=False, indent=1)[:_SCHEMA_CHARS_SHOWN]
        return ApprovedTool(fingerprint=self.fingerprint, description=self.description, input_schema=schema)

    def difference(self, approved: ApprovedTool) -> str:
        """What changed since the tool was approved, line by line."""
        now = self.as_approved
        before = f"{approved.description}\n{approved.input_schema}".splitlines()
        after = f"{now.description}\n{now.input_schema}".splitlines()
        lines = unified_diff(before, after, "approved", "now", lineterm="", n=1)
        return "\n".join(lines) or "only what is not shown to the model has changed"


def listed_tool(raw: JsonValue) -> ListedTool | None:
    """Read one entry of a server's list, or return None if it has no name to speak of it by."""
    if not isinstance(raw, dict) or not isinstance(name := raw.get("name"), str) or not name:
        return None
    try:
        fingerprint = content_hash(raw)
    except (TypeError, ValueError, RecursionError):
        return ListedTool(name=name, description="", fingerprint="", input_schema=None, problem="it is not JSON")
    described = raw.get("description")
    description = plain_text(described, DESCRIPTION_CHARS_MAX) if isinstance(described, str) else ""
    schema: dict[str, JsonValue] | None = None
    problem = ""
    try:
        schema = cleaned_schema(raw.get("inputSchema"))
    except BadSchema as error:
        problem = f"its input schema cannot be used: {error}"
    return ListedTool(
        name=name,
        description=description,
        fingerprint=fingerprint,
        input_schema=schema,
        hints=_hints(raw.get("annotations")),
        problem=problem,
    )


def _hints(annotations: JsonValue) -> tuple[str, ...]:
    if not isinstance(annotations, Mapping):
        return ()
    return tuple(f"{hint}={annotations[hint]!s:.5}".lower() for hint in _HINTS if hint in annotations)
