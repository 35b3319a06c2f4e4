"""How a reply leaves: whole or as events, late, cut short, broken off."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response, StreamingResponse

from geode.dev.fake_provider.log import RequestLog
from geode.dev.fake_provider.script import HttpReply, Step
from geode.dev.fake_provider.wire import Answer, Request, Wire

_EVENT_STREAM = "text/event-stream; charset=utf-8"


class ConnectionLost(Exception):  # noqa: N818  (named by what happened)
    """Raised out of a reply that has begun, so that the server drops the connection."""


def failed(reply: HttpReply, *, retry_after_s: float | None = None) -> Response:
    """Return an error as it leaves."""
    headers = dict(reply.headers)
    if retry_after_s is not None:
        headers["retry-after"] = str(retry_after_s).removesuffix(".0")
    return Response(reply.body, status_code=reply.status, headers=headers, media_type=reply.content_type)


def dropped() -> Response:
    """Return a reply that promises a body and loses the connection."""

    async def nothing() -> AsyncIterator[bytes]:
        raise ConnectionLost
        yield b""

    return StreamingResponse(nothing(), headers={"content-length": "1024"}, media_type="application/json")


def whole(answer: Answer) -> Response:
    """Return an answer in one piece."""
    return Response(answer.whole(), media_type="application/json")


def streamed(*, log: RequestLog, wire: Wire, request: Request, step: Step, answer: Answer) -> Response:
    """Return an answer as events, with what the step does to them."""
    events = answer.events()
    drop = False
    if step.stream_error is not None:
        events = events[: step.stream_error.after_events]
        events.append(wire.stream_error(step.stream_error.failure, request, events))
    elif step.cut is not None:
        events, drop = events[: step.cut.after_events], step.cut.drop
    content = _sent(log, events, event_s=step.event_ms / 1000, drop=drop)
    return StreamingResponse(content, headers={"cache-control": "no-cache"}, media_type=_EVENT_STREAM)


async def _sent(log: RequestLog, events: Sequence[str], *, event_s: float, drop: bool) -> AsyncIterator[bytes]:
    if not event_s:
        # In one piece: what nobody waits for between would be joined on its way as well.
        yield "".join(events).encode()
    else:
        left = True
        try:
            for event in events:
                await asyncio.sleep(event_s)
                yield event.encode()
            left = False
        finally:
            if left:  # cancelled: the client is gone
                log.abandon()
    if drop:
        raise ConnectionLost
