"""From a request to its reply: whose it is, whether its key and its form will do, and which step answers it."""

import asyncio
import hashlib
import itertools
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from geode.dev.fake_provider import delivery, listings
from geode.dev.fake_provider.anthropic import Anthropic
from geode.dev.fake_provider.chat import OpenRouter, Zai
from geode.dev.fake_provider.decisions import OpenRouterDecisions, TypeSafe
from geode.dev.fake_provider.endpoints import Endpoint, Kind, table
from geode.dev.fake_provider.failures import HTML
from geode.dev.fake_provider.keys import admitted
from geode.dev.fake_provider.log import RecordedRequest, RequestLog, safe_headers
from geode.dev.fake_provider.player import Player
from geode.dev.fake_provider.responses import Responses
from geode.dev.fake_provider.script import Ending, Failure, HttpReply, Step
from geode.dev.fake_provider.wire import Answer, Body, Refused, Request, Wire, json_reply
from geode.llm.routes import Route

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, decompress
else:
    from backports.zstd import ZstdError, decompress

_CHARS_A_TOKEN: Final = 4
DROPPED: Final = HttpReply(status=200, body="")
_ENDINGS_OF_OTHERS: Final[Mapping[Route, tuple[Ending, ...]]] = {Route.ANTHROPIC: (Ending.FAILED,)}
_NO_STEP: Final = Step()
_REQUEST_ID: Final[Mapping[Route, str]] = {Route.ANTHROPIC: "request-id", Route.TYPESAFE: "x-typesafe-request-id"}


@dataclass(frozen=True, slots=True)
class _Answered:
    """A sound request and its answer."""

    wire: Wire
    request: Request
    answer: Answer


@dataclass(frozen=True, slots=True)
class _Plan:
    """What will be sent, and the step that says so, if it came to one."""

    outcome: HttpReply | _Answered
    step: Step = _NO_STEP


