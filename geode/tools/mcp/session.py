"""A conversation with a connected server: its list of tools, calls, and nothing that it asks of us.

This module and the transports beside it own the MCP SDK. It is used below its convenience layer, which repeats a call
by itself (after a header mismatch, or to answer a question in mid-call) and validates answers by a stranger's patterns.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import anyio
from mcp.client import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.session import MessageHandlerFnT
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    Implementation,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    PaginatedRequestParams,
    RequestId,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, TypeAdapter, ValidationError

from geode import __version__
from geode.tools.mcp.http import UNREACHED
from geode.tools.mcp.listing import ListedTool, listed_tool
from geode.tools.mcp.plain import plain_text
from geode.tools.mcp.results import output_of
from geode.tools.mcp.settings import Protocol
from geode.tools.spec import Arguments, ToolFailed, ToolOutput

PAGES_MAX = 100
TOOLS_MAX = 1_000
_LISTENS_MAX = 5
_MESSAGE_CHARS_MAX = 1_000
_LIST = "tools/list"
# Answers by which a server says that it will not do the call. What else it answers may have come in mid-work.
_REFUSALS: Final = {
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
}
_Answer = CallToolResult | InputRequiredResult
_ANSWER: TypeAdapter[_Answer] = TypeAdapter(_Answer)

# The SDK logs what servers send, which is not for the terminal of whoever runs a session.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class CallUnanswered(Exception):  # noqa: N818  (it names what happened to the call)
    """A call was sent, and no answer tells how it ended."""


class BadListing(Exception):  # noqa: N818  (it names what is bad)
    """A server's list of tools cannot be read to its end."""


class ServerSession:
    """One open conversation. Calls may be made from any task."""

    def __init__(self, session: ClientSession, dispatcher: "_ToleratingDispatcher") -> None:
        self._session, self._dispatcher = session, dispatcher

    @property
    def protocol_version(self) -> str:
        """The revision that both sides speak."""
        return self._session.protocol_version or ""

    @property
    def is_closed(self) -> bool:
        """Whether a call can no longer be sent."""
        return self._dispatcher.is_closed

    async def list_tools(self) -> tuple[ListedTool, ...]:
        """Read the whole list.

        Raises:
            BadListing: if it has no end, or is no list.
            MCPError: if the server does not give it.
        """
        tools: dict[str, ListedTool] = {}
        cursor: str | None = None
        cursors: set[str] = set()
        for _ in range(PAGES_MAX):
            try:
                page = await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            except ValidationError as error:
                raise BadListing(f"its list of tools is malformed ({error.error_count()} mistakes)") from error
            usable = {tool.name for tool in page.tools}
            for tool in self._dispatcher.taken():
                if tool.name in tools:
                    raise BadListing(f"its list names {tool.name!r:.80} more than once")
                tools[tool.name] = tool if tool.name in usable or tool.problem else _refused_by_sdk(tool)
            if len(tools) > TOOLS_MAX:
                raise BadListing(f"it lists more than {TOOLS_MAX} tools")
            cursor = page.next_cursor
            if cursor is None:
                return tuple(tools.values())
            if cursor in cursors:
                raise BadListing(f"its list gives the page {cursor!r:.80} for ever")
            cursors.add(cursor)
        raise BadListing(f"its list has more than {PAGES_MAX} pages")

    async def call(self, tool: str, arguments: Arguments) -> ToolOutput:
        """Send one call, once, and wait for its answer as long as the caller does.

        Raises:
            ToolFailed: if nothing was sent.
            CallUnanswered: if it was sent, and nobody knows how it ended.
        """
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            answer = await self._session.send_request(request, _ANSWER)
        except MCPError as error:
            said = plain_text(error.error.message, _MESSAGE_CHARS_MAX)
            if error.error.data == UNREACHED:
                raise ToolFailed(f"the server could not be reached, so nothing was sent: {said}") from error
            if error.code in _REFUSALS:
                return ToolOutput(text=f"the server refuses this call: {said} ({error.code})", is_error=True)
            raise CallUnanswered(f"its server gave no answer: {said} ({error.code})") from error
        except ValidationError as error:
            raise CallUnanswered(f"its answer is malformed ({error.error_count()} mistakes)") from error
        if isinstance(answer, InputRequiredResult):
            raise CallUnanswered("it stopped to ask for input, which is always declined")
        return output_of(answer)


