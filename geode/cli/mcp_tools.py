"""How a command gives a session the tools of MCP servers. Where there are none it costs a look at two files."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from geode.config.settings import Settings
    from geode.tools.plan import ExtraTools


def tell(text: str) -> None:
    """Say it on standard error. Servers have a part in such texts, so what does not print is spelled out."""
    from geode.cli.shown import shown

    typer.echo("\n".join(shown(text).lines), err=True)


@asynccontextmanager
async def server_tools(settings: "Settings", workspace: Path) -> AsyncIterator["ExtraTools"]:
    """Start the owner's servers, and those of a trusted project, and end them with the session.

    Nobody is asked anything here: what is not trusted or not approved is left out, and told.

    Raises:
        ValueError: if the settings or the record of approvals cannot be used.
    """
    from geode.tools.mcp.sources import find_servers
    from geode.tools.mcp.trust import TrustStore
    from geode.tools.plan import NO_EXTRA_TOOLS

    trust = TrustStore(settings.root.mcp_trust)
    found = find_servers(settings.root, workspace, trust)
    for problem in found.problems:
        tell(problem)
    if not found.servers:
        yield NO_EXTRA_TOOLS
        return
    # The SDK takes half a second to import.
    from geode.tools.mcp.manager import MCPServerManager

    manager = MCPServerManager(
        found.servers, trust=trust, ours=settings.environment, logs=settings.root.mcp_logs, note=tell
    )
    async with manager:
        if waiting := len(manager.set_aside):
            tell(f"{waiting} tools of MCP servers are left out; the reasons: geode mcp-servers check")
        yield manager.offer()
