"""A server at an address: streamable HTTP through the SDK, with bounds on what comes back, and through no proxy."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED

BODY_BYTES_MAX = 8 << 20
CONNECT_TIMEOUT_S = 10.0
UNREACHED = secrets.token_hex(16)
"""Marks the error that stands for a request which never left. No server can know it."""


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """Give what the server at `url` says, and where to write to it. Redirects are followed within its origin only."""
    client = httpx2.AsyncClient(
        headers=dict(headers),
        # How long a call may take is the tool's to say, so reading has no limit of its own.
        timeout=httpx2.Timeout(CONNECT_TIMEOUT_S, read=None),
        transport=_BoundedTransport(),
        trust_env=False,
    )
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=BODY_BYTES_MAX) as streams,
    ):
        yield streams


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """Bounds every response, and answers for a server that cannot be reached: one failed request costs only itself."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            problem = {"code": CONNECTION_CLOSED, "message": str(error) or type(error).__name__, "data": UNREACHED}
            return httpx2.Response(503, json={"jsonrpc": "2.0", "id": None, "error": problem}, request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = BODY_BYTES_MAX
        async for data in self._inner:
            left -= len(data)
            if left < 0:
                raise httpx2.ReadError(f"the response has more than {BODY_BYTES_MAX} bytes")
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()