@asynccontextmanager
async def open_session(
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
    *,
    protocol: Protocol,
    list_changed: Callable[[], None],
    note: Callable[[str], None],
) -> AsyncIterator[ServerSession]:
    """Connect, agree on a revision, and listen for changes of the list.

    Raises:
        MCPError: if the server will not speak with us.
        RuntimeError: if it speaks no revision that is known.
    """

    async def heard(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            list_changed()

    async with streams as (said, outgoing):
        dispatcher = _ToleratingDispatcher(said, outgoing)
        session = _DecliningSession(dispatcher, heard, note)
        async with session, anyio.create_task_group() as group:
            await _agree(session, protocol)
            capabilities = session.server_capabilities
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS and capabilities and capabilities.tools:
                group.start_soon(_listen, session, list_changed)
            yield ServerSession(session, dispatcher)
            group.cancel_scope.cancel()


async def _agree(session: ClientSession, protocol: Protocol) -> None:
    if protocol is not Protocol.HANDSHAKE:
        try:
            await session.discover()
        except (MCPError, ValidationError, RuntimeError):
            if protocol is Protocol.STATELESS:
                raise
        else:
            return
    await session.initialize()


async def _listen(session: ClientSession, list_changed: Callable[[], None]) -> None:
    """Hear of changes where the revision wants to be asked for them. Without this the list is as old as the session."""
    for _ in range(_LISTENS_MAX):
        try:
            async with listen(session, tools_list_changed=True) as changes:
                async for _change in changes:
                    list_changed()
        except SubscriptionLost:
            pass
        except MCPError:
            return  # it does not offer this, or is gone
        list_changed()  # what changed before the next time it listens is unknown


class _DecliningSession(ClientSession):
    """Has no callbacks, so that it offers a server nothing to ask for; and notes who asks all the same."""

    def __init__(
        self,
        dispatcher: "_ToleratingDispatcher",
        heard: MessageHandlerFnT,
        note: Callable[[str], None],
    ) -> None:
        super().__init__(
            dispatcher=dispatcher,
            message_handler=heard,
            client_info=Implementation(name="geode", version=__version__),
        )
        self._note = note

    async def dispatch_input_request(
        self, ctx: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """Decline whatever the server asks of the user, the model or the file system."""
        del ctx
        self._note(f"it asked for {request.method}, which is always declined")
        return ErrorData(code=INVALID_REQUEST, message="declined: this client answers no questions of servers")


class _ToleratingDispatcher(JSONRPCDispatcher[TransportContext]):
    """Takes each listed tool on its own, where the SDK would refuse a whole page for one bad entry."""

    _page: tuple[ListedTool, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether the connection is gone. It is before anybody who waits for an answer is told."""
        return self._closed

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Send, and look through a page of tools before the SDK does."""
        raw = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        entries = raw.get("tools")
        if method != _LIST or not isinstance(entries, list):
            return raw
        listed = [(entry, listed_tool(entry)) for entry in entries[: TOOLS_MAX + 1]]
        self._page = tuple(tool for _, tool in listed if tool is not None)
        return {**raw, "tools": [_for_sdk(entry) for entry, tool in listed if tool is not None and not tool.problem]}

    def taken(self) -> tuple[ListedTool, ...]:
        """The tools of the last page."""
        page, self._page = self._page, ()
        return page


def _for_sdk(entry: dict[str, JsonValue]) -> dict[str, JsonValue]:
    # All that it needs of a tool: it mirrors arguments into headers where the schema says so.
    schema = entry["inputSchema"]
    assert isinstance(schema, dict)
    properties = schema.get("properties")
    kept: dict[str, JsonValue] = {}
    if isinstance(properties, dict):
        kept = {name: item for name, item in properties.items() if isinstance(item, dict)}
    return {"name": entry["name"], "inputSchema": {"type": "object", "properties": kept}}


def _refused_by_sdk(tool: ListedTool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        description=tool.description,
        fingerprint=tool.fingerprint,
        input_schema=None,
        hints=tool.hints,
        problem="an x-mcp-header of its input schema is invalid",
    )
