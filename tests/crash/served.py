"""How a life has an MCP server: started as by a command, and held in mid-call so that it can be broken there."""

import asyncio
import errno
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from geode.config.paths import StateRoot
from geode.tools.mcp.manager import MCPServerManager
from geode.tools.mcp.sources import find_servers
from geode.tools.mcp.trust import TrustStore
from geode.tools.plan import NO_EXTRA_TOOLS, ExtraTools
from geode.tools.spec import Arguments, ToolHandler, ToolOutput
from tests.crash import server
from tests.crash.points import At, Point

_POLL_S = 0.0005


def install(root: StateRoot, folder: Path) -> None:
    """Write settings with the server, which keeps its log in `folder`."""
    # Without site-packages it starts in 15 ms; a run starts it up to four times.
    command = [sys.executable, "-I", "-S", server.__file__, str(folder)]
    tools = {server.TOOL: {"level": "write", "data_class": "none"}}
    settings = {"transport": "stdio", "command": command, "protocol": "2025-11-25", "tools": tools}
    root.mcp_settings.write_text(json.dumps({"schema": "geode.mcp/1", "servers": {server.SERVER: settings}}))
    os.mkfifo(folder / server.HELD)


@asynccontextmanager
async def offered(root: StateRoot, folder: Path, at: At) -> AsyncIterator[ExtraTools]:
    """Start the server that is installed, approve what it lists, and end it; offer nothing if there is none."""
    trust = TrustStore(root.mcp_trust)
    servers = find_servers(root, None, trust).servers
    if not servers:
        yield NO_EXTRA_TOOLS
        return
    async with MCPServerManager(servers, trust=trust, ours={}, logs=root.mcp_logs, note=lambda _: None) as manager:
        for row in manager.rows:
            if row.listed is not None:
                trust.approve(row.server.key, {row.tool: row.listed.as_approved})
        offer = manager.offer()
        specs = (replace(spec, handler=_held(spec.handler, folder / server.HELD, at)) for spec in offer.specs)
        yield replace(offer, specs=tuple(specs))


def _held(handler: ToolHandler, held: Path, at: At) -> ToolHandler:
    """Pass a point when the server has done what it was asked for, and before it can say so."""

    async def call(arguments: Arguments, /) -> ToolOutput:
        answer = asyncio.ensure_future(handler(arguments))
        try:
            if (hold := await _taken(held, answer)) is not None:
                try:
                    await at.later(Point.SERVER_CALLED)
                finally:
                    os.close(hold)  # this lets it answer
            return await answer
        finally:
            answer.cancel()

    return call


async def _taken(held: Path, answer: "asyncio.Future[ToolOutput]") -> int | None:
    """Wait until the server reads from `held`; None if its call ended before."""
    while not answer.done():
        try:
            return os.open(held, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        await asyncio.sleep(_POLL_S)
    return None
