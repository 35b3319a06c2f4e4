"""Tools whose effects are counted outside of what is tested, and a store whose writes can be made to fail."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.tools.spec import Arguments, ResourceClaim, ToolOutput, ToolSpec

ANY_OBJECT: dict[str, JsonValue] = {"type": "object"}


class OutsideWorld:
    """A file that no record of GEODE knows of. Each effect is a line in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def happen(self, what: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(what + "\n")

    @property
    def effects(self) -> list[str]:
        if not self.path.exists():
            return []
        # Not `splitlines`: a text of a call may hold what Unicode calls the end of a line.
        return self.path.read_text(encoding="utf-8").split("\n")[:-1]


def tool(
    handler: Callable[[Arguments], Awaitable[Any]],
    *,
    name: str = "act",
    level: SafetyLevel = SafetyLevel.WRITE,
    schema: dict[str, JsonValue] | None = None,
    timeout_s: float = 60.0,
    resource: str | None = None,
    **more: Any,
) -> ToolSpec:
    """A tool around any handler, also one that breaks the contract of a handler."""
    if resource is not None:
        more["claims"] = lambda _: (ResourceClaim(resource=resource, exclusive=True),)
    return ToolSpec(
        name=name,
        description=f"The tool {name}.",
        input_schema=schema or dict(ANY_OBJECT),
        level=level,
        handler=handler,
        timeout_s=timeout_s,
        **more,
    )


def marking_tool(world: OutsideWorld, *, name: str = "mark", **more: Any) -> ToolSpec:
    """A tool whose effect is a line with its arguments. It gives way once before and once after."""

    async def mark(arguments: Arguments) -> ToolOutput:
        await asyncio.sleep(0)
        world.happen(f"{name} {json.dumps(dict(arguments), sort_keys=True, ensure_ascii=False)}")
        await asyncio.sleep(0)
        return ToolOutput(text="marked")

    return tool(mark, name=name, **more)


def returning(output: object) -> Callable[[Arguments], Awaitable[Any]]:
    async def run(_: Arguments) -> object:
        return output

    return run


def raising(error: BaseException) -> Callable[[Arguments], Awaitable[Any]]:
    async def run(_: Arguments) -> object:
        raise error

    return run


def fill_up(connection: sqlite3.Connection) -> None:
    """Let every write that needs another page fail as on a full disk."""
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")
