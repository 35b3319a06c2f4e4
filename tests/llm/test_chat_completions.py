"""OpenRouter and Z.ai through OpenAI's own SDK: what goes out, what comes back, and each way to fail."""

import json
from dataclasses import replace
from typing import Any

import pytest

from geode.dev.fake_provider.script import (
    Call,
    Cut,
    Ending,
    Failure,
    Figures,
    HttpReply,
    Script,
    Step,
    StreamError,
    Thinking,
)
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.binding import Binding, Effort, ModelOptions
from geode.llm.chat_completions import ChatCompletions, request_body
from geode.llm.chat_dialects import DIALECTS
from geode.llm.errors import (
    AuthenticationFailed,
    ConfigurationError,
    ConnectionFailed,
    ContextTooLarge,
    Overloaded,
    PaymentRequired,
    ProviderError,
    RateLimited,
    RequestInvalid,
    ResponseInvalid,
    RouteRefused,
    ServedModelDiffers,
    StreamCut,
    UnknownStop,
)
from geode.llm.messages import ModelResponse, StopReason, TextBlock, ToolUse
from geode.llm.prices import Prices
from geode.llm.routes import Route, parse_model
from geode.llm.spending import NOT_BILLED, billed_for
from geode.llm.usage import CostOrigin
from tests.doubles.snapshots import READ, answered, asked, results

pytestmark = pytest.mark.anyio

PRICES = Prices(input=4, output=20, cache_read=0.4, as_of="2030-01-01", source="test")
OPENROUTER, ZAI = "openrouter/google/gemini-3-pro", "zai/glm-5.3"
BOTH = pytest.mark.parametrize("model", [OPENROUTER, ZAI])


def bound(double: FakeProvider, model: str, **options: Any) -> Binding:
    name = parse_model(model)
    return Binding(
        model=name,
        key=double.key(name.route),
        base_url=double.base_url(name.route),
        served_as=frozenset({name.model_id}),
        context_tokens=200_000,
        output_tokens_max=64_000,
        prices=PRICES,
        options=ModelOptions(**options),
        timeout_s=20.0,
    )


def opened(double: FakeProvider, model: str, *steps: Step, **options: Any) -> ChatCompletions:
    double.play(Script(steps=steps))
    return ChatCompletions(bound(double, model, **options))


async def answer(double: FakeProvider, model: str, step: Step, **options: Any) -> ModelResponse:
    return await opened(double, model, step, **options).acomplete(asked())


async def failure(double: FakeProvider, model: str, step: Step) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await answer(double, model, step)
    assert len(double.requests) == 1
    return caught.value


def streamed(*chunks: dict[str, Any], done: bool = True) -> HttpReply:
    """A stream word for word."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"] * done
    return HttpReply(status=200, body="".join(lines), content_type="text/event-stream")


def chunk(delta: dict[str, Any], model: str = ZAI, **choice: Any) -> dict[str, Any]:
    return {"id": "c-1", "model": parse_model(model).model_id, "choices": [{"index": 0, "delta": delta, **choice}]}


def said(status: int, code: str) -> HttpReply:
    """Z.ai's error with a business code."""
    return HttpReply(status=status, body=json.dumps({"error": {"code": code, "message": f"says {code}"}}))


