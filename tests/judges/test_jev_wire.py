"""The decision API on both of its routes, against the strict double: what is sent, and each way in which it fails."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from geode.dev.fake_provider.script import Failure, HttpReply, Step
from geode.llm.admission import check_role
from geode.llm.catalog import is_decision_only
from geode.llm.chat_completions import ChatCompletions
from geode.llm.errors import (
    AuthenticationFailed,
    ConfigurationError,
    ConnectionFailed,
    ContextTooLarge,
    CredentialMissing,
    Overloaded,
    PaymentRequired,
    ProviderError,
    RateLimited,
    RequestInvalid,
    ResponseInvalid,
    RouteRefused,
    ServedModelDiffers,
)
from geode.llm.opening import open_adapter
from geode.llm.routes import Route, parse_model
from geode.redaction import Redactor
from judges.jev_questions import questions_of, state_of
from judges.jev_wire import WAYS, Decision, JevWire, bind_jev
from tests.judges.jev_house import RUBRIC, House
from tests.judges.views import call, view

pytestmark = pytest.mark.anyio

STATE = state_of(view(call("run", "3 passed")))
QUESTIONS = questions_of(RUBRIC)
PATHS = {Route.OPENROUTER: "/openrouter/api/alpha/decisions", Route.TYPESAFE: "/typesafe/v1/systemone"}
SPELLED = {Route.OPENROUTER: "typesafe/jev-1.13", Route.TYPESAFE: "jev-1.13.0"}


async def decide(house: House, wire: JevWire | None = None) -> Decision:
    wire = wire or house.wire()
    return await wire.decide(wire.request(STATE, QUESTIONS))


async def failure(house: House, *steps: Step) -> ProviderError:
    house.play(*steps)
    with pytest.raises(ProviderError) as caught:
        await decide(house)
    assert len(house.double.requests) == 1, "the wire itself never sends again"
    return caught.value


def said(house: House, status: int, detail: object, **wrapping: object) -> Step:
    """Return TypeSafe's error as it comes by the route."""
    body: dict[str, Any] = {"detail": detail}
    if house.route is Route.OPENROUTER:
        body = {"error": {"message": f"HTTP {status}: {json.dumps(body)}", "code": status, **wrapping}}
    return Step(failure=HttpReply(status=status, body=json.dumps(body)))


async def test_address_spelling_and_key_belong_together(house: House) -> None:
    """PROVIDERS 30: each route has its own of each; the double refuses every other combination."""
    await decide(house)
    [request] = house.double.requests
    assert (request.path, request.body["model"], request.status) == (PATHS[house.route], SPELLED[house.route], 200)
    assert request.headers["content-type"] == "application/json"
    assert "x-api-key" not in request.headers


async def test_the_route_is_configured_and_does_not_follow_the_keys(house: House) -> None:
    """PROVIDERS 30: the only key that is set belongs to the other route."""
    own = {Route.OPENROUTER: "OPENROUTER_API_KEY", Route.TYPESAFE: "TYPESAFE_API_KEY"}
    only_other = {name: value for name, value in house.environment.items() if name != own[house.route]}
    with pytest.raises(CredentialMissing, match=own[house.route]):
        bind_jev(house.model, only_other)
    assert house.bodies == []


@pytest.mark.parametrize("more", ["", "/"])
async def test_an_address_may_be_the_root_or_name_the_version(house: House, more: str) -> None:
    """PROVIDERS 30: some clients want the one, some the other, under one variable."""
    roots = {
        Route.OPENROUTER: ("OPENROUTER_BASE_URL", ("/openrouter/api", "/openrouter/api/v1")),
        Route.TYPESAFE: ("TYPESAFE_BASE_URL", ("/typesafe", "/typesafe/v1", "/typesafe/v1/systemone")),
    }
    variable, written = roots[house.route]
    for path in written:
        binding = bind_jev(house.model, {**house.environment, variable: house.double.url + path + more})
        await decide(house, JevWire(binding))
    assert {request.path for request in house.double.requests} == {PATHS[house.route]}


