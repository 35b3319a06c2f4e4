"""One SDK client for each event loop: it is used again, and closed when the loop or its owner goes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from functools import cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, finalize, ref

if TYPE_CHECKING:
    import httpx2

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ReplyLengthError(Exception):
    """A reply that is longer than any that somebody can want; it is read no further."""


class Closable(Protocol):
    """What the SDKs' asynchronous clients share."""

    async def close(self) -> None:
        """Close all connections."""
        ...


C = TypeVar("C", bound=Closable)


class PerLoop(Generic[C]):
    """Makes a client where a loop needs one. Nobody has to close it.

    A loop ends its asynchronous generators before it ends, so a generator holds each client. Until then the generator
    is out of reach of the garbage collector, which would tear open connections apart in any order.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[C], C]] = WeakKeyDictionary()

    async def get(self) -> C:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        if (held := self._held.get(loop)) is not None:
            return held[1]
        client = self._make()
        holder = _hold(client)
        self._held[loop] = (holder, client)
        finalize(self, _let_go, ref(loop), holder).atexit = False
        await anext(holder)
        return client


async def _hold(client: C) -> AsyncGenerator[C]:
    try:
        yield client
    finally:
        await client.close()


def _let_go(loop: ref[asyncio.AbstractEventLoop], holder: AsyncGenerator[C]) -> None:
    """Close a client whose owner is gone, if its loop still runs."""
    if (living := loop()) is not None and not living.is_closed():
        living.call_soon_threadsafe(lambda: living.create_task(holder.aclose()))


def is_loopback(base_url: str) -> bool:
    """Return whether the address is this host: a proxy of the environment has no business there."""
    return urlsplit(base_url).hostname in _LOOPBACK


@cache
def tls() -> ssl.SSLContext:
    """Return the one TLS context of this process: reading the trusted certificates takes longer than many a call."""
    import httpx2  # noqa: PLC0415  (a tenth of a second that only a call may cost)

    return httpx2.create_ssl_context()


async def bounded(response: "httpx2.Response") -> None:
    """Bound the length of a reply whose body is still to come. It is a hook of a client for its responses."""
    from geode.llm.bounded import bound  # noqa: PLC0415  (loads a library that only a call may cost)

    bound(response)
