"""Where on the network a fetch may go: public addresses only, decided on the address that is then connected to.

A name is resolved once, every address that it has is looked at, and the connection is made to one of those: so a name
that answers differently the second time gains nothing.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host name, as text."""

_EMBEDS_IPV4 = (
    ipaddress.ip_network("64:ff9b::/96"),  # RFC 6052: NAT64
    ipaddress.ip_network("64:ff9b:1::/48"),  # RFC 8215
    ipaddress.ip_network("2002::/16"),  # RFC 3056: 6to4
    ipaddress.ip_network("2001::/32"),  # RFC 4380: Teredo
)


class NotPublic(Exception):  # noqa: N818  (named by what is wrong)
    """A host has an address that only this machine or its network can reach."""


def is_public(address: str) -> bool:
    """Return whether anybody on the internet means the same machine by `address`."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        if any(found in network for network in _EMBEDS_IPV4):
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of `host`, as the system knows them.

    Raises:
        OSError: if it has none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class PublicNetwork(httpcore.AsyncNetworkBackend):
    """Connects to hosts all of whose addresses are allowed.

    Args:
        resolve: how names are looked up.
        allowed: which addresses are.
    """

    def __init__(self, resolve: Resolve = resolve, allowed: Callable[[str], bool] = is_public) -> None:
        self._resolve, self._allowed = resolve, allowed
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the library's own signature)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """See `httpcore.AsyncNetworkBackend`.

        Raises:
            NotPublic: naming the host and the address.
            httpcore.ConnectError: if nothing can be reached.
        """
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} has no address ({error.strerror or error})") from error
        for address in addresses:
            if not self._allowed(address):
                raise NotPublic(f"{host} is {address}, which is no address of the public network")
        problem: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  (the library's own signature)
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: a socket file is on this machine."""
        raise NotPublic(f"{path} is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        """See `httpcore.AsyncNetworkBackend`."""
        await self._inner.sleep(seconds)