@pytest.mark.parametrize(
    "model",
    [
        "openrouter/jev-1.13",
        "openrouter/jev-1.13.0",
        "typesafe/typesafe/jev-1.13",
        "typesafe/jev-9.9.9",
        "openrouter/typesafe/jev-router",
        "openrouter/openai/gpt-6-sol",
        "anthropic/claude-opus-5-5",
        "simulated/apprentice",
        "jev",
    ],
)
async def test_what_is_no_decision_model_of_its_route_is_refused_before_anything_is_sent(
    house: House, model: str
) -> None:
    """PROVIDERS 28, 30: in the spelling of another route too."""
    with pytest.raises(ConfigurationError):
        house.wire(model)
    assert house.bodies == []


async def test_it_can_do_nothing_but_decide(house: House) -> None:
    """PROVIDERS 28: there is no generate, stream or tool to call."""
    offered = {name for name in dir(house.wire()) if not name.startswith("_")}
    assert offered == {"model", "request", "cost_usd_max", "decide"}


@pytest.mark.parametrize("role", ["target", "auditor", "mutator"])
async def test_a_decision_model_cannot_hold_a_conversation(house: House, role: str) -> None:
    """PROVIDERS 28: as a generator it is refused before any request, on each way in."""
    with pytest.raises(RouteRefused, match="decision-only"):
        check_role(role, house.model)
    with pytest.raises(RouteRefused, match="decision-only"):
        open_adapter(house.model, house.environment)
    if house.route is Route.OPENROUTER:
        with pytest.raises(RouteRefused, match="decision-only"):
            ChatCompletions(bind_jev(house.model, house.environment))
    assert house.bodies == []


async def test_the_router_of_the_same_maker_is_a_model_for_chat(house: House) -> None:
    """PROVIDERS 28: its id begins like theirs, and it is caught by none of the rules for them."""
    assert is_decision_only(parse_model(house.model))
    router = "openrouter/typesafe/jev-router"
    assert not is_decision_only(parse_model(router))
    assert open_adapter(router, house.environment).model == router


NOUL: dict[str, Any] = {"type": "noul", "instructions": "Is it?"}
CHOICE: dict[str, Any] = {"type": "choice", "instructions": "Which?", "criteria": {"a": "A", "none": "None"}}
SCORE: dict[str, Any] = {"type": "score", "instructions": "How?", "criteria": ["low", "high"]}


@pytest.mark.parametrize(
    "questions",
    [
        {"q": NOUL},
        {"q": {**NOUL, "criteria": {"true": "Yes.", "false": "No."}}},
        {"q": CHOICE, "r": SCORE},
        {"q": {**CHOICE, "criteria": {f"label {n}": "x" for n in range(255)}}},
        {"q": {**SCORE, "criteria": ["x"] * 10}},
    ],
)
async def test_sound_questions_pass_and_are_taken(house: House, questions: dict[str, Any]) -> None:
    """PROVIDERS 29: what is refused here is no more than what must be."""
    wire = house.wire()
    await wire.decide(wire.request(STATE, questions))
    assert house.bodies[0]["questions"] == questions