class Handler:
    """Decides each request in one go, before anything waits: what is on the record is in the order of decisions."""

    def __init__(
        self, player: Player, keys: Mapping[Route, str], on_request: Callable[[RecordedRequest], None] | None
    ) -> None:
        self.player = player
        self.log = RequestLog()
        self._keys = keys
        self._on_request = on_request
        self._numbers = itertools.count(1)
        self._endpoints = table()
        responses = Responses()
        self._wires: dict[tuple[Route, Kind], Wire] = {
            (Route.ANTHROPIC, Kind.MESSAGES): Anthropic(),
            (Route.OPENAI, Kind.RESPONSES): responses,
            (Route.OPENAI_CODEX, Kind.RESPONSES): responses,
            (Route.OPENROUTER, Kind.CHAT): OpenRouter(),
            (Route.OPENROUTER, Kind.DECISIONS): OpenRouterDecisions(),
            (Route.ZAI, Kind.CHAT): Zai(),
            (Route.TYPESAFE, Kind.DECISIONS): TypeSafe(),
        }

    async def serve(self, http: HttpRequest) -> Response:
        """Answer one request, whatever it is."""
        raw = await http.body()
        if http.headers.get("content-encoding") == "zstd":
            with suppress(ZstdError):  # what is none is no JSON either
                raw = decompress(raw)
        number = f"req_fake_{next(self._numbers):06}"
        endpoint = self._endpoints.get(http.url.path)
        body = _parsed(raw)
        try:
            plan = self._plan(http, endpoint, body, raw, number)
        except Refused as refusal:
            plan = _Plan(refusal.reply)
        self._record(http, endpoint, raw, body, plan)
        delay_ms = self.player.script.latency_ms + plan.step.first_byte_ms
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        response = self._sent(plan)
        if endpoint is not None:
            response.headers[_REQUEST_ID.get(endpoint.route, "x-request-id")] = number
        return response

    def _plan(self, http: HttpRequest, endpoint: Endpoint | None, body: Body | None, raw: bytes, number: str) -> _Plan:
        if endpoint is not None and endpoint.kind is Kind.HTML:
            return _Plan(HTML)
        if endpoint is None or (endpoint.kind is Kind.MODELS) != (http.method == "GET"):
            return _Plan(_not_found(http))
        route = self._endpoint_route(endpoint, http)
        if endpoint.kind is Kind.MODELS:
            decisions = http.query_params.get("output_modalities") == "decisions"
            return _Plan(listings.listing(route, self.player.script.models, decisions=decisions))
        wire = self._wires[route, endpoint.kind]
        if body is None:
            raise Refused(wire.refuse(Failure.BAD_REQUEST, None, note="The request body is not a JSON object."))
        request = Request(
            route=route,
            path=endpoint.path,
            headers=http.headers,
            body=body,
            tokens=max(1, len(raw) // _CHARS_A_TOKEN),
            id=number,
            seed=hashlib.sha256(raw).hexdigest()[:16],
            attempt=self.log.seen(http.url.path, raw) + 1,
            script=self.player.script,
        )
        try:
            return self._answered(wire, request)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as stumble:
            # Rules look for what must be there; what they stumble over is a body of another form.
            note = f"the request is malformed: {type(stumble).__name__}: {stumble}"
            raise Refused(wire.refuse(Failure.BAD_REQUEST, request, note=note)) from stumble

    def _answered(self, wire: Wire, request: Request) -> _Plan:
        wire.check(request)
        step = self.player.next(wire, request)
        if step.failure is not None:
            return _Plan(_failure(wire, request, step.failure), step)
        if step.end in _ENDINGS_OF_OTHERS.get(request.route, (Ending.PAUSE,)):
            note = f"the script of the fake provider has an ending that this wire does not know: {step.end!r}"
            raise Refused(wire.refuse(Failure.BAD_REQUEST, request, note=note))
        return _Plan(_Answered(wire, request, wire.answer(request, step)), step)

    def _endpoint_route(self, endpoint: Endpoint, http: HttpRequest) -> Route:
        """Return whose request it is. Without a prefix `/v1/models` is Anthropic's if it names that API's version."""
        route = endpoint.route
        if http.url.path == "/v1/models" and "anthropic-version" not in http.headers:
            route = Route.OPENAI
        return admitted(route, http.headers, self._keys)

    def _record(self, http: HttpRequest, endpoint: Endpoint | None, raw: bytes, body: Body | None, plan: _Plan) -> None:
        path, outcome = http.url.path, plan.outcome
        route = endpoint.route if endpoint else None
        is_listing = endpoint is not None and endpoint.kind is Kind.MODELS
        request = RecordedRequest(
            route=outcome.request.route if isinstance(outcome, _Answered) else route,
            method=http.method,
            path=path,
            headers=safe_headers(http.headers.raw),
            raw=raw,
            body=body or {},
            attempt=self.log.attempt(path, raw),
            status=outcome.status if isinstance(outcome, HttpReply) else 200,
            error=outcome.body if isinstance(outcome, HttpReply) and not is_listing else None,
        )
        self.log.add(request)
        if self._on_request is not None:
            self._on_request(request)

    def _sent(self, plan: _Plan) -> Response:
        outcome, step = plan.outcome, plan.step
        if outcome is DROPPED:
            return delivery.dropped()
        if isinstance(outcome, HttpReply):
            return delivery.failed(outcome, retry_after_s=step.retry_after_s)
        if outcome.request.is_stream:
            return delivery.streamed(
                log=self.log, wire=outcome.wire, request=outcome.request, step=step, answer=outcome.answer
            )
        return delivery.whole(outcome.answer)


def _parsed(raw: bytes) -> Body | None:
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _failure(wire: Wire, request: Request, failure: Failure | HttpReply) -> HttpReply:
    if isinstance(failure, HttpReply):
        return failure
    match failure:
        case Failure.HTML_200:
            return HTML
        case Failure.DROPPED:
            return DROPPED
        case Failure.CONTEXT_TOO_LONG:
            return wire.refuse(failure, request, note=f"{request.tokens + 200_000} tokens > 200000 maximum")
        case Failure.BAD_REQUEST:
            return wire.refuse(failure, request, note="the script of the fake provider asks for this")
    return wire.refuse(failure, request, note=request.model)


def _not_found(http: HttpRequest) -> HttpReply:
    return json_reply(404, {"detail": f"Not Found: {http.method} {http.url.path}"})
