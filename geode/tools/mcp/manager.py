"""The servers of a process: started together, ended together, and the tools that they offer to each new session."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from geode.redaction import Redactor
from geode.tools.mcp.connection import Connection, ServerUnusable
from geode.tools.mcp.environment import given_values
from geode.tools.mcp.offer import Standing, ToolRow, judge, tool_spec
from geode.tools.mcp.sources import ConfiguredServer
from geode.tools.mcp.trust import TrustStore
from geode.tools.plan import ExtraTools


class MCPServerManager:
    """Owns the connections to MCP servers. Use it as an async context manager, entered and left in one task.

    Args:
        servers: the servers to start; whoever calls has seen to it that they may be.
        trust: what the owner approved.
        ours: our own environment, of which servers get what their settings name.
        logs: the folder where each server's standard error is kept.
        note: is told, in words, what the owner should know of a server.
    """

    def __init__(
        self,
        servers: Sequence[ConfiguredServer],
        *,
        trust: TrustStore,
        ours: Mapping[str, str],
        logs: Path,
        note: Callable[[str], None],
    ) -> None:
        self._trust, self._note = trust, note
        self._connections = {
            server.name: Connection(
                server,
                ours=ours,
                log=logs / f"{server.name}.log",
                redactor=_redactor(server, ours),
                changed=self._renew,
                note=partial(self._told, server.name),
            )
            for server in servers
        }
        self._listed: dict[str, str] = {}
        self.unusable: dict[str, str] = {}
        self.generation = 1

    async def __aenter__(self) -> Self:
        """Start every server. One that cannot be started, or takes too long, costs only its own tools."""
        try:
            started = await asyncio.gather(
                *(connection.start() for connection in self._connections.values()), return_exceptions=True
            )
        except BaseException:
            await self._end_all()
            raise
        for name, problem in zip(self._connections, started, strict=True):
            if isinstance(problem, ServerUnusable):
                self.unusable[name] = str(problem)
                self._note(f"MCP server {name!r} cannot be used: {problem}")
            elif problem is not None:
                await self._end_all()
                raise problem
        self._listed = _listed(self.rows)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every server."""
        await self._end_all()

    @property
    def rows(self) -> tuple[ToolRow, ...]:
        """Where every tool of every usable server stands now."""
        usable = [c for name, c in self._connections.items() if name not in self.unusable]
        return judge([(connection.server, connection.tools) for connection in usable], self._trust)

    @property
    def set_aside(self) -> tuple[ToolRow, ...]:
        """The tools that the owner declared and that are not offered all the same."""
        return tuple(row for row in self.rows if row.standing not in (Standing.READY, Standing.UNDECLARED))

    def offer(self) -> ExtraTools:
        """The tools that a session may bind from now on. Sessions that are open keep what they have."""
        return ExtraTools(
            generation=self.generation,
            specs=tuple(
                tool_spec(row, self._connections[row.server.name])
                for row in self.rows
                if row.standing is Standing.READY
            ),
        )

    def _told(self, server: str, text: str) -> None:
        self._note(f"MCP server {server!r}: {text}")

    def _renew(self) -> None:
        """Begin a new generation if a server lists something else, and say what."""
        before, now = self._listed, _listed(self.rows)
        self._listed = now
        if differences := [
            *(f"{tool} is new" for tool in now.keys() - before.keys()),
            *(f"{tool} is gone" for tool in before.keys() - now.keys()),
            *(f"{tool} has changed" for tool in now.keys() & before.keys() if now[tool] != before[tool]),
        ]:
            self.generation += 1
            self._note(
                f"the tools of MCP servers have changed ({'; '.join(sorted(differences))}): open sessions keep their"
                f" plan, generation {self.generation} is for new ones"
            )

    async def _end_all(self) -> None:
        await asyncio.gather(*(connection.aclose() for connection in self._connections.values()))


def _redactor(server: ConfiguredServer, ours: Mapping[str, str]) -> Redactor:
    given = {f"{at}_SECRET": value for at, value in enumerate(given_values(server.settings, ours))}
    return Redactor.of_environment({**ours, **given})


def _listed(rows: Sequence[ToolRow]) -> dict[str, str]:
    """The fingerprint of each listed tool, by a name that is safe to show."""
    return {ascii(f"{row.server.name}/{row.tool}"): row.listed.fingerprint for row in rows if row.listed is not None}