# Transport and errors -------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("kind", [Failure.SERVER, Failure.RATE_LIMITED, Failure.DROPPED])
async def test_the_sdk_sends_each_request_once(double: FakeProvider, model: str, kind: Failure) -> None:
    """PROVIDERS 1: the SDK would try each of these three times."""
    await failure(double, model, Step(failure=kind))
    assert [request.headers["x-stainless-retry-count"] for request in double.requests] == ["0"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Failure.RATE_LIMITED, RateLimited),
        (Failure.IN_FLIGHT_BUDGET, RateLimited),
        (Failure.OVERLOADED, Overloaded),
        (Failure.UNAVAILABLE, Overloaded),
        (Failure.SERVER, Overloaded),
        (Failure.TIMEOUT, Overloaded),
        (Failure.EMPTY_CHOICES, Overloaded),
        (Failure.CREDITS, PaymentRequired),
        (Failure.KEY_LIMIT, PaymentRequired),
        (Failure.BAD_KEY, AuthenticationFailed),
        (Failure.FORBIDDEN, AuthenticationFailed),
        (Failure.UNKNOWN_MODEL, RequestInvalid),
        (Failure.NOT_FOUND, RequestInvalid),
        (Failure.TOO_LARGE, ContextTooLarge),
        (Failure.CONTEXT_TOO_LONG, ContextTooLarge),
        (Failure.HTML_200, ResponseInvalid),
        (Failure.DROPPED, StreamCut),
    ],
)
async def test_each_failure_of_openrouter_is_what_its_words_say(
    double: FakeProvider, kind: Failure, expected: type[ProviderError]
) -> None:
    """PROVIDERS 2, 4, 5, 8: of three kinds of 402 one is worth another try; a failure may come under status 200."""
    error = await failure(double, OPENROUTER, Step(failure=kind))
    assert (type(error), error.retryable) == (expected, expected.retryable_by_default)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Failure.RATE_LIMITED, RateLimited),
        (Failure.CONCURRENCY, RateLimited),
        (said(429, "1305"), RateLimited),
        (Failure.OVERLOADED, Overloaded),
        (Failure.UNAVAILABLE, Overloaded),
        (Failure.SERVER, Overloaded),
        (Failure.CREDITS, PaymentRequired),
        (Failure.PLAN_QUOTA, PaymentRequired),
        (Failure.PLAN_EXPIRED, PaymentRequired),
        (said(429, "1304"), PaymentRequired),
        (said(429, "1310"), PaymentRequired),
        (Failure.NOT_IN_PLAN, PaymentRequired),
        (Failure.FAIR_USE, PaymentRequired),
        (Failure.BAD_KEY, AuthenticationFailed),
        (HttpReply(status=434, body="{}"), AuthenticationFailed),
        (HttpReply(status=435, body="{}"), RequestInvalid),
        (Failure.UNKNOWN_MODEL, RequestInvalid),
        (Failure.CONTEXT_TOO_LONG, ContextTooLarge),
        (Failure.HTML_200, ResponseInvalid),
        (Failure.DROPPED, StreamCut),
    ],
    ids=str,
)
async def test_each_failure_of_zai_is_what_its_code_says(
    double: FakeProvider, kind: Failure | HttpReply, expected: type[ProviderError]
) -> None:
    """PROVIDERS 2, 4, 8: half of its 429s are a balance, a plan or a quota, and no reason to wait."""
    error = await failure(double, ZAI, Step(failure=kind))
    assert (type(error), error.retryable) == (expected, expected.retryable_by_default)


@pytest.mark.parametrize("retryable", [True, False])
async def test_what_openrouter_says_of_trying_again_is_obeyed(double: FakeProvider, *, retryable: bool) -> None:
    """PROVIDERS 2: it knows what the upstream's state means better than a status does."""
    availability = {"code": "capacity_exhausted", "retryable": retryable, "retry_after": 7}
    body = {"error": {"code": 503, "message": "No capacity", "availability": availability}}
    error = await failure(double, OPENROUTER, Step(failure=HttpReply(status=503, body=json.dumps(body))))
    assert (error.facts.code, error.retryable, error.facts.retry_after_s) == ("capacity_exhausted", retryable, 7.0)


@BOTH
async def test_a_wait_that_is_asked_for_is_on_the_record(double: FakeProvider, model: str) -> None:
    """PROVIDERS 3: whether it is waited for, the owner of retries decides."""
    error = await failure(double, model, Step(failure=Failure.RATE_LIMITED, retry_after_s=86_400))
    assert error.facts.retry_after_s == 86_400


@BOTH
async def test_a_page_of_a_proxy_is_no_answer(double: FakeProvider, model: str) -> None:
    """PROVIDERS 4: under status 200 the SDK would hand on a text."""
    error = await failure(double, model, Step(failure=Failure.HTML_200))
    assert "text/html" in str(error)
    assert "base URL" in str(error)