@pytest.mark.parametrize(
    "questions",
    [
        {},
        {"": NOUL},
        {"q": {**NOUL, "type": "box"}},
        {"q": {"instructions": "Is it?"}},
        {"q": {"type": "noul"}},
        {"q": {**NOUL, "instructions": ""}},
        {"q": {**NOUL, "instructions": {"text": "Is it?"}}},
        {"q": {**NOUL, "instructions": None}},
        {"q": {**NOUL, "criteria": {"true": "Yes."}}},
        {"q": {**NOUL, "criteria": {"true": "Yes.", "false": None}}},
        {"q": {**NOUL, "criterion": {"true": "Yes.", "false": "No."}}},
        {"q": {**CHOICE, "criteria": {"a": "A"}}},
        {"q": {**CHOICE, "criteria": {"a": "A", "b": None}}},
        {"q": {**CHOICE, "criteria": {str(n): "x" for n in range(256)}}},
        {"q": {**CHOICE, "criteria": ["a", "b"]}},
        {"q": {**CHOICE, "weight": 2}},
        {"q": {**SCORE, "criteria": ["only"]}},
        {"q": {**SCORE, "criteria": ["x"] * 11}},
        {"q": {**SCORE, "criteria": ["low", None]}},
        {"q": {**SCORE, "criteria": ["low", 2]}},
        {"q": {**SCORE, "min": 0}},
    ],
)
async def test_a_question_that_is_not_sound_is_refused_before_anything_is_sent(
    house: House, questions: dict[str, Any]
) -> None:
    """PROVIDERS 29: the provider takes some of them for another question, in silence."""
    with pytest.raises(ValueError, match="no decision request: questions"):
        house.wire().request(STATE, questions)
    assert house.bodies == []


@pytest.mark.parametrize("state", [{"x": float("nan")}, {"x": [1, {"y": float("inf")}]}, {"": "x"}, {"x": object()}])
async def test_a_state_that_json_does_not_have_is_refused_before_anything_is_sent(house: House, state: Any) -> None:
    """PROVIDERS 29."""
    with pytest.raises(ValueError, match=r"decision request|JSON compliant"):
        house.wire().request(state, QUESTIONS)
    assert house.bodies == []


async def test_a_reply_is_handed_on_as_it_came(house: House) -> None:
    """PROVIDERS 31, 36: whether the answers are sound is not the wire's to say."""
    house.play(house.reply({"done": "anything"}))
    decision = await decide(house)
    assert decision.answers == {"done": "anything"}
    assert decision.usage.input_tokens == 500
    assert decision.served_model.removesuffix("-20260917") == SPELLED[house.route]
    assert decision.request_id
    assert decision.latency_ms >= 0


TYPED: list[tuple[Failure, type[ProviderError], bool]] = [
    (Failure.BAD_KEY, AuthenticationFailed, False),
    (Failure.FORBIDDEN, AuthenticationFailed, False),
    (Failure.UNKNOWN_MODEL, RequestInvalid, False),
    (Failure.BAD_REQUEST, RequestInvalid, False),
    (Failure.CONTEXT_TOO_LONG, ContextTooLarge, False),
    (Failure.RATE_LIMITED, RateLimited, True),
    (Failure.SERVER, Overloaded, True),
    (Failure.UNAVAILABLE, Overloaded, True),
    (Failure.OVERLOADED, Overloaded, True),
    (Failure.HTML_200, ResponseInvalid, False),
    (Failure.DROPPED, ConnectionFailed, True),
]


@pytest.mark.parametrize(("fault", "error", "retryable"), TYPED)
async def test_each_failure_is_an_error_of_its_own(
    house: House, fault: Failure, error: type[ProviderError], retryable: bool
) -> None:
    """PROVIDERS 2, 4, 8, 9: with the route, and the provider's name of the request if it came so far."""
    problem = await failure(house, Step(failure=fault))
    assert (type(problem), problem.retryable) == (error, retryable)
    assert problem.facts.provider == house.route
    assert bool(problem.facts.request_id) == (fault is not Failure.DROPPED)


@pytest.mark.parametrize(
    ("fault", "error", "retryable"),
    [
        (Failure.CREDITS, PaymentRequired, False),
        (Failure.KEY_LIMIT, PaymentRequired, False),
        (Failure.IN_FLIGHT_BUDGET, RateLimited, True),
    ],
)
async def test_a_402_is_read_by_the_limit_that_it_names(
    double: Any, fault: Failure, error: type[ProviderError], retryable: bool
) -> None:
    """PROVIDERS 2: OpenRouter's third kind passes by itself, the others do not."""
    problem = await failure(House(double, Route.OPENROUTER), Step(failure=fault))
    assert (type(problem), problem.facts.status, problem.retryable) == (error, 402, retryable)


