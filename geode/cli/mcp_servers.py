"""`geode mcp-servers`: the servers whose tools sessions may use, and what of them the owner has approved."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from geode.cli.asking import agreed, say

if TYPE_CHECKING:
    from geode.config.settings import Settings
    from geode.tools.mcp.manager import MCPServerManager
    from geode.tools.mcp.offer import ToolRow
    from geode.tools.mcp.settings import HttpServer, StdioServer, ToolPolicy
    from geode.tools.mcp.sources import FoundServers
    from geode.tools.mcp.trust import TrustStore

_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")
_WORKSPACE = typer.Option(Path(), help="The project's folder; its servers stand in .geode/mcp.yaml.")
_EXTRA = "  "
_SCHEMA_CHARS_MAX = 2_000


def register(app: typer.Typer) -> None:
    """Add `mcp-servers`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Tools of MCP servers: list, check, trust.")
    group.command("ls", epilog="Example:  geode mcp-servers ls")(list_servers)
    group.command("check", epilog="Example:  geode mcp-servers check --workspace .")(check)
    group.command("trust", epilog="Example:  geode mcp-servers trust --workspace .")(trust)
    app.add_typer(group, name="mcp-servers")


def list_servers(workspace: Path = _WORKSPACE, root: Path = _ROOT) -> None:
    """List the servers that are configured, and what their tools may do. Nothing is started."""
    from geode.cli.mcp_tools import tell
    from geode.cli.state import settings_of

    settings = settings_of(root)
    found, _ = _found(settings, workspace)
    for problem in found.problems:
        tell(problem)
    for server in found.servers:
        say(f"{server.name}  {_reached(server.settings)}  ({server.source})")
        for tool, policy in server.settings.tools.items():
            say(f"{_EXTRA}{tool}  {_may(policy)}")
    if not found.servers:
        typer.echo(f"no server; name one in {settings.root.mcp_settings}", err=True)


def check(workspace: Path = _WORKSPACE, root: Path = _ROOT) -> None:
    """Start every server and say where each of its tools stands, with what is missing before it can be called.

    Exit code 1: a server cannot be used, or a declared tool is not offered.
    """
    import asyncio

    from geode.cli.mcp_tools import tell
    from geode.cli.state import settings_of

    settings = settings_of(root)
    found, trusted = _found(settings, workspace)
    for problem in found.problems:
        tell(problem)

    async def show() -> bool:
        async with _manager(settings, found, trusted) as manager:
            for row in manager.rows:
                _show(row)
            return not (manager.unusable or manager.set_aside)

    if not asyncio.run(show()):
        raise typer.Exit(1)


def trust(
    workspace: Path = _WORKSPACE,
    yes: bool = typer.Option(False, "--yes", help="Approve what is shown without asking, as a script must."),
    root: Path = _ROOT,
) -> None:
    """Look at what is new or has changed, and approve it: a project's settings, then what servers say of their tools.

    Only tools that the settings declare are asked about. An approval is of exactly what was shown.
    """
    import asyncio

    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.tools.mcp.offer import Standing

    settings = settings_of(root)
    found, trusted = _found(settings, workspace)
    project = found.project
    if project is not None and not project.is_trusted:
        typer.echo(f"{project.path} would add these servers:")
        for name, server in project.content.servers.items():
            say(f"{_EXTRA}{name}  {_reached(server)}")
            for tool, policy in server.tools.items():
                say(f"{_EXTRA * 2}{tool}  {_may(policy)}")
        if not agreed("Start them in this project from now on?", yes=yes):
            fail("nothing was trusted", 2)
        trusted.trust_file(project.path, project.digest)
        found, _ = _found(settings, workspace)

    async def approve() -> int:
        approved = 0
        async with _manager(settings, found, trusted) as manager:
            for row in manager.rows:
                if row.standing not in (Standing.UNAPPROVED, Standing.CHANGED) or row.listed is None:
                    continue
                _show(row)
                if agreed(f"Approve {row.tool!a} of {row.server.name} as it is?", yes=yes):
                    trusted.approve(row.server.key, {row.tool: row.listed.as_approved})
                    approved += 1
        return approved

    typer.echo(f"{asyncio.run(approve())} tools approved")


def _found(settings: "Settings", workspace: Path) -> "tuple[FoundServers, TrustStore]":
    from geode.cli.failure import fail
    from geode.tools.mcp.settings import BadServerSettings
    from geode.tools.mcp.sources import find_servers
    from geode.tools.mcp.trust import TrustStore, TrustUnreadable

    try:
        trusted = TrustStore(settings.root.mcp_trust)
        return find_servers(settings.root, workspace, trusted), trusted
    except (BadServerSettings, TrustUnreadable) as error:
        fail(str(error), 2)


def _manager(settings: "Settings", found: "FoundServers", trusted: "TrustStore") -> "MCPServerManager":
    from geode.cli.mcp_tools import tell
    from geode.tools.mcp.manager import MCPServerManager

    return MCPServerManager(
        found.servers, trust=trusted, ours=settings.environment, logs=settings.root.mcp_logs, note=tell
    )


def _reached(server: "StdioServer | HttpServer") -> str:
    from geode.tools.mcp.settings import StdioServer

    if not isinstance(server, StdioServer):
        taken = f", headers from {', '.join(server.headers_from.values())}" if server.headers_from else ""
        return f"{server.url}{taken}"
    taken = f", with {', '.join(server.environment_from.values())}" if server.environment_from else ""
    return f"{' '.join(server.command)}{taken}"


def _show(row: "ToolRow") -> None:
    """Show a tool as its server describes it."""
    import json

    from geode.tools.mcp.offer import Standing

    lines = [f"{row.server.name}  {row.tool}  {row.standing.value}" + (f"  as {row.name}" if row.name else "")]
    if row.policy is not None:
        lines.append(f"{_EXTRA}may: {_may(row.policy)}")
    if row.standing is not Standing.READY and row.detail:
        lines += [f"{_EXTRA}{line}" for line in row.detail.splitlines()]
    if row.listed is not None and row.standing in (Standing.UNAPPROVED, Standing.UNDECLARED):
        lines += [f"{_EXTRA}it says: {line}" for line in row.listed.description.splitlines()]
        lines.append(f"{_EXTRA}it takes: {json.dumps(row.listed.input_schema, ensure_ascii=False)[:_SCHEMA_CHARS_MAX]}")
        if row.listed.hints:
            lines.append(f"{_EXTRA}it claims, which gives no right: {', '.join(row.listed.hints)}")
    if row.standing is Standing.UNDECLARED:
        lines.append(f"{_EXTRA}to declare it, add to {row.server.source}, under servers.{row.server.name}.tools:")
        lines.append(f'{_EXTRA * 2}"{row.tool}": {{level: external, data_class: personal}}')
    say("\n".join(lines))


def _may(policy: "ToolPolicy") -> str:
    return f"{policy.level.name.lower()}, {policy.data_class.name.lower()} data"