async def test_a_whole_reply_where_a_stream_was_asked_for_is_no_answer(double: FakeProvider) -> None:
    """PROVIDERS 4: JSON alone is not enough; what is not a stream of events has no terminal event either."""
    body = json.dumps({"id": "1", "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]})
    error = await failure(double, ZAI, Step(failure=HttpReply(status=200, body=body)))
    assert type(error) is ResponseInvalid


@pytest.mark.parametrize("line", ["data: {broken\n\n", "data: [1]\n\n", 'data: {"choices": [{"delta": 7}]}\n\n'])
async def test_events_of_another_form_make_the_reply_invalid(double: FakeProvider, line: str) -> None:
    """PROVIDERS 4."""
    reply = HttpReply(status=200, body=line + "data: [DONE]\n\n", content_type="text/event-stream")
    assert type(await failure(double, ZAI, Step(failure=reply))) is ResponseInvalid


async def test_a_reply_that_ends_in_an_error_is_one(double: FakeProvider) -> None:
    """PROVIDERS 5: partial content and status 200 do not make it an answer; what it used is on the record."""
    step = Step(text="half an ans", ending=Ending.FAILED, figures=Figures(cost_usd=0.5))
    error = await failure(double, OPENROUTER, step)
    assert (type(error), error.facts.type, error.retryable) == (Overloaded, "provider_unavailable", True)
    assert error.usage is not None
    assert error.usage.cost_usd == 0.5


async def test_a_network_error_of_zai_is_worth_another_try(double: FakeProvider) -> None:
    """PROVIDERS 2, 5: it comes as a finish reason under status 200."""
    error = await failure(double, ZAI, Step(text="half an ans", ending=Ending.FAILED))
    assert (type(error), error.retryable) == (Overloaded, True)


@BOTH
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Failure.OVERLOADED, Overloaded),
        (Failure.RATE_LIMITED, RateLimited),
        (Failure.CREDITS, PaymentRequired),
        (Failure.CONTEXT_TOO_LONG, ContextTooLarge),
    ],
)
async def test_an_error_inside_of_a_stream_is_what_its_words_say(
    double: FakeProvider, model: str, kind: Failure, expected: type[ProviderError]
) -> None:
    """PROVIDERS 6: its status is 200."""
    step = Step(text="half an answer, and then nothing more", stream_error=StreamError(after_events=3, failure=kind))
    error = await failure(double, model, step)
    assert (type(error), error.facts.status, error.retryable) == (expected, 200, expected.retryable_by_default)
    assert billed_for(error) is None, "nobody knows what half an answer cost"


@BOTH
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("after_events", range(1, 6))
async def test_a_stream_without_its_finish_reason_is_cut(
    double: FakeProvider, model: str, after_events: int, *, drop: bool
) -> None:
    """PROVIDERS 7: wherever it ends, and whether the connection is closed or lost."""
    step = Step(text="x" * 120, calls=(Call(name="read_file"),), cut=Cut(after_events=after_events, drop=drop))
    error = await failure(double, model, step)
    assert (type(error), error.retryable) == (StreamCut, True)


async def test_done_without_a_finish_reason_is_cut(double: FakeProvider) -> None:
    """PROVIDERS 7: `[DONE]` ends the stream, and says nothing about the reply."""
    assert type(await failure(double, ZAI, Step(failure=streamed(chunk({"content": "hello"}))))) is StreamCut


async def test_a_request_that_was_never_sent_is_not_billed() -> None:
    """PROVIDERS 2: nobody listens; the purse need not hold anything for it."""
    name = parse_model(ZAI)
    binding = Binding(
        model=name,
        key="key-of-a-test",
        base_url="http://127.0.0.1:9",
        served_as=frozenset(),
        context_tokens=1_000,
        output_tokens_max=1_000,
        prices=None,
    )
    with pytest.raises(ConnectionFailed) as caught:
        await ChatCompletions(binding).acomplete(asked())
    assert (caught.value.retryable, billed_for(caught.value)) == (True, NOT_BILLED)