async def test_a_missing_key_and_a_wrong_one_are_told_apart_by_nobody(house: House) -> None:
    """PROVIDERS 9: 401 and 403 are inverted on the direct route; both are the same error here."""
    variable = {Route.OPENROUTER: "OPENROUTER_API_KEY", Route.TYPESAFE: "TYPESAFE_API_KEY"}[house.route]
    wrong = JevWire(bind_jev(house.model, {**house.environment, variable: "sk-or-wrong-0000000000000000"}))
    with pytest.raises(AuthenticationFailed) as caught:
        await decide(house, wrong)
    assert "sk-or-wrong" not in f"{caught.value!r} {caught.value} {caught.value.facts}"
    detail = "Not authenticated"
    missing = await failure(house, said(house, 403, detail))
    assert (type(missing), missing.args[0]) == (AuthenticationFailed, detail)


@pytest.mark.parametrize(
    ("status", "detail", "error", "text"),
    [
        (400, {"error_type": "max_tokens_exceeded"}, ContextTooLarge, "gave no reason"),
        (400, "Too many choices. Must have at most 255 choices.", RequestInvalid, "Too many choices"),
        (400, {"error_type": "api_usage_error", "message": "Unknown model: x"}, RequestInvalid, "Unknown model: x"),
        (529, {"error_type": "overloaded_error", "message": "Overloaded."}, Overloaded, "Overloaded"),
        (429, "slow down", RateLimited, "slow down"),
    ],
)
async def test_an_error_is_read_in_each_of_its_wrappings(
    house: House, status: int, detail: object, error: type[ProviderError], text: str
) -> None:
    """PROVIDERS 8, 9: bare from TypeSafe, and as a text in a text from OpenRouter."""
    problem = await failure(house, said(house, status, detail))
    assert (type(problem), problem.facts.status) == (error, status)
    assert text in str(problem)


async def test_openrouters_own_words_for_too_long_are_the_same_error(double: Any) -> None:
    """PROVIDERS 8: its schema, its proxy and the model each have their own."""
    house = House(double, Route.OPENROUTER)
    for status, error in (
        (400, {"code": 400, "message": "x", "metadata": {"error_type": "context_length_exceeded"}}),
        (413, {"code": 413, "message": "Request Entity Too Large"}),
    ):
        problem = await failure(house, Step(failure=HttpReply(status=status, body=json.dumps({"error": error}))))
        assert type(problem) is ContextTooLarge


ECHO = [{"type": "missing", "loc": ["body", "state"], "msg": "Field required: SECRET", "input": {"answer": "SECRET"}}]


@pytest.mark.parametrize("status", [422, 400, 500])
async def test_what_repeats_the_request_is_kept_nowhere(house: House, status: int) -> None:
    """PROVIDERS 9: neither in the text, nor in the facts, nor in the notes of an error."""
    problem = await failure(house, said(house, status, ECHO))
    assert "SECRET" not in f"{problem!r} {problem} {problem.facts} {problem.__cause__!r} {problem.__context__!r}"
    assert problem.facts.body == ""
    assert "body.state" in str(problem)


async def test_a_422_of_an_unknown_form_is_kept_nowhere_either(house: House) -> None:
    """PROVIDERS 9: the status alone is enough."""
    for body in ('"SECRET"', "SECRET", '{"detail": "SECRET"}', '{"error": {"message": "SECRET", "code": 422}}', "[1]"):
        problem = await failure(house, Step(failure=HttpReply(status=422, body=body)))
        assert (type(problem), problem.facts.body) == (RequestInvalid, "")
        assert "SECRET" not in f"{problem!r} {problem} {problem.facts}"


