"""How long a reply may be: whoever answers, a proxy or a provider that went wrong, must not fill our memory.

The SDKs read the body of an error whole, and copy an event of a stream again with each piece that comes of it.
"""

from collections.abc import AsyncIterator
from typing import Final

import httpx2

from geode.llm.clients import ReplyLengthError

STREAM_BYTES_MAX: Final = 256_000_000
"""Far more than the longest answer needs, with an event around each token."""
BODY_BYTES_MAX: Final = 8_000_000
"""Of a reply that is no stream, and of one event of a stream."""
_EVENT_ENDS: Final = (b"\n\n", b"\n\r\n")


class Bounded(httpx2.AsyncByteStream):
    """The bytes of a reply, up to so many in all, and to `event_bytes_max` in which no event ends."""

    def __init__(self, stream: httpx2.AsyncByteStream, bytes_max: int, event_bytes_max: int | None = None) -> None:
        self._stream = stream
        self._bytes_max = bytes_max
        self._event_bytes_max = event_bytes_max or bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the bytes as they come.

        Raises:
            ReplyLengthError: before it would yield more than it may.
        """
        whole = event = 0
        async for part in self._stream:
            whole += len(part)
            event = 0 if any(end in part for end in _EVENT_ENDS) else event + len(part)
            if whole > self._bytes_max:
                raise ReplyLengthError(f"the reply is longer than {self._bytes_max:,} bytes")
            if event > self._event_bytes_max:
                raise ReplyLengthError(f"an event of the reply is longer than {self._event_bytes_max:,} bytes")
            yield part

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._stream.aclose()


def bound(response: httpx2.Response) -> None:
    """Bound a reply whose body is still to come."""
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        return
    if "text/event-stream" not in response.headers.get("content-type", ""):
        response.stream = Bounded(response.stream, BODY_BYTES_MAX)
        return
    # Where its events end cannot be seen in a stream that is compressed.
    event_bytes_max = None if "content-encoding" in response.headers else BODY_BYTES_MAX
    response.stream = Bounded(response.stream, STREAM_BYTES_MAX, event_bytes_max)