@pytest.mark.parametrize("model", [ZAI, OPENROUTER])
async def test_a_full_window_is_not_an_answer(double: FakeProvider, model: str) -> None:
    """PROVIDERS 8: Z.ai says so itself; behind OpenRouter the provider's own word stands beside `length`."""
    reason = {"finish_reason": "length", "native_finish_reason": "model_context_window_exceeded"}
    step = (
        Step(text="half", ending=Ending.WINDOW) if model == ZAI else Step(failure=streamed(chunk({}, model, **reason)))
    )
    assert type(await failure(double, model, step)) is ContextTooLarge


async def test_an_error_keeps_what_is_known_of_its_request(double: FakeProvider) -> None:
    """PROVIDERS 9: who, status, the provider's words, the request, and a body."""
    facts = (await failure(double, ZAI, Step(failure=Failure.PLAN_QUOTA))).facts
    assert (facts.provider, facts.status, facts.code) == ("zai", 429, "1308")
    assert facts.request_id == "req_fake_000001"
    assert "Usage limit reached" in facts.body
    facts = (await failure(double, OPENROUTER, Step(failure=Failure.KEY_LIMIT))).facts
    assert (facts.provider, facts.status, facts.type) == ("openrouter", 402, "payment_required")
    assert (facts.code, facts.request_id) == ("openrouter_key_limit", "req_fake_000001")


@BOTH
async def test_no_error_shows_the_key(double: FakeProvider, model: str) -> None:
    """PROVIDERS 10: providers repeat a key in what they say of it."""
    key = double.key(parse_model(model).route)
    reply = HttpReply(status=401, body=json.dumps({"error": {"code": 401, "message": f"no such key: {key}"}}))
    error = await failure(double, model, Step(failure=reply))
    shown = f"{error} {error!r} {error.facts!r} {error.__cause__!r} {bound(double, model)!r}"
    assert key not in shown
    assert "no such key: [redacted]" in shown


# Turns and tools ------------------------------------------------------------------------------------------------------


@BOTH
async def test_arguments_that_are_no_json_are_carried_as_text_and_not_sent_back(
    double: FakeProvider, model: str
) -> None:
    """PROVIDERS 13: whether a call makes sense, the executor decides; an ill-formed one would spoil the history."""
    adapter = opened(double, model, Step(calls=(Call(name="read_file", arguments='{"path": "a'),)), Step(text="ok"))
    response = await adapter.acomplete(asked(tools=[READ]))
    assert [block.arguments for block in response.blocks if isinstance(block, ToolUse)] == ['{"path": "a']
    await adapter.acomplete(asked("hello", answered(response), results(response, is_error=True), tools=[READ]))
    assistant, result = double.requests[1].body["messages"][1:]
    assert assistant["tool_calls"][0]["function"]["arguments"] == "{}"
    assert result["content"] == "Error: it holds nothing"


async def test_calls_without_arguments_are_calls(double: FakeProvider) -> None:
    """PROVIDERS 13: some providers send no arguments at all where a tool takes none."""
    call = {"index": 0, "id": "c1", "function": {"name": "look"}}
    reply = streamed(chunk({"tool_calls": [call]}), chunk({}, finish_reason="tool_calls"))
    response = await answer(double, ZAI, Step(failure=reply))
    assert response.blocks == (ToolUse(call_id="c1", name="look", arguments="{}"),)


async def test_further_pieces_of_a_call_do_not_take_its_name_away(double: FakeProvider) -> None:
    """PROVIDERS 11: some providers repeat each field with every piece, the name as it is and the id empty."""
    pieces = [("c1", "{"), ("", "}"), (None, "")]
    calls = [{"index": 0, "id": i, "type": "", "function": {"name": "look", "arguments": a}} for i, a in pieces]
    reply = streamed(*(chunk({"tool_calls": [call]}) for call in calls), chunk({}, finish_reason="tool_calls"))
    response = await answer(double, ZAI, Step(failure=reply))
    assert response.blocks == (ToolUse(call_id="c1", name="look", arguments="{}"),)
    assert kept(response)["tool_calls"][0]["type"] == "function"


