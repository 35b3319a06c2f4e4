"""How tests start the two MCP servers of their own: settings, approvals and a manager for one of them."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geode.tools.mcp.manager import MCPServerManager
from geode.tools.mcp.settings import HttpServer, StdioServer, ToolPolicy
from geode.tools.mcp.sources import ConfiguredServer
from geode.tools.mcp.trust import TrustStore
from geode.tools.spec import ToolSpec

PROJECT = Path(__file__).parents[2]
EXTERNAL = ToolPolicy.model_validate({"level": "external", "data_class": "none"})
READ = ToolPolicy.model_validate({"level": "read", "data_class": "none"})


@dataclass(slots=True)
class Started:
    """A manager with one server, everything that it noted, and the folder where the server counts its effects."""

    manager: MCPServerManager
    trust: TrustStore
    folder: Path
    notes: list[str] = field(default_factory=list)

    def approve_all(self) -> None:
        rows = [(row.server.key, row.tool, row.listed) for row in self.manager.rows if row.listed is not None]
        for key in {key for key, _, _ in rows}:
            self.trust.approve(key, {tool: listed.as_approved for at, tool, listed in rows if at == key})

    @property
    def specs(self) -> dict[str, ToolSpec]:
        return {spec.name: spec for spec in self.manager.offer().specs}

    @property
    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    @property
    def log(self) -> str:
        return next((self.folder / "logs").iterdir()).read_text(encoding="utf-8")


def sdk_server(folder: Path, tools: Mapping[str, ToolPolicy], **more: Any) -> StdioServer:
    """The server of `tests.doubles.mcp_server` over stdio."""
    command = (sys.executable, "-m", "tests.doubles.mcp_server", str(folder))
    return StdioServer(transport="stdio", command=command, tools=dict(tools), **more)


def wire_server(folder: Path, behaviour: str, **more: Any) -> StdioServer:
    """The server of `tests.doubles.mcp_wire`, with the tool `echo`."""
    command = (sys.executable, "-S", str(PROJECT / "tests" / "doubles" / "mcp_wire.py"), str(folder), behaviour)
    return StdioServer(
        transport="stdio", command=command, **{"tools": {"echo": EXTERNAL}, "protocol": "2025-11-25", **more}
    )


@asynccontextmanager
async def started(
    folder: Path, settings: StdioServer | HttpServer, *, approve: bool = True, ours: Mapping[str, str] | None = None
) -> AsyncIterator[Started]:
    """Start one server, `odd`, and approve what it lists."""
    server = ConfiguredServer(name="odd", source=folder / "mcp.yaml", folder=PROJECT, settings=settings)
    trust, notes = TrustStore(folder / "trust.json"), list[str]()
    manager = MCPServerManager([server], trust=trust, ours=ours or {}, logs=folder / "logs", note=notes.append)
    async with manager:
        running = Started(manager, trust, folder, notes)
        if approve:
            running.approve_all()
        yield running