async def test_the_double_echoes_and_we_do_not(house: House) -> None:
    """PROVIDERS 9: a request that we never make, so that the double's own 422 comes."""
    wire = house.wire()
    body = json.loads(wire.request(STATE, QUESTIONS))
    body["questions"]["care"]["criteria"] = ["CANARY in a level", None]
    with pytest.raises(RequestInvalid) as caught:
        await wire.decide(json.dumps(body).encode())
    assert caught.value.facts.body == ""
    assert "questions.care" in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        HttpReply(status=200, body="", content_type="application/json"),
        HttpReply(status=200, body="<html>", content_type="application/json"),
        HttpReply(status=200, body="[]"),
        HttpReply(status=200, body="[" * 100_000),
        HttpReply(status=200, body='{"answers": {}, "usage": {}}'),
        HttpReply(status=200, body='{"model": 5, "answers": {}}'),
        HttpReply(status=200, body='{"model": "' + "x" * 201 + '", "answers": {}}'),
        HttpReply(status=302, body="", headers={"location": "/elsewhere"}),
        HttpReply(status=404, body="<html>"),
    ],
)
async def test_what_is_no_reply_of_the_api_is_none(house: House, reply: HttpReply) -> None:
    """PROVIDERS 4, 31: the status alone says nothing."""
    problem = await failure(house, Step(failure=reply))
    assert type(problem) in (ResponseInvalid, RequestInvalid)
    assert not problem.retryable


async def test_an_error_under_status_200_is_one(double: Any) -> None:
    """PROVIDERS 5: OpenRouter puts the status that it would have sent into the body."""
    body = json.dumps({"error": {"code": 429, "message": "slow", "metadata": {"error_type": "rate_limit_exceeded"}}})
    problem = await failure(House(double, Route.OPENROUTER), Step(failure=HttpReply(status=200, body=body)))
    assert type(problem) is RateLimited


async def test_a_reply_that_is_longer_than_any_decision_is_none(house: House) -> None:
    """What is read of a stranger is bounded."""
    assert type(await failure(house, house.reply(padding="x" * 8_000_000))) is ResponseInvalid
    house.play(house.reply(padding="x" * 1_000_000))
    assert (await decide(house)).answers


