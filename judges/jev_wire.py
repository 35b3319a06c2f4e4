"""The decision API on its two routes: one request, one typed decision or error. It can do nothing but decide.

Address, spelling of the model and key belong together, by route: PROVIDERS 1.1. What a provider says of a request that
is not of its form repeats the request, the judged text included, and is kept nowhere.
"""

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from pydantic import JsonValue, ValidationError

from geode.llm.admission import JUDGE, check_registered, check_role
from geode.llm.binding import Binding
from geode.llm.catalog import catalog, is_decision_only
from geode.llm.chat_dialects import DIALECTS
from geode.llm.clients import PerLoop, is_loopback
from geode.llm.credentials import credentials
from geode.llm.errors import Facts, ProviderError, ResponseInvalid, RouteRefused
from geode.llm.http_errors import connection_failed, hiding, not_json, provider_error, request_id_of, shown_headers
from geode.llm.routes import Route, parse_model
from geode.llm.served import check_served, priced
from geode.llm.spending import NOT_BILLED
from geode.llm.streaming import CONNECT_S_MAX, Words
from geode.llm.tokens import tokens_at_most
from geode.llm.usage import Usage
from geode.redaction import Redactor
from judges.jev_questions import DecisionRequest, Question
from judges.judgment import RAW_CHARS_MAX

TIMEOUT_S: Final = 30.0
_REPLY_BYTES_MAX: Final = 8_000_000
_NAME_CHARS_MAX: Final = 200  # of a model, or of a request
_REQUEST_TOKENS: Final = 300  # what the provider adds to a request, at the most
_WRAPPED: Final = re.compile(r"HTTP (\d{3}): (.*)", re.DOTALL)
_UNPROCESSABLE: Final = 422
_ECHO: Final = re.compile(r"\\*\"input\\*\"\s*:")
"""How an error repeats what it was sent, quoted once or several times over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How one route takes decisions.

    `model` is the pinned default, in the route's own spelling; `url` makes the address from the route's base;
    `reports_cost` says whether a reply names its cost.
    """

    model: str
    url: Callable[[str], str]
    reports_cost: bool


WAYS: Final[Mapping[Route, Way]] = {
    Route.OPENROUTER: Way(
        model="openrouter/typesafe/jev-1.13",
        url=lambda base: base.removesuffix("/v1") + "/alpha/decisions",
        reports_cost=True,
    ),
    Route.TYPESAFE: Way(
        model="typesafe/jev-1.13.0",
        url=lambda base: base.removesuffix("/systemone").removesuffix("/v1") + "/v1/systemone",
        reports_cost=False,
    ),
}


