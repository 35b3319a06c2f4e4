"""One streamed request through a provider's SDK: its events as they came, and each way to fail as an error of ours.

The SDKs parse an event into a class of theirs, which changes the order of its keys and guesses at what it does not
know. Asked for `object`, they hand on the JSON value itself; so does everything here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

from geode.llm.clients import ReplyLengthError
from geode.llm.errors import Facts, ProviderError, ResponseInvalid
from geode.llm.http_errors import connection_failed, not_json, provider_error, request_id_of, shown_headers, stream_cut
from geode.llm.messages import Delta
from geode.llm.routes import Route
from geode.llm.spending import NOT_BILLED
from geode.llm.usage import Usage
from geode.redaction import Redactor

if TYPE_CHECKING:
    import httpx2

_DRAIN_S: Final = 3.0
CONNECT_S_MAX: Final = 10.0
"""How long a connection may take: less than the first token of an answer."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# What a stranger sent, parsed. A reply that stumbles over it makes the whole response invalid.
Event: TypeAlias = Mapping[str, Any]


def as_json(body: Event) -> bytes:
    """Return the JSON of a request. A half surrogate, which UTF-8 cannot hold, goes back as the escape that it was."""
    try:
        return _encode(body).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()


def unseen(delta: Delta) -> None:
    """Take a part of a reply that nobody watches."""


class EventStream(Protocol):
    """What the SDKs' asynchronous streams share."""

    @property
    def response(self) -> "httpx2.Response":
        """The HTTP reply."""
        ...

    def __aiter__(self) -> AsyncIterator[object]: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, exc_tb: TracebackType | None
    ) -> None: ...


class Reply(Protocol):
    """Puts a response together from its events."""

    ended: bool
    """Whether its last event came."""
    headers: Mapping[str, str]
    """Those of the HTTP reply, set before the first event."""

    @property
    def last_event(self) -> str:
        """The name of the event without which it is cut."""
        ...

    def take(self, event: Event) -> None:
        """Take one event. It may raise `ProviderError`; `KeyError` and its like make the response invalid."""
        ...

    def usage(self) -> Usage | None:
        """Return what is known so far of what it is billed for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a provider says of an error, in its own words."""

    type: str = ""
    code: str = ""
    message: str = ""
    retryable: bool | None = None
    retry_after_s: float | None = None


def words_of(body: object) -> Words:
    """Read the words of an error body as Anthropic and OpenAI write them, and some that stand before their APIs."""
    if not isinstance(body, Mapping):
        return Words(message=body if isinstance(body, str) else "")
    error = body.get("error", body)
    if not isinstance(error, Mapping):
        return Words(message=str(error))
    details = error.get("details")
    code = details.get("error_code") if isinstance(details, Mapping) else error.get("code")
    return Words(
        type=str(error.get("type") or ""),
        code=str(code or ""),
        message=str(error.get("message") or error.get("detail") or ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the requests of an adapter go. `raised` are the errors of its SDK, `words` how it words its own."""

    route: Route
    timeout_s: float
    redactor: Redactor
    raised: tuple[type[Exception], ...]
    words: Callable[[object], Words] = words_of

    async def receive(self, opening: Awaitable[EventStream], reply: Reply) -> None:
        """Open a stream and give each of its events to `reply`, until it has its last one.

        Raises:
            ProviderError: for everything that keeps it from its last event.
        """
        import httpx2  # noqa: PLC0415  (a tenth of a second that only a call may cost)

        raised: tuple[type[Exception], ...] = (*self.raised, httpx2.HTTPError)
        try:
            async with await opening as stream:
                reply.headers = shown_headers(stream.response.headers, self.redactor)
                if "text/event-stream" not in reply.headers.get("content-type", ""):
                    raise self._no_stream(reply, await stream.response.aread())
                async for event in stream:
                    self._take(reply, event)
                    if reply.ended:
                        await self._drain(stream, reply)
                        break
        except ProviderError:
            raise
        except ReplyLengthError as problem:
            if not reply.ended:
                raise self._invalid(f"{problem}; check the base URL of the route", reply) from None
        # The SDKs' errors, whose texts may repeat the key, are not kept as the cause of ours.
        except raised as problem:
            if not reply.ended:
                raise self._error(problem, reply) from None
        except ValueError as problem:
            if not reply.ended:
                raise self._invalid(f"an event is no JSON ({problem})", reply) from None
        if not reply.ended:
            raise stream_cut(self.route, reply.headers, reply.last_event, reply.usage())

    async def _drain(self, stream: EventStream, reply: Reply) -> None:
        """Read what comes behind an answer that is whole: it may tell of usage, and the connection can be used again.

        Nothing that is wrong with it takes anything from the answer.
        """
        with suppress(TimeoutError, ProviderError):
            async with asyncio.timeout(_DRAIN_S):
                async for late in stream:
                    self._take(reply, late)

    def _take(self, reply: Reply, event: object) -> None:
        if not isinstance(event, Mapping):
            raise self._invalid(f"an event is no object: {event!r:.80}", reply)
        try:
            reply.take(event)
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            text = f"the event {event.get('type')!r:.80} has not its form ({type(problem).__name__}: {problem})"
            raise self._invalid(text, reply) from None

    def _error(self, problem: Exception, reply: Reply) -> ProviderError:
        import httpx2  # noqa: PLC0415

        lost = problem if isinstance(problem, httpx2.HTTPError) else problem.__cause__
        if isinstance(lost, httpx2.HTTPError):
            if reply.headers:
                return stream_cut(self.route, reply.headers, reply.last_event, reply.usage(), type(lost).__name__)
            late = isinstance(lost, httpx2.TimeoutException)
            never_sent = isinstance(lost, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
            return connection_failed(
                self.route,
                lost,
                self.redactor,
                timeout_s=self.timeout_s if late else None,
                usage=NOT_BILLED if never_sent else None,
            )
        response = getattr(problem, "response", None)  # an error inside of a stream may have none
        if response is None and not reply.headers:
            return connection_failed(self.route, lost or problem, self.redactor)
        status = 200 if reply.headers or response is None else response.status_code
        headers = reply.headers or shown_headers(getattr(response, "headers", {}), self.redactor)
        return self._said(status, headers, getattr(problem, "body", None), str(problem), reply.usage())

    def _no_stream(self, reply: Reply, body: bytes) -> ProviderError:
        """Return the error of a reply under status 200 that is no stream. It may say itself what went wrong."""
        try:
            parsed = json.loads(body)
        except ValueError:
            parsed = None
        if isinstance(parsed, Mapping) and parsed.get("error"):
            return self._said(200, reply.headers, parsed, "", None)
        return not_json(self.route, reply.headers, body, self.redactor)

    def _said(
        self, status: int, headers: Mapping[str, str], body: object, text: str, usage: Usage | None
    ) -> ProviderError:
        words = self.words(body)
        if words.retry_after_s is not None:
            headers = {"retry-after": str(words.retry_after_s), **headers}
        return provider_error(
            self.route,
            status=status,
            type=words.type,
            code=words.code,
            message=words.message or text,
            headers=headers,
            body=body,
            redactor=self.redactor,
            usage=usage,
            retryable=words.retryable,
        )

    def _invalid(self, text: str, reply: Reply) -> ResponseInvalid:
        status = 200 if reply.headers else None  # the body of an error may be what is invalid
        facts = Facts(provider=self.route.value, status=status, request_id=request_id_of(reply.headers))
        return ResponseInvalid(self.redactor.redact(text), facts, usage=reply.usage())