async def test_a_reply_that_trickles_is_not_waited_for(house: House) -> None:
    """One byte now and then would hold a judge for hours, if only the silence between two of them were timed."""

    left = asyncio.Event()

    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        left.set()

    variable = {Route.OPENROUTER: "OPENROUTER_BASE_URL", Route.TYPESAFE: "TYPESAFE_BASE_URL"}[house.route]
    async with await asyncio.start_server(trickle, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        binding = bind_jev(house.model, {**house.environment, variable: address})
        with pytest.raises(ConnectionFailed, match=r"no reply within 0\.5 s"):
            await decide(house, JevWire(replace(binding, timeout_s=0.5)))
        await left.wait()


async def test_a_wait_that_is_asked_for_is_known(house: House) -> None:
    """PROVIDERS 3."""
    problem = await failure(house, Step(failure=Failure.RATE_LIMITED, retry_after_s=86_400))
    assert problem.facts.retry_after_s == 86_400
    body = {"error": {"code": 429, "message": "x", "availability": {"retry_after": 12, "retryable": True}}}
    if house.route is Route.OPENROUTER:
        problem = await failure(house, Step(failure=HttpReply(status=429, body=json.dumps(body))))
        assert (problem.facts.retry_after_s, problem.retryable) == (12, True)


async def test_another_model_than_the_pinned_one_is_an_error(house: House) -> None:
    """PROVIDERS 26: a dated snapshot of the pin is the pin, its successor is not."""
    served = {
        Route.OPENROUTER: ("typesafe/jev-1.13-20260917", "typesafe/jev-1.14-20261016", "jev-1.13.0"),
        Route.TYPESAFE: ("jev-1.13.0", "jev-1.14.0", "jev-1.13.1"),
    }
    pinned, *others = served[house.route]
    house.play(house.reply(model=pinned))
    assert (await decide(house)).served_model == pinned
    for other in others:
        problem = await failure(house, house.reply(model=other))
        assert type(problem) is ServedModelDiffers
        assert problem.usage is not None
        assert problem.usage.input_tokens == 500


async def test_a_moving_id_is_taken_only_where_that_is_allowed(house: House) -> None:
    """PROVIDERS 26: the model that is served is recorded in any case."""
    moving = {Route.OPENROUTER: "openrouter/~typesafe/jev-latest", Route.TYPESAFE: "typesafe/jev-latest"}[house.route]
    with pytest.raises(RouteRefused, match="different models at different times"):
        bind_jev(moving, house.environment)
    decision = await decide(house, JevWire(bind_jev(moving, house.environment, allow_moving=True)))
    assert decision.served_model in ("jev-1.14.0", "typesafe/jev-1.14-20261016")


async def test_nobody_is_reached_at_a_closed_port(house: House) -> None:
    """A request that was never sent is not billed."""
    variable = {Route.OPENROUTER: "OPENROUTER_BASE_URL", Route.TYPESAFE: "TYPESAFE_BASE_URL"}[house.route]
    wire = JevWire(bind_jev(house.model, {**house.environment, variable: "http://127.0.0.1:9"}))
    with pytest.raises(ConnectionFailed) as caught:
        await decide(house, wire)
    assert caught.value.usage is not None
    assert caught.value.usage.cost_usd == 0


async def test_a_reply_that_does_not_come_in_time_is_not_waited_for(house: House) -> None:
    """Nobody knows what such a request is billed for."""
    house.play(Step(first_byte_ms=5_000))
    with pytest.raises(ConnectionFailed, match=r"no reply within 0\.2 s") as caught:
        await decide(house, JevWire(replace(bind_jev(house.model, house.environment), timeout_s=0.2)))
    assert (caught.value.usage, caught.value.retryable) == (None, True)


async def test_no_key_is_in_a_repr_or_a_reply(house: House) -> None:
    """PROVIDERS 10: also where the provider repeats it, as the name of a request or of a model, too."""
    key = house.double.key(house.route)
    binding = replace(bind_jev(house.model, house.environment), served_as=frozenset())
    wire = JevWire(binding, Redactor(needles=("other-secret",)))
    reply = house.reply({"done": f"{key} other-secret"}, model=f"model {key}", id=f"id {key}")
    house.play(reply)
    decision = await decide(house, wire)
    assert key not in repr((decision.reply, decision.request_id, decision.served_model))
    assert "other-secret" not in decision.reply
    assert decision.request_id == "id [redacted]"
    headers = {"x-request-id": key, "x-typesafe-request-id": key, "request-id": key}
    body = json.dumps({"detail": f"key {key}", "error": {"code": 400, "message": key}})
    problem = await failure(house, Step(failure=HttpReply(status=400, body=body, headers=headers)))
    assert key not in f"{problem} {problem.facts} {binding!r}"


def test_each_default_is_of_its_route() -> None:
    """PROVIDERS 26, 30: and pinned, since no other is bound without more."""
    for route, way in WAYS.items():
        binding = bind_jev(way.model, {"OPENROUTER_API_KEY": "k" * 9, "TYPESAFE_API_KEY": "k" * 9})
        assert binding.model.route is route
        assert binding.served_as


def test_the_addresses_of_the_providers_are_those_of_their_documentation() -> None:
    """PROVIDERS 30: no `/v1` before `alpha`; the other path answers with a web page under status 200."""
    keys = {"OPENROUTER_API_KEY": "k" * 9, "TYPESAFE_API_KEY": "k" * 9}
    urls = [way.url(bind_jev(way.model, keys).base_url) for way in WAYS.values()]
    assert urls == ["https://openrouter.ai/api/alpha/decisions", "https://api.typesafe.ai/v1/systemone"]


async def test_a_proxy_of_the_developer_has_no_business_on_this_host(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROVIDERS 6 (trap a): it would catch requests to loopback, too."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert (await decide(house)).served_model