def bind_jev(model: str, environment: Mapping[str, str], *, allow_moving: bool = False) -> Binding:
    """Return a decision model with its key, address and price.

    Args:
        model: `route/id`; the route alone decides which key is used.
        environment: of the settings.
        allow_moving: whether an id will do that leads to another model tomorrow.

    Raises:
        ConfigurationError: if it is no decision model of a route that takes decisions, or cannot be reached as
            configured. No request was sent.
    """
    name = parse_model(model)
    if name.route not in WAYS or not is_decision_only(name):
        known = ", ".join(repr(way.model) for way in WAYS.values())
        raise RouteRefused(f"{model!r} takes no decisions; the engine jev asks {known}")
    check_role(JUDGE, model)
    check_registered(model, allow_moving=allow_moving)
    entry = catalog().find(name)
    assert entry is not None  # its role was checked
    access = credentials(name, environment)
    return Binding(
        model=name,
        key=access.key,
        base_url=access.base_url,
        served_as=entry.served_as_by(name),
        context_tokens=entry.context_tokens,
        output_tokens_max=entry.output_tokens_max,
        prices=entry.prices_by(name.route),
        timeout_s=TIMEOUT_S,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What came in reply: `answers` as they came, whatever they are, and the raw reply, cut."""

    answers: JsonValue
    served_model: str
    request_id: str
    usage: Usage
    latency_ms: int
    reply: str


class JevWire:
    """Sends decision requests, each once.

    Args:
        binding: made by `bind_jev`.
        redactor: takes secrets out of what errors keep; the key of `binding` is known besides.
    """

    def __init__(self, binding: Binding, redactor: Redactor | None = None) -> None:
        self._binding = binding
        self._route = binding.model.route
        self._way = WAYS[self._route]
        self._redactor = hiding(redactor or Redactor(), binding.key)
        self._clients = PerLoop(partial(_Client, binding))

    @property
    def model(self) -> str:
        """The exact `route/id`."""
        return str(self._binding.model)

    def request(self, state: Mapping[str, JsonValue], questions: Mapping[str, Question]) -> bytes:
        """Return the body of a request.

        Raises:
            ValueError: if it has not the form that both routes take. Nothing was sent.
        """
        try:
            asked = DecisionRequest(model=self._binding.model.model_id, state=dict(state), questions=dict(questions))
        except ValidationError as error:
            detail = error.errors(include_input=False)[0]
            place = ".".join(map(str, detail["loc"]))
            raise ValueError(f"it is no decision request: {place}: {detail['msg']}") from None
        return asked.body()

    def cost_usd_max(self, request: bytes) -> float | None:
        """Return the most that `request` can cost; None if nobody knows its price."""
        if self._binding.prices is None:
            return None
        # What is longer than the window is refused, and not billed.
        read = min(_REQUEST_TOKENS + tokens_at_most(request.decode()), self._binding.context_tokens)
        return self._binding.prices.cost_usd_max(input_tokens=read, output_tokens=0)

    async def decide(self, request: bytes) -> Decision:
        """Send `request`, made by `request`, once.

        Raises:
            ProviderError: for everything that is no reply of the pinned model. What is answered is not looked at.
        """
        import httpx  # noqa: PLC0415  (a tenth of a second that only a request may cost)

        began = time.perf_counter()
        client, timeout_s = await self._clients.get(), self._binding.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                status, headers, raw = await client.post(self._way.url(self._binding.base_url), request)
        except (httpx.HTTPError, TimeoutError) as problem:
            late = isinstance(problem, httpx.TimeoutException | TimeoutError)
            never_sent = isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
            raise connection_failed(
                self._route,
                problem,
                self._redactor,
                timeout_s=timeout_s if late else None,
                usage=NOT_BILLED if never_sent else None,
            ) from None
        latency_ms = round((time.perf_counter() - began) * 1000)
        return self._decision(status, shown_headers(headers, self._redactor), raw, latency_ms)

    def _decision(self, status: int, headers: Mapping[str, str], raw: bytes, latency_ms: int) -> Decision:
        if status != 200:
            raise self._refused(status, headers, raw)
        body = _parsed(raw)
        if not isinstance(body, dict):
            raise not_json(self._route, headers, raw, self._redactor)
        if body.get("error"):
            raise self._refused(status, headers, raw)
        usage = self._usage(body.get("usage"))
        request_id, served = self._name(body.get("id")) or request_id_of(headers), self._name(body.get("model"))
        facts = Facts(provider=self._route.value, status=status, request_id=request_id)
        if not served:
            raise ResponseInvalid("the reply does not say which model answered", facts, usage=usage)
        check_served(served, self._binding, facts, usage)
        return Decision(
            answers=body.get("answers"),
            served_model=served,
            request_id=request_id,
            usage=usage,
            latency_ms=latency_ms,
            reply=self._redactor.redact(raw.decode("utf-8", "replace"))[:RAW_CHARS_MAX],
        )

    def _name(self, given: JsonValue) -> str:
        """Return a name that a stranger gives: some repeat the key in it."""
        return self._redactor.redact(given) if isinstance(given, str) and len(given) <= _NAME_CHARS_MAX else ""

    def _usage(self, said: JsonValue) -> Usage:
        figures = said if isinstance(said, dict) else {}
        usage = Usage(
            uncached_input_tokens=_count(figures.get("input_tokens")),
            output_tokens=_count(figures.get("output_tokens")),
        )
        return priced(usage, self._binding, _usd(figures.get("cost")) if self._way.reports_cost else None)

    def _refused(self, status: int, headers: Mapping[str, str], raw: bytes) -> ProviderError:
        said = body = _parsed(raw)
        words = _typesafe_words(body) if self._route is Route.TYPESAFE else DIALECTS[Route.OPENROUTER].words(body)
        if wrapped := _WRAPPED.fullmatch(words.message):
            # OpenRouter hands on what TypeSafe said, as text.
            status, said = int(wrapped[1]), _parsed(wrapped[2].encode())
            words = _typesafe_words(said)
        kept: object = raw if body is None else body
        if status == _UNPROCESSABLE or _ECHO.search(raw.decode("utf-8", "replace")):
            words, kept = Words(type="unprocessable", message=f"the request has not its form{_places(said)}"), None
        if words.retry_after_s is not None:
            headers = {"retry-after": str(words.retry_after_s), **headers}
        return provider_error(
            self._route,
            status=status,
            type=words.type,
            code=words.code,
            message=words.message,
            headers=headers,
            body=kept,
            redactor=self._redactor,
            retryable=words.retryable,
        )


class _Client:
    """Makes `PerLoop` close a client of httpx."""

    def __init__(self, binding: Binding) -> None:
        import httpx  # noqa: PLC0415

        self._client: httpx.AsyncClient = httpx.AsyncClient(
            headers={"authorization": f"Bearer {binding.key}", "content-type": "application/json"},
            timeout=httpx.Timeout(binding.timeout_s, connect=min(binding.timeout_s, CONNECT_S_MAX)),
            limits=httpx.Limits(max_connections=None),
            trust_env=not is_loopback(binding.base_url),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def post(self, url: str, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of a reply. What is longer than any decision is cut, and is then no JSON."""
        got = bytearray()
        async with self._client.stream("POST", url, content=body) as response:
            async for part in response.aiter_bytes():
                got += part
                if len(got) > _REPLY_BYTES_MAX:
                    del got[_REPLY_BYTES_MAX:]
                    break
        return response.status_code, response.headers, bytes(got)


def _parsed(raw: bytes) -> JsonValue:
    try:
        body: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body


def _typesafe_words(body: JsonValue) -> Words:
    """Read TypeSafe's error: all stands under `detail`, as an object, a text, or a list that repeats the request."""
    match body.get("detail") if isinstance(body, dict) else None:
        case dict(detail):
            return Words(type=str(detail.get("error_type") or ""), message=str(detail.get("message") or ""))
        case str(detail):
            return Words(message=detail)
        case list():
            return Words(type="unprocessable")
    return Words()


def _places(body: JsonValue) -> str:
    """Return where a request has not its form, by names of fields alone: values would repeat it."""
    detail = body.get("detail") if isinstance(body, dict) else None
    faults = [fault for fault in detail if isinstance(fault, dict)] if isinstance(detail, list) else []
    places = [".".join(map(str, loc)) for fault in faults if isinstance(loc := fault.get("loc"), list)]
    return f" at {', '.join(places)}" if places else ""


def _count(figure: JsonValue) -> int | None:
    return figure if isinstance(figure, int) and not isinstance(figure, bool) and figure >= 0 else None


def _usd(figure: JsonValue) -> float | None:
    if isinstance(figure, bool) or not isinstance(figure, int | float) or not 0 <= figure < math.inf:
        return None
    return float(figure)
