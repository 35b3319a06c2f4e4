"""A reply without end is read no further than somebody can want it."""

from collections.abc import AsyncIterator, Iterable

import httpx2
import pytest

from geode.llm.bounded import BODY_BYTES_MAX, STREAM_BYTES_MAX, Bounded, bound
from geode.llm.clients import ReplyLengthError


class Parts(httpx2.AsyncByteStream):
    def __init__(self, parts: Iterable[bytes]) -> None:
        self.parts = iter(parts)
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part

    async def aclose(self) -> None:
        self.closed = True


def without_end(part: bytes) -> Iterable[bytes]:
    while True:
        yield part


async def test_a_reply_within_its_bound_comes_as_it_is() -> None:
    assert [part async for part in Bounded(Parts([b"abc", b"de"]), 5)] == [b"abc", b"de"]


async def test_a_reply_without_end_is_read_up_to_its_bound() -> None:
    got: list[bytes] = []
    with pytest.raises(ReplyLengthError, match="longer than 10 bytes"):
        got.extend([part async for part in Bounded(Parts(without_end(b"x\n\n")), 10)])


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
async def test_an_event_without_end_is_read_up_to_its_bound_and_many_short_ones_are_taken(end: bytes) -> None:
    short = [b"data: 1" + end] * 100
    assert [part async for part in Bounded(Parts(short), 10_000, 20)] == short
    with pytest.raises(ReplyLengthError, match="an event of the reply is longer than 20 bytes"):
        async for _ in Bounded(Parts([*short, *[b"data: 1"] * 3]), 10_000, 20):
            pass


@pytest.mark.parametrize(
    ("headers", "most", "of_event"),
    [
        ({"content-type": "text/html"}, BODY_BYTES_MAX, BODY_BYTES_MAX),
        ({"content-type": "text/event-stream; charset=utf-8"}, STREAM_BYTES_MAX, BODY_BYTES_MAX),
        ({"content-type": "text/event-stream", "content-encoding": "gzip"}, STREAM_BYTES_MAX, STREAM_BYTES_MAX),
    ],
)
async def test_a_stream_may_be_longer_than_an_event_and_a_body(
    headers: dict[str, str], most: int, of_event: int
) -> None:
    """In what is compressed no end of an event can be seen."""
    source = Parts(())
    response = httpx2.Response(200, headers=headers, stream=source)

    bound(response)

    assert isinstance(response.stream, Bounded)
    assert (response.stream._bytes_max, response.stream._event_bytes_max) == (most, of_event)
    await response.aclose()
    assert source.closed