async def test_calls_that_share_an_index_are_told_apart_by_their_ids(double: FakeProvider) -> None:
    """PROVIDERS 11: two calls that were taken for one would have one broken text of arguments."""
    calls = [{"index": 0, "id": f"c{n}", "function": {"name": "look", "arguments": "{}"}} for n in (1, 2)]
    reply = streamed(*(chunk({"tool_calls": [call]}) for call in calls), chunk({}, finish_reason="tool_calls"))
    response = await answer(double, ZAI, Step(failure=reply))
    assert response.blocks == tuple(ToolUse(call_id=f"c{n}", name="look", arguments="{}") for n in (1, 2))


async def test_calls_without_ids_get_some(double: FakeProvider) -> None:
    """PROVIDERS 11: a result could not name them otherwise."""
    calls = [{"index": at, "function": {"name": "look", "arguments": "{}"}} for at in (0, 1)]
    reply = streamed(chunk({"tool_calls": calls}), chunk({}, finish_reason="stop"))
    response = await answer(double, ZAI, Step(failure=reply))
    uses = answered(response).tool_uses
    assert (len({use.call_id for use in uses}), response.stop) == (2, StopReason.TOOL_USE)
    assert [call["id"] for call in kept(response)["tool_calls"]] == [use.call_id for use in uses]


async def test_ids_that_a_provider_uses_again_are_unique_in_the_history_and_its_own_on_the_wire(
    double: FakeProvider,
) -> None:
    """PROVIDERS 11, 14: reasoning may name a call by the id that the provider gave it."""
    step = Step(thinking=(Thinking(text=""),), calls=(Call(name="read_file", call_id="tool_0"),))
    adapter = opened(double, OPENROUTER, step, step)
    first = await adapter.acomplete(asked(tools=[READ]))
    history = ("hello", answered(first), results(first))
    second = await adapter.acomplete(asked(*history, tools=[READ]))
    assert [use.call_id for use in answered(second).tool_uses] == ["tool_0_2"]
    whole = asked(*history, answered(second), results(second), tools=[READ])
    messages = request_body(bound(double, OPENROUTER), DIALECTS[Route.OPENROUTER], whole)["messages"]
    assert messages[3] == kept(second)
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ["tool_0", "tool_0"]


def kept(response: ModelResponse) -> dict[str, Any]:
    """The message that goes back."""
    assert response.raw is not None
    assert response.raw.isascii()
    message: dict[str, Any] = json.loads(response.raw)["content"][0]
    return message


