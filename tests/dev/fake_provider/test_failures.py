"""Facts of what goes wrong on the OpenAI-shaped wires, as the real SDK shows it."""

import json
from typing import Any

import openai
import pytest

from geode.dev.fake_provider.script import Call, Cut, Failure, HttpReply, Script, Step, StreamError
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from tests.dev.fake_provider.histories import IS_CHAT, ask, question

Clients = dict[Route, openai.OpenAI]
BY_KEY = (Route.OPENAI, Route.OPENROUTER, Route.ZAI)


def fail(double: FakeProvider, clients: Clients, route: Route, step: Step) -> openai.APIStatusError:
    double.play(Script(steps=(step,)))
    with pytest.raises(openai.APIStatusError) as raised:
        ask(clients[route], route, question(route))
    return raised.value


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (Failure.RATE_LIMITED, 429, "rate_limit_exceeded"),
        (Failure.CREDITS, 429, "insufficient_quota"),
        (Failure.PLAN_QUOTA, 429, "usage_limit_reached"),
        (Failure.TOKEN_EXPIRED, 401, "token_expired"),
        (Failure.CONTEXT_TOO_LONG, 400, "context_length_exceeded"),
        (Failure.CONTENT_FILTER, 400, "invalid_prompt"),
        (Failure.TIMEOUT, 408, None),
        (Failure.SERVER, 500, "server_error"),
        (Failure.OVERLOADED, 503, "server_is_overloaded"),
    ],
)
def test_openai_says_what_failed_by_code(
    double: FakeProvider, clients: Clients, failure: Failure, status: int, code: str | None
) -> None:
    error = fail(double, clients, Route.OPENAI, Step(failure=failure))
    assert (error.status_code, error.code) == (status, code)
    assert error.request_id == "req_fake_000001"


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (Failure.CREDITS, 429, "1113"),
        (Failure.CONCURRENCY, 429, "1302"),
        (Failure.RATE_LIMITED, 429, "1303"),
        (Failure.PLAN_QUOTA, 429, "1308"),
        (Failure.PLAN_EXPIRED, 429, "1309"),
        (Failure.NOT_IN_PLAN, 429, "1311"),
        (Failure.OVERLOADED, 429, "1312"),
        (Failure.FAIR_USE, 429, "1313"),
        (Failure.CONTEXT_TOO_LONG, 400, "1261"),
        (Failure.CONTENT_FILTER, 400, "1301"),
        (Failure.UNKNOWN_MODEL, 400, "1211"),
    ],
)
def test_zai_says_what_failed_by_business_code(
    double: FakeProvider, clients: Clients, failure: Failure, status: int, code: str
) -> None:
    """An exhausted balance has the status of a rate limit: a loop that repeats every 429 burns itself on it."""
    error = fail(double, clients, Route.ZAI, Step(failure=failure))
    assert (error.status_code, error.code) == (status, code)


@pytest.mark.parametrize(
    ("failure", "status", "kind", "source"),
    [
        (Failure.IN_FLIGHT_BUDGET, 402, "payment_required", "openrouter_in_flight_budget"),
        (Failure.CREDITS, 402, "payment_required", "openrouter_credits"),
        (Failure.KEY_LIMIT, 402, "payment_required", "openrouter_key_limit"),
        (Failure.RATE_LIMITED, 429, "rate_limit_exceeded", None),
        (Failure.CONTENT_FILTER, 403, "content_policy_violation", None),
        (Failure.CONTEXT_TOO_LONG, 400, "context_length_exceeded", None),
        (Failure.TOO_LARGE, 413, "payload_too_large", None),
        (Failure.OVERLOADED, 529, "provider_overloaded", None),
    ],
)
def test_openrouter_says_what_failed_by_error_type(
    double: FakeProvider, clients: Clients, *, failure: Failure, status: int, kind: str, source: str | None
) -> None:
    """402 is three things, and only its metadata tells them apart."""
    error = fail(double, clients, Route.OPENROUTER, Step(failure=failure, retry_after_s=3))
    body: Any = error.body
    assert error.status_code == status == body["code"]
    assert body["metadata"]["error_type"] == kind
    assert body["metadata"].get("limit_source") == source
    assert error.response.headers["retry-after"] == "3"


@pytest.mark.parametrize(("given", "sent"), [(3, "3"), (0.5, "0.5"), (86_400, "86400"), (10_000_000.0, "10000000")])
def test_retry_after_is_sent_as_it_is_given(double: FakeProvider, clients: Clients, given: float, sent: str) -> None:
    error = fail(double, clients, Route.OPENAI, Step(failure=Failure.RATE_LIMITED, retry_after_s=given))
    assert error.response.headers["retry-after"] == sent


def test_only_a_rate_limit_of_openrouter_tells_the_limits(double: FakeProvider, clients: Clients) -> None:
    error = fail(double, clients, Route.OPENROUTER, Step(failure=Failure.RATE_LIMITED))
    assert error.response.headers["x-ratelimit-remaining"] == "0"
    other = fail(double, clients, Route.OPENROUTER, Step(failure=Failure.OVERLOADED))
    assert "x-ratelimit-remaining" not in other.response.headers


