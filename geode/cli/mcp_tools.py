"""What of a folder a command gives to a session, or tells of: tools of MCP servers, hooks of the project."""

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


def tell_of_hooks(settings: "Settings", workspace: Path) -> None:
    """Say which hooks of the project do not run. The session's own timeline says so, too.

    Raises:
        ValueError: if no session can begin here, since hooks that were trusted are not what they were.
    """
    from geode.serve.project_hooks import find_project_hooks
    from geode.tools.mcp.trust import TrustStore

    for reason in find_project_hooks(settings.root, workspace, TrustStore(settings.root.mcp_trust)).left_out:
        tell(reason)


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
