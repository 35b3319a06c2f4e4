"""One server over its lives: one task owns each connection, and a server that ended is started again for the next call.

A call is sent at most once. What a dead server did with it is not found out by asking a second time.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from mcp.shared.exceptions import MCPError

from geode.redaction import Redactor
from geode.tools.mcp.environment import server_environment, server_headers
from geode.tools.mcp.http import http_streams
from geode.tools.mcp.listing import ListedTool
from geode.tools.mcp.plain import plain_text
from geode.tools.mcp.serverlog import ServerLog
from geode.tools.mcp.session import BadListing, ServerSession, open_session
from geode.tools.mcp.settings import BadServerSettings, StdioServer
from geode.tools.mcp.sources import ConfiguredServer
from geode.tools.mcp.stdio import ChildServer, child_streams
from geode.tools.spec import Arguments, ToolFailed, ToolOutput

CLOSE_TIMEOUT_S = 5.0
LIST_TIMEOUT_S = 10.0
RELISTS_MAX = 50  # in one life: a server that changes its list without end is not followed for ever
_PROBLEM_CHARS_MAX = 500


class ServerUnusable(Exception):  # noqa: N818  (it names the server's state)
    """A server could not be started, or does not answer as one."""


class Connection:
    """A server that can be called. `changed` is told when its list of tools is another one, `note` all else."""

    def __init__(
        self,
        server: ConfiguredServer,
        *,
        ours: Mapping[str, str],
        log: Path,
        redactor: Redactor,
        changed: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self.server = server
        self.tools: Mapping[str, ListedTool] = {}
        self.starts = 0
        self.protocol_version = ""
        self._ours, self._log, self._redactor = ours, log, redactor
        self._changed, self._note = changed, note
        self._session: ServerSession | None = None
        self._owner: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._wake, self._current = asyncio.Event(), asyncio.Event()
        self._lost = self._closing = False
        self._changes_heard = 0
        self._fingerprints: dict[str, str] | None = None  # of the last list, also that of an earlier life

    async def start(self) -> None:
        """Start or reach the server and read its tools, within its time.

        Raises:
            ServerUnusable: if that fails; nothing of it is left.
        """
        self.starts += 1
        self._lost = False
        self._current.clear()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(ready))
        limit_s = self.server.settings.start_timeout_s
        try:
            await asyncio.wait({ready}, timeout=limit_s)
            if not ready.done():
                raise ServerUnusable(f"it was not ready within {limit_s:g} s; what it says is in {self._log}")
            ready.result()
        except BaseException:
            await self._end_owner()
            if not ready.cancelled():
                ready.exception()  # it is told above, or nobody waits for it
            raise

    async def call(self, tool: ListedTool, arguments: Arguments, /) -> ToolOutput:
        """Call `tool` as it was when the caller's plan was frozen.

        Raises:
            ToolFailed: if nothing was sent.
            CallUnanswered: if it was sent, and nobody knows how it ended.
        """
        session = await self._live()
        listed = self.tools.get(tool.name)
        if listed is None:
            raise ToolFailed(f"the server {self.server.name!r} no longer has the tool {tool.name!r}; use another one")
        if listed.fingerprint != tool.fingerprint:
            raise ToolFailed(
                f"the server {self.server.name!r} has changed the tool {tool.name!r} since this session began; it can"
                " be used again in a new session, once the change is approved"
            )
        output = await session.call(tool.name, arguments)
        return ToolOutput(text=self._redactor.redact(output.text), is_error=output.is_error)

    async def aclose(self) -> None:
        """End the server and everything that it started."""
        self._closing = True
        self._wake.set()
        await self._end_owner()

    async def _live(self) -> ServerSession:
        """The open conversation; a new one if the last has ended, as often as the settings allow."""
        async with self._starting:
            if self._session is None or self._session.is_closed or self._lost:
                await self._start_again()
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                await self._current.wait()
        except TimeoutError:
            raise ToolFailed(f"the server {self.server.name!r} changed its tools and does not say how") from None
        if self._session is None or self._session.is_closed:
            raise ToolFailed(f"the server {self.server.name!r} has just ended; nothing was sent")
        return self._session

    async def _start_again(self) -> None:
        name, limit = self.server.name, self.server.settings.restarts_max
        if self._closing or self.starts > limit:
            raise ToolFailed(f"the server {name!r} has ended, and is not started more than {limit} times again")
        await self._end_owner()
        try:
            await self.start()
        except ServerUnusable as error:
            raise ToolFailed(f"the server {name!r} has ended and cannot be started again: {error}") from error
        self._note("it had ended, and was started again for this call")

    async def _own(self, ready: "asyncio.Future[None]") -> None:
        """Enter the connection, serve it, and leave it: all in this task, as the SDK's scopes demand."""
        try:
            streams = self._streams()
            settings = self.server.settings
            async with open_session(
                streams, protocol=settings.protocol, list_changed=self._stale, note=self._note
            ) as session:
                await self._read_tools(session)
                self._session, self.protocol_version = session, session.protocol_version
                ready.set_result(None)
                await self._serve(session)
        except Exception as error:  # noqa: BLE001  (a foreign program's faults: told to whoever waits, or noted)
            problem = f"{_in_words(error)}; what it says is in {self._log}"
            if ready.done():
                self._note(f"its connection ended: {problem}")
            else:
                ready.set_exception(ServerUnusable(problem))
        finally:
            self._session = None
            self._current.set()
            if not ready.done():
                ready.cancel()

    async def _serve(self, session: ServerSession) -> None:
        for _ in range(RELISTS_MAX):
            while self._current.is_set() and not self._closing and not self._lost:
                await self._wake.wait()
                self._wake.clear()
            if self._closing or self._lost:
                return
            async with asyncio.timeout(LIST_TIMEOUT_S):
                await self._read_tools(session)
        raise BadListing(f"it changed its list of tools {RELISTS_MAX} times")

    async def _read_tools(self, session: ServerSession) -> None:
        heard, before = self._changes_heard, self._fingerprints
        self.tools = {tool.name: tool for tool in await session.list_tools()}
        self._fingerprints = {name: tool.fingerprint for name, tool in self.tools.items()}
        if heard == self._changes_heard:
            self._current.set()
        if before is not None and before != self._fingerprints:
            self._changed()

    def _streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        settings = self.server.settings
        if not isinstance(settings, StdioServer):
            return http_streams(settings.url, server_headers(settings, self._ours))
        return child_streams(
            ChildServer(
                command=settings.command,
                folder=self.server.folder,
                environment=server_environment(settings, self._ours),
                log=ServerLog(self._log, self._redactor),
                note=self._note,
                lost=self._is_lost,
            )
        )

    def _stale(self) -> None:
        self._changes_heard += 1
        self._current.clear()
        self._wake.set()

    def _is_lost(self) -> None:
        self._lost = True
        self._wake.set()

    async def _end_owner(self) -> None:
        owner, self._owner = self._owner, None
        if owner is None:
            return
        if not self._closing and not self._lost:
            owner.cancel()
        done, _ = await asyncio.wait({owner}, timeout=CLOSE_TIMEOUT_S)
        if not done:
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_TIMEOUT_S)


def _in_words(error: BaseException) -> str:
    """Say the first cause: groups of tasks wrap it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case MCPError():
            text = error.error.message
        case BadListing() | BadServerSettings():
            text = str(error)
        case TimeoutError():
            text = "it did not answer in time"
        case OSError(strerror=str() as reason, filename=name) if name is not None:
            text = f"{name}: {reason}"
        case _:
            text = f"{type(error).__name__}: {error}"
    return plain_text(text, _PROBLEM_CHARS_MAX)