@pytest.mark.parametrize("route", BY_KEY)
@pytest.mark.parametrize("failure", list(Failure))
def test_every_wire_has_an_answer_to_every_failure(
    double: FakeProvider, clients: Clients, route: Route, failure: Failure
) -> None:
    """A name that one wire does not know must not break a script that is played on all."""
    double.play(Script(steps=(Step(failure=failure), Step(text="done"))))
    try:
        ask(clients[route], route, question(route))
    except (openai.APIError, AttributeError, TypeError):
        pass  # an error, or a reply that is none: HTML, or one without choices
    else:
        assert failure is Failure.EMPTY_CHOICES
        assert route is Route.OPENAI
    assert double.steps_left == 1
    assert ask(clients[route], route, question(route)).text == "done"


@pytest.mark.parametrize("route", BY_KEY)
def test_html_under_status_200_comes_back_as_a_string(double: FakeProvider, clients: Clients, route: Route) -> None:
    double.play(Script(steps=(Step(failure=Failure.HTML_200),)))
    client = clients[route]
    create: Any = client.chat.completions.create if route in IS_CHAT else client.responses.create
    assert isinstance(create(**question(route)), str)


def test_openrouter_may_answer_200_without_choices(double: FakeProvider, clients: Clients) -> None:
    double.play(Script(steps=(Step(failure=Failure.EMPTY_CHOICES),)))
    reply = clients[Route.OPENROUTER].chat.completions.create(**question(Route.OPENROUTER))
    assert reply.choices is None
    assert (reply.model_extra or {})["error"]["metadata"]["error_type"] == "provider_unavailable"


def test_a_failed_response_does_not_raise(double: FakeProvider, clients: Clients) -> None:
    double.play(Script(steps=(Step(failure=Failure.EMPTY_CHOICES),)))
    reply = clients[Route.OPENAI].responses.create(**question(Route.OPENAI))
    assert (reply.status, reply.output_text) == ("failed", "")
    assert reply.error is not None
    assert reply.error.code == "server_error"


def test_a_reply_can_be_given_word_for_word(double: FakeProvider, clients: Clients) -> None:
    verbatim = HttpReply(status=418, body='{"odd": 1}', headers={"x-odd": "yes"})
    error = fail(double, clients, Route.OPENAI, Step(failure=verbatim))
    assert (error.status_code, error.response.text, error.response.headers["x-odd"]) == (418, '{"odd": 1}', "yes")


def test_a_used_up_script_refuses_and_says_so(double: FakeProvider, clients: Clients) -> None:
    """An adapter that asks once too often must not be answered by chance."""
    double.play(Script(steps=(Step(text="once"),)))
    ask(clients[Route.ZAI], Route.ZAI, question(Route.ZAI))
    with pytest.raises(openai.BadRequestError, match="no step left"):
        ask(clients[Route.ZAI], Route.ZAI, question(Route.ZAI))


@pytest.mark.parametrize("route", BY_KEY)
def test_a_cut_stream_has_no_last_event(double: FakeProvider, clients: Clients, route: Route) -> None:
    double.play(Script(steps=(Step(text="an answer of more than one piece", cut=Cut(after_events=3)),)))
    wanted = {**question(route), "stream": True}
    client = clients[route]
    create: Any = client.chat.completions.create if route in IS_CHAT else client.responses.create
    events = [event.to_dict() for event in create(**wanted)]
    assert events
    text = json.dumps(events)
    assert '"finish_reason": "stop"' not in text
    assert "response.completed" not in text
    assert double.requests[-1].status == 200


@pytest.mark.parametrize("route", BY_KEY)
def test_a_dropped_stream_raises(double: FakeProvider, clients: Clients, route: Route) -> None:
    double.play(Script(steps=(Step(text="an answer", cut=Cut(after_events=2, drop=True)),)))
    with pytest.raises(openai.APIConnectionError):
        ask(clients[route], route, question(route), stream=True)


def test_an_error_inside_an_openrouter_stream_comes_after_what_was_said(double: FakeProvider, clients: Clients) -> None:
    step = Step(text="an answer of more than one piece", stream_error=StreamError(after_events=3))
    double.play(Script(steps=(step,)))
    stream = clients[Route.OPENROUTER].chat.completions.create(**question(Route.OPENROUTER), stream=True)
    said = []
    with pytest.raises(openai.APIError) as raised:
        said.extend(chunk.choices[0].delta.content for chunk in stream)
    assert "".join(part or "" for part in said) == "an answer of more than o"
    body: Any = raised.value.body
    assert body["metadata"]["error_type"] == "provider_overloaded"


@pytest.mark.parametrize(
    ("failure", "last"),
    [(Failure.OVERLOADED, "error"), (Failure.RATE_LIMITED, "error"), (Failure.SERVER, "response.failed")],
)
def test_an_error_inside_a_responses_stream_is_an_event(
    double: FakeProvider, clients: Clients, failure: Failure, last: str
) -> None:
    step = Step(
        text="an answer", calls=(Call(name="read_file"),), stream_error=StreamError(after_events=5, failure=failure)
    )
    double.play(Script(steps=(step,)))
    *_, event = clients[Route.OPENAI].responses.create(**question(Route.OPENAI), stream=True)
    assert event.type == last