async def test_reasoning_details_go_back_whole_and_in_order(double: FakeProvider) -> None:
    """PROVIDERS 14: text in pieces is one detail; sealed ones, empty ones and fields of tomorrow stay as they came."""
    sealed = {"type": "reasoning.encrypted", "data": "opaque", "id": "tool_0", "format": "google-v1", "index": 1}
    text = {"type": "reasoning.text", "text": "", "signature": None, "index": 0, "shade": ["new"]}
    deltas = [
        {"role": "assistant", "content": "", "reasoning": "Fi", "reasoning_details": [{**text, "text": "Fi"}]},
        {"reasoning": "rst", "reasoning_details": [{**text, "text": "rst"}]},
        {"reasoning_details": [{**text, "signature": "sig\u00e9"}]},
        {"reasoning_details": [sealed, {"type": "reasoning.of_tomorrow", "z": 1, "a": None}]},
        {
            "tool_calls": [
                {"index": 0, "id": "tool_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ]
        },
        {"weather": {"sun": True}},
    ]
    reply = streamed(*(chunk(delta, OPENROUTER) for delta in deltas), chunk({}, OPENROUTER, finish_reason="tool_calls"))
    message = kept(await answer(double, OPENROUTER, Step(failure=reply)))
    assert json.dumps(message["reasoning_details"]) == json.dumps(
        [
            {**text, "text": "First", "signature": "sig\u00e9"},
            sealed,
            {"type": "reasoning.of_tomorrow", "z": 1, "a": None},
        ]
    )
    assert (message["reasoning"], message["weather"]) == ("First", {"sun": True})


@BOTH
async def test_reasoning_comes_back_with_the_results_as_the_provider_gave_it(double: FakeProvider, model: str) -> None:
    """PROVIDERS 14, 19: the double refuses a history that lost it, and so do the providers."""
    thought = (Thinking(text="First I look. " * 9), Thinking(text="", redacted=model == OPENROUTER))
    steps = [Step(thinking=thought, calls=(Call(name="read_file"), Call(name="read_file"))), Step(text="Empty.")]
    adapter = opened(double, model, *steps)
    first = await adapter.acomplete(asked(tools=[READ]))
    second = await adapter.acomplete(asked("hello", answered(first), results(first), tools=[READ]))
    assert second.blocks == (TextBlock(text="Empty."),)
    assert double.requests[1].body["messages"][1] == kept(first)
    assert double.requests[0].body["tools"] == double.requests[1].body["tools"]


async def test_what_another_provider_gave_goes_back_as_plain_text_and_calls(double: FakeProvider) -> None:
    """PROVIDERS 14: reasoning is sealed for whoever gave it, and nobody else takes it."""
    thought = Step(thinking=(Thinking(text="hm"),), text="I look.", calls=(Call(name="read_file", call_id="c1"),))
    first = await opened(double, OPENROUTER, thought).acomplete(asked(tools=[READ]))
    adapter = opened(double, ZAI, Step(text="Empty."))
    await adapter.acomplete(asked("hello", answered(first), results(first), tools=[READ]))
    assert double.requests[0].body["messages"][1] == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
    }


@pytest.mark.parametrize(
    ("model", "step", "detail"),
    [
        (OPENROUTER, Step(refusal="I will not."), "I will not."),
        (OPENROUTER, Step(text="I", ending="content_filter"), ""),
        (OPENROUTER, Step(failure=Failure.CONTENT_FILTER), "flagged by moderation"),
        (OPENROUTER, Step(stream_error=StreamError(after_events=2, failure=Failure.CONTENT_FILTER)), "flagged"),
        (ZAI, Step(refusal="I will not."), ""),
        (ZAI, Step(failure=Failure.CONTENT_FILTER), "unsafe or sensitive"),
    ],
)
async def test_a_refusal_is_an_outcome(double: FakeProvider, model: str, step: Step, detail: str) -> None:
    """PROVIDERS 17: as a part of the message, as a finish reason, as an error, and inside of a stream."""
    response = await answer(double, model, step)
    assert response.stop is StopReason.REFUSAL
    assert detail in response.stop_detail


async def test_a_refusal_goes_back_as_what_was_said(double: FakeProvider) -> None:
    """PROVIDERS 17: a message of neither content nor calls would be refused for its form."""
    adapter = opened(double, OPENROUTER, Step(refusal="I will not."), Step(text="Gladly."))
    refused = await adapter.acomplete(asked())
    response = await adapter.acomplete(asked("hello", answered(refused), "then say hello"))
    assert response.blocks == (TextBlock(text="Gladly."),)


@BOTH
async def test_an_unknown_finish_reason_is_no_success(double: FakeProvider, model: str) -> None:
    """PROVIDERS 18."""
    error = await failure(double, model, Step(text="Looks like an answer.", ending="tired"))
    assert type(error) is UnknownStop
    assert "'tired'" in str(error)


async def test_a_stop_for_calls_that_are_not_there_is_no_success(double: FakeProvider) -> None:
    """PROVIDERS 18: the model meant to go on, and nobody knows how."""
    assert type(await failure(double, ZAI, Step(text="I look.", ending="tool_calls"))) is ResponseInvalid


@pytest.mark.parametrize(("ending", "stop"), [("stop", StopReason.TOOL_USE), ("length", StopReason.MAX_TOKENS)])
async def test_calls_count_unless_they_may_be_cut(double: FakeProvider, ending: str, stop: StopReason) -> None:
    """PROVIDERS 13: some providers say `stop` where they mean calls; `length` may have cut the last one."""
    response = await answer(double, ZAI, Step(calls=(Call(name="read_file"),), ending=ending))
    assert response.stop is stop


def test_claude_gets_no_sampling_parameters_by_openrouter_either(double: FakeProvider) -> None:
    """PROVIDERS 20: refused when it is bound, instead of dropped in silence."""
    with pytest.raises(ConfigurationError, match=r"temperature 0\.5"):
        ChatCompletions(bound(double, "openrouter/anthropic/claude-opus-5-5", temperature=0.5))


async def test_a_request_to_zai_has_nothing_that_it_refuses(double: FakeProvider) -> None:
    """PROVIDERS 19, 22: its own base, one limit, thinking kept between the steps of a turn."""
    adapter = opened(double, ZAI, Step(text="ok"), temperature=0.3, effort=Effort.HIGH)
    await adapter.acomplete(asked(tools=[READ], system="Be brief."))
    request = double.requests[0]
    assert request.path.endswith("/api/paas/v4/chat/completions")
    assert {key: value for key, value in request.body.items() if key not in ("messages", "tools")} == {
        "model": "glm-5.3",
        "max_tokens": 1_000,
        "stream": True,
        "thinking": {"type": "enabled", "clear_thinking": False},
        "reasoning_effort": "high",
        "temperature": 0.3,
    }
    assert set(request.body["tools"][0]["function"]) == {"name", "description", "parameters"}


@pytest.mark.parametrize("temperature", [0.0, 1.0, 1.5])
def test_zai_takes_a_temperature_between_0_and_1_alone(double: FakeProvider, temperature: float) -> None:
    """PROVIDERS 22: another SDK would send 0.01 in its place, and nobody would know."""
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        ChatCompletions(bound(double, ZAI, temperature=temperature))


def test_thinking_can_be_switched_off(double: FakeProvider) -> None:
    """PROVIDERS 19."""
    body = request_body(bound(double, ZAI, effort=Effort.NONE), DIALECTS[Route.ZAI], asked())
    assert (body["thinking"], "reasoning_effort" in body) == ({"type": "disabled"}, False)


# Accounting and reproducibility ---------------------------------------------------------------------------------------


async def test_what_openrouter_says_that_it_costs_is_what_it_costs(double: FakeProvider) -> None:
    """PROVIDERS 23, 24: no price of ours replaces a figure of theirs, and a cached token counts once."""
    figures = Figures(
        input_tokens=100,
        cache_read_tokens=30,
        cache_write_tokens=20,
        output_tokens=10,
        reasoning_tokens=4,
        cost_usd=0.125,
    )
    response = await answer(double, OPENROUTER, Step(text="hello", figures=figures))
    usage = response.usage
    assert (usage.uncached_input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (100, 30, 20)
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (150, 10, 4)
    assert (usage.cost_usd, usage.cost_origin) == (0.125, CostOrigin.REPORTED)
    assert (response.provider, response.served_model) == ("Fake", "google/gemini-3-pro")
    assert response.request_id.startswith("gen-")


async def test_with_a_key_of_ones_own_both_bills_count(double: FakeProvider) -> None:
    """PROVIDERS 23: OpenRouter then takes a share, and the provider is paid besides."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "cost": 0.01,
        "is_byok": True,
        "cost_details": {"upstream_inference_cost": 0.2},
    }
    last = {**chunk({}, OPENROUTER, finish_reason="stop"), "usage": usage}
    response = await answer(double, OPENROUTER, Step(failure=streamed(last)))
    assert response.usage.cost_usd == pytest.approx(0.21)


async def test_the_cost_by_zai_is_computed_from_what_it_counts(double: FakeProvider) -> None:
    """PROVIDERS 23, 24: the usage comes unasked, and its prompt contains what was cached."""
    figures = Figures(input_tokens=1_000, cache_read_tokens=1_000, output_tokens=100)
    usage = (await answer(double, ZAI, Step(text="hello", figures=figures))).usage
    assert (usage.cost_usd, usage.cost_origin) == (pytest.approx(0.0064), CostOrigin.COMPUTED)


async def test_a_cache_that_is_larger_than_its_prompt_makes_no_negative_count(double: FakeProvider) -> None:
    """PROVIDERS 23: behind OpenRouter not all count alike; a figure below 0 would be taken for a fault of ours."""
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 15}}
    last = {**chunk({}, OPENROUTER, finish_reason="stop"), "usage": usage}
    response = await answer(double, OPENROUTER, Step(failure=streamed(last)))
    assert (response.usage.uncached_input_tokens, response.usage.cache_read_tokens) == (0, 15)


@BOTH
async def test_what_is_not_said_is_not_known(double: FakeProvider, model: str) -> None:
    """PROVIDERS 23: None, and never 0."""
    reply = streamed(chunk({"content": "hello"}, model), chunk({}, model, finish_reason="stop"))
    usage = (await answer(double, model, Step(failure=reply))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cost_usd) == (None,) * 4
    assert usage.cost_origin is CostOrigin.UNKNOWN


async def test_figures_behind_the_finish_reason_are_read(double: FakeProvider) -> None:
    """PROVIDERS 23: OpenRouter sends them in a chunk of their own, after a pause for all we know."""
    response = await answer(double, OPENROUTER, Step(text="hello", event_ms=20))
    assert response.usage.cost_usd is not None


@BOTH
async def test_another_model_than_the_bound_one_fails_and_its_cost_counts(double: FakeProvider, model: str) -> None:
    """PROVIDERS 25, 26: a moved id would change results in silence."""
    error = await failure(double, model, Step(text="hello", served_model="somebody/else"))
    assert (type(error), error.retryable) == (ServedModelDiffers, False)
    assert error.usage is not None
    assert error.usage.cost_usd is not None


async def test_a_selector_takes_whoever_serves_and_says_who(double: FakeProvider) -> None:
    """PROVIDERS 26."""
    double.play(Script(steps=(Step(text="hello", served_model="somebody/else"),)))
    binding = replace(bound(double, "openrouter/auto"), served_as=frozenset())
    response = await ChatCompletions(binding).acomplete(asked())
    assert response.served_model == "somebody/else"
    assert double.requests[0].body["model"] == "openrouter/auto"


async def test_a_pinned_upstream_is_asked_and_nobody_else(double: FakeProvider) -> None:
    """PROVIDERS 27: OpenRouter would go on to another provider, or drop what one does not take, without a word."""
    await answer(double, OPENROUTER, Step(text="ok"), upstream="google-vertex", effort=Effort.LOW)
    assert double.requests[0].body["provider"] == {
        "order": ["google-vertex"],
        "only": ["google-vertex"],
        "allow_fallbacks": False,
        "require_parameters": True,
    }
    assert double.requests[0].body["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize("model", ["typesafe/jev-1.13", "~typesafe/jev-latest", "typesafe/jev-preview"])
def test_a_decision_model_is_refused_before_any_request(double: FakeProvider, model: str) -> None:
    """PROVIDERS 28: this misuse has outlived whole suites of permissive mocks."""
    double.play(Script())
    with pytest.raises(RouteRefused, match="decision-only"):
        ChatCompletions(bound(double, f"openrouter/{model}"))
    assert double.requests == ()


async def test_the_router_of_that_name_is_a_chat_model(double: FakeProvider) -> None:
    """PROVIDERS 28."""
    assert (await answer(double, "openrouter/typesafe/jev-router", Step(text="hello"))).stop is StopReason.END_TURN


async def test_a_claude_behind_openrouter_is_told_what_to_keep(double: FakeProvider) -> None:
    """Its cache keeps nothing unasked; marks at the ends of the last two requests make a long session cheap."""
    adapter = opened(double, "openrouter/anthropic/claude-opus-5-5", Step(text="ok"))
    await adapter.acomplete(asked("one", "1", "two", "2", "three", system="Be brief."))
    messages = double.requests[0].body["messages"]
    marked = [at for at, message in enumerate(messages) if "cache_control" in json.dumps(message)]
    assert marked == [0, 3, 5]
    assert messages[1]["content"] == [{"type": "text", "text": "one"}]
