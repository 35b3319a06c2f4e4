"""One SDK client for each event loop: it is used again, and closed when the loop or its owner goes."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Closable(Protocol):
    """What the SDKs' asynchronous clients share."""

    async def close(self) -> None:
        """Close all connections."""
        ...


C = TypeVar("C", bound=Closable)


class PerLoop(Generic[C]):
    """Makes a client where a loop needs one. Nobody has to close it.

    A loop ends its asynchronous generators before it ends, and one that nobody refers to any longer at once; so a
    generator holds each client.
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
        await anext(holder)
        return client


async def _hold(client: C) -> AsyncGenerator[C]:
    try:
        yield client
    finally:
        await client.close()


def is_loopback(base_url: str) -> bool:
    """Return whether the address is this host: a proxy of the environment has no business there."""
    return urlsplit(base_url).hostname in _LOOPBACK
