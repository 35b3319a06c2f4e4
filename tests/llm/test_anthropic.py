"""The Messages API as its SDK really speaks it, against the strict double: PROVIDERS sections 3 and 7."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geode.dev.fake_provider.script import Call, Ending, Failure, Figures, HttpReply, Script, Step, Thinking
from geode.dev.fake_provider.server import FakeProvider
from geode.llm import errors
from geode.llm.anthropic import AnthropicMessages, request_body
from geode.llm.binding import Effort, ModelOptions
from geode.llm.messages import Message, Speaker, StopReason, TextBlock, ToolResult, ToolUse
from geode.llm.routes import Route
from geode.llm.usage import CostOrigin, Usage
from tests.llm.asking import HI, LOOK, answered, bound, events, snapshot, stored

MODEL = "anthropic/claude-opus-5-5"
SHARP = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
UNKNOWN = st.dictionaries(
    st.text(min_size=1, max_size=5).filter(lambda key: key not in ("type", "id")), JSON, max_size=4
).map(lambda fields: {**fields, "type": "brand_new_block"})
THOUGHT = st.builds(Thinking, text=st.text(max_size=60), redacted=st.booleans())


def opened(double: FakeProvider, *steps: Step, options: ModelOptions | None = None, **more: Any) -> AnthropicMessages:
    double.play(Script(steps=steps))
    return AnthropicMessages(bound(double, MODEL, options, **more))


def message(*content: Mapping[str, Any], stop: str = "end_turn", **more: Any) -> tuple[dict[str, Any], ...]:
    """The events of a message whose blocks come whole."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    blocks = [
        event
        for index, block in enumerate(content)
        for event in (
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        )
    ]
    return (
        {"type": "message_start", "message": {**head, "usage": usage}},
        *blocks,
        {"type": "message_delta", "delta": {"stop_reason": stop, **more}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


TEXT = {"type": "text", "text": "Hello."}


async def test_the_client_is_built_from_the_binding_alone_and_never_repeats_a_request(
    double: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROVIDERS 1: explicit key, address, time and no retries, whatever the environment says."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-somebody-else")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    adapter = opened(double, Step(failure=Failure.OVERLOADED), Step(text="Hello."))

    with pytest.raises(errors.Overloaded):
        await adapter.acomplete(snapshot())
    response = await adapter.acomplete(snapshot())

    assert response.blocks == (TextBlock(text="Hello."),)
    assert [request.headers["x-stainless-retry-count"] for request in double.requests] == ["0", "0"]
    assert [request.headers["anthropic-version"] for request in double.requests] == ["2026-10-21"] * 2
    assert double.requests[0].headers["x-stainless-timeout"] == "30.0"


async def test_a_request_has_no_sampling_parameter_and_asks_to_think_as_the_model_takes_it(
    double: FakeProvider,
) -> None:
    """PROVIDERS 19, 20: by a schema of the outgoing body, and the same for each request of a tool loop."""
    adapter = opened(
        double, Step(calls=(Call(name="look"),)), Step(text="Hello."), options=ModelOptions(effort=Effort.HIGH)
    )
    first = await adapter.acomplete(snapshot())
    await adapter.acomplete(snapshot(HI, stored(first), answered(first)))

    bodies = [request.body for request in double.requests]
    for body in bodies:
        assert set(body) == {
            "model",
            "max_tokens",
            "messages",
            "stream",
            "tools",
            "system",
            "thinking",
            "output_config",
        }
        assert body["thinking"] == {"type": "adaptive"}
        assert body["output_config"] == {"effort": "high"}
    assert bodies[0]["tools"] == bodies[1]["tools"]


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("claude-opus-5-5", None, {"type": "adaptive"}),
        ("claude-sonnet-4-6", None, {"type": "adaptive"}),
        ("claude-sonnet-4-6", Effort.NONE, {"type": "disabled"}),
        ("claude-opus-4-5", Effort.LOW, None),
        ("claude-sonnet-4-5-20250929", None, None),
        ("claude-haiku-4-5-20251001", None, None),
    ],
)
def test_models_are_asked_to_think_in_the_way_that_they_take(
    double: FakeProvider, model: str, effort: Effort | None, thinking: object
) -> None:
    body = request_body(bound(double, f"anthropic/{model}", ModelOptions(effort=effort)), snapshot())

    assert body.get("thinking") == thinking


def test_a_temperature_is_refused_and_not_dropped(double: FakeProvider) -> None:
    """PROVIDERS 20: a configuration that sets one would not be what runs."""
    with pytest.raises(errors.ConfigurationError, match=r"temperature 0\.5 is set for anthropic/claude-opus-5-5"):
        opened(double, options=ModelOptions(temperature=0.5))


@pytest.mark.parametrize(("asked", "sent"), [(None, 1_000), (500, 500), (5_000, 1_000)])
def test_the_least_of_the_limits_on_output_is_sent(double: FakeProvider, asked: int | None, sent: int) -> None:
    body = request_body(bound(double, MODEL, ModelOptions(max_output_tokens=asked)), snapshot())

    assert body["max_tokens"] == sent


async def test_the_beginning_of_a_session_is_read_from_the_cache_from_the_second_request_on(
    double: FakeProvider,
) -> None:
    """PROVIDERS 3: the marks stand so that a round of more than 20 blocks finds what the last one wrote."""
    many = tuple(Call(name="look") for _ in range(30))
    adapter = opened(double, *(Step(text="I look.", calls=many) for _ in range(3)), Step(text="Done."))
    prompt = Message(role=Speaker.USER, blocks=(TextBlock(text="Look at this. " * 1_000),))
    history: tuple[Message, ...] = (prompt,)
    usages: list[Usage] = []
    for _ in range(4):
        response = await adapter.acomplete(snapshot(*history, system="You are thorough. " * 1_000))
        usages.append(response.usage)
        history = (*history, stored(response), answered(response))

    assert usages[0].cache_read_tokens == 0
    for earlier, later in pairwise(usages):
        assert later.cache_read_tokens == (earlier.cache_read_tokens or 0) + (earlier.cache_write_tokens or 0) > 0
    assert "cache_control" not in json.dumps(
        [m for m in double.requests[3].body["messages"] if m["role"] == "assistant"]
    )


def test_without_a_system_text_the_tools_are_marked_for_the_cache(double: FakeProvider) -> None:
    binding = bound(double, MODEL)
    two = (LOOK, LOOK)

    marks = [tool.get("cache_control") for tool in request_body(binding, snapshot(system="", tools=two))["tools"]]

    assert marks == [None, {"type": "ephemeral", "ttl": "5m"}]
    assert "tools" not in request_body(binding, snapshot(system="", tools=()))


@pytest.mark.slow
@SHARP
@given(thought=st.lists(THOUGHT, max_size=3), unknown=st.lists(UNKNOWN, min_size=1, max_size=3), arguments=JSON)
def test_everything_that_came_survives_saving_and_goes_back_as_it_came(
    double: FakeProvider, thought: Sequence[Thinking], unknown: Sequence[dict[str, Any]], arguments: Any
) -> None:
    """PROVIDERS 14, 15: reasoning with empty text, sealed, redacted; blocks nobody knows; order of keys and all."""
    call = Call(name="look", arguments={"given": arguments})
    adapter = opened(
        double, Step(thinking=tuple(thought), text="So.", blocks=tuple(unknown), calls=(call,)), Step(text="Done.")
    )

    async def both() -> None:
        first = await adapter.acomplete(snapshot())
        await adapter.acomplete(snapshot(HI, stored(first), answered(first)))

    asyncio.run(both())

    came = double.requests[1].body["messages"][1]["content"]
    kinds = ["redacted_thinking" if one.redacted else "thinking" for one in thought]
    assert [block["type"] for block in came] == [*kinds, "text", *["brand_new_block"] * len(unknown), "tool_use"]
    assert json.dumps(came[len(thought) + 1 : -1]) == json.dumps(list(unknown))
    assert json.dumps(came[-1]["input"]) == json.dumps(call.arguments)


async def test_half_a_character_pair_comes_back_as_the_escape_that_it_was(double: FakeProvider) -> None:
    """PROVIDERS 14: UTF-8 cannot hold it; JSON can."""
    block = {"type": "redacted_thinking", "data": "half \ud83d of a pair"}
    adapter = opened(double, events(*message(block, TEXT)), Step(failure=Failure.OVERLOADED))
    first = await adapter.acomplete(snapshot())

    with pytest.raises(errors.ProviderError):
        await adapter.acomplete(snapshot(HI, stored(first), HI))

    assert rb"half \ud83d of a pair" in double.requests[1].raw


async def test_text_without_content_is_kept_and_not_sent_back(double: FakeProvider) -> None:
    """The API gives such blocks out beside calls, and refuses them when they come back."""
    empty = {"type": "text", "text": "\n\n"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    adapter = opened(double, events(*message(empty, call, stop="tool_use")), Step(text="Done."))

    first = await adapter.acomplete(snapshot())
    await adapter.acomplete(snapshot(HI, stored(first), answered(first)))

    assert json.loads(first.raw or "")["content"] == [empty, call]
    assert double.requests[1].body["messages"][1]["content"] == [call]


def test_a_message_of_another_wire_is_told_from_its_blocks(double: FakeProvider) -> None:
    """Raw content is its own provider's language; what the host wrote has none."""
    use = ToolUse(call_id="call_1", name="look", arguments='{"a": 1}')
    foreign = Message(
        role=Speaker.ASSISTANT,
        blocks=(TextBlock(text="I look."), use),
        raw='{"wire":"openai_responses","content":[{"type":"reasoning","id":"rs_1"}]}',
    )
    result = Message(
        role=Speaker.USER, blocks=(ToolResult(call_id="call_1", text="broken", is_error=True), TextBlock(text="So?"))
    )

    sent = request_body(bound(double, MODEL), snapshot(HI, foreign, result))["messages"]

    assert sent[1]["content"] == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"a": 1}},
    ]
    assert sent[2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": "broken",
        "is_error": True,
    }


async def test_a_part_that_belongs_to_no_known_block_makes_the_response_invalid(double: FakeProvider) -> None:
    """PROVIDERS 14: a block without it would be another one when it goes back."""
    start, block, stop, *end = message({"type": "brand_new_block", "x": 1})
    part = {"type": "content_block_delta", "index": 0, "delta": {"type": "brand_new_delta", "x": 2}}
    adapter = opened(double, events(start, block, part, stop, *end))

    with pytest.raises(errors.ResponseInvalid, match="'brand_new_delta' belongs to a block of type 'brand_new_block'"):
        await adapter.acomplete(snapshot())


async def test_an_event_that_nobody_knows_changes_nothing(double: FakeProvider) -> None:
    start, *rest = message(TEXT)
    response = await opened(double, events(start, {"type": "weather", "sun": True}, *rest)).acomplete(snapshot())

    assert response.blocks == (TextBlock(text="Hello."),)


@pytest.mark.parametrize(
    ("word", "stop"),
    [
        ("end_turn", StopReason.END_TURN),
        ("stop_sequence", StopReason.END_TURN),
        ("tool_use", StopReason.TOOL_USE),
        ("max_tokens", StopReason.MAX_TOKENS),
        ("pause_turn", StopReason.PAUSE),
        ("compaction", StopReason.PAUSE),
        ("refusal", StopReason.REFUSAL),
    ],
)
async def test_each_reason_to_stop_has_its_meaning(double: FakeProvider, word: str, stop: StopReason) -> None:
    """PROVIDERS 16, 17, 18."""
    response = await opened(double, events(*message(TEXT, stop=word))).acomplete(snapshot())

    assert response.stop is stop


async def test_a_full_window_is_too_much_context_and_an_unknown_reason_is_an_error(double: FakeProvider) -> None:
    """PROVIDERS 8, 18, 25: neither is an answer, and both were billed."""
    adapter = opened(double, Step(text="Half", ending=Ending.WINDOW), events(*message(TEXT, stop="sunspots")))

    with pytest.raises(errors.ContextTooLarge) as full:
        await adapter.acomplete(snapshot())
    with pytest.raises(errors.UnknownStop, match="'sunspots'") as unknown:
        await adapter.acomplete(snapshot())

    assert full.value.usage is not None
    assert full.value.usage.cost_usd is not None
    assert unknown.value.usage == Usage(
        uncached_input_tokens=10,
        output_tokens=5,
        cost_usd=(10 * 4 + 5 * 20) / 1e6,
        cost_origin=CostOrigin.COMPUTED,
    )


async def test_a_refusal_keeps_its_category(double: FakeProvider) -> None:
    """PROVIDERS 17: `frontier_llm` may hit work on language models, and a table must be able to tell."""
    details = {"type": "refusal", "category": "frontier_llm", "explanation": "It asks for weights."}
    response = await opened(double, events(*message(stop="refusal", stop_details=details))).acomplete(snapshot())

    assert (response.stop, response.blocks) == (StopReason.REFUSAL, ())
    assert response.stop_detail == "frontier_llm: It asks for weights."


async def test_usage_counts_each_token_once_and_keeps_what_was_not_said_unknown(double: FakeProvider) -> None:
    """PROVIDERS 23, 24: the input is the sum of three; an hour in the cache costs more than five minutes."""
    full = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
        "cache_read_input_tokens": 1_000,
        "output_tokens": 1,
    }
    start, block, stop, delta, end = message(TEXT)
    start["message"]["usage"] = full
    delta["usage"] = {"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 20}, "input_tokens": None}
    adapter = opened(double, events(start, block, stop, delta, end), events(*message(TEXT)))

    rich, poor = await adapter.acomplete(snapshot()), await adapter.acomplete(snapshot())

    assert rich.usage == Usage(
        uncached_input_tokens=100,
        cache_write_tokens=300,
        cache_write_1h_tokens=100,
        cache_read_tokens=1_000,
        output_tokens=50,
        reasoning_tokens=20,
        cost_usd=pytest.approx((100 * 4 + 200 * 5 + 100 * 8 + 1_000 * 0.4 + 50 * 20) / 1e6),
        cost_origin=CostOrigin.COMPUTED,
    )
    assert rich.usage.input_tokens == 1_400
    assert (poor.usage.cache_write_tokens, poor.usage.cache_read_tokens, poor.usage.reasoning_tokens) == (None,) * 3


async def test_nobody_knows_what_a_message_cost_that_was_cut(double: FakeProvider) -> None:
    """PROVIDERS 7, 23: where a message begins it names a token or two of output, and all that came after is billed."""
    start, block, stop, delta, _ = message(TEXT)
    adapter = opened(double, events(start, block, stop), events(start, block, stop, delta))

    with pytest.raises(errors.StreamCut) as early:
        await adapter.acomplete(snapshot())
    with pytest.raises(errors.StreamCut) as late:
        await adapter.acomplete(snapshot())

    assert early.value.usage == Usage(uncached_input_tokens=10)
    assert late.value.usage is not None
    assert late.value.usage.cost_usd == (10 * 4 + 5 * 20) / 1e6


async def test_without_prices_the_cost_is_unknown(double: FakeProvider) -> None:
    """PROVIDERS 23."""
    response = await opened(double, Step(text="Hello.", figures=Figures(input_tokens=5)), prices=None).acomplete(
        snapshot()
    )

    assert (response.usage.cost_usd, response.usage.cost_origin) == (None, CostOrigin.UNKNOWN)


async def test_a_dated_snapshot_of_the_bound_model_is_the_bound_model_and_another_one_is_not(
    double: FakeProvider,
) -> None:
    """PROVIDERS 26."""
    adapter = opened(
        double, Step(text="A.", served_model="claude-opus-5-5-20261101"), Step(text="B.", served_model="claude-opus-5")
    )

    assert (await adapter.acomplete(snapshot())).served_model == "claude-opus-5-5-20261101"
    with pytest.raises(errors.ServedModelDiffers, match="'claude-opus-5' answered") as differs:
        await adapter.acomplete(snapshot())
    assert differs.value.usage is not None


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ("overloaded_error", errors.Overloaded, True),
        ("rate_limit_error", errors.RateLimited, True),
        ("api_error", errors.Overloaded, True),
        ("invalid_request_error", errors.RequestInvalid, False),
        ("billing_error", errors.PaymentRequired, False),
        ("sunspots", errors.ResponseInvalid, False),
    ],
)
async def test_an_error_inside_of_a_stream_is_known_by_its_type(
    double: FakeProvider, error: str, kind: type[errors.ProviderError], retryable: bool
) -> None:
    """PROVIDERS 6, 25: its status is 200; what came before it was billed."""
    start, block, *_ = message(TEXT)
    failure = {"type": "error", "error": {"type": error, "message": "It broke."}, "request_id": "req_fake"}

    with pytest.raises(kind, match=r"It broke\.") as raised:
        await opened(double, events(start, block, failure)).acomplete(snapshot())

    assert type(raised.value) is kind
    assert raised.value.retryable is retryable
    assert (raised.value.facts.status, raised.value.facts.type) == (200, error)
    assert raised.value.facts.request_id == "req_fake_000001"
    assert raised.value.usage is not None
    assert raised.value.usage.uncached_input_tokens == 10


@pytest.mark.parametrize("last", range(1, 7))
async def test_a_stream_is_a_turn_only_with_its_last_event(double: FakeProvider, last: int) -> None:
    """PROVIDERS 7: cut after each of its events."""
    whole = message(TEXT, {"type": "redacted_thinking", "data": "x"})
    assert len(whole) == 7

    with pytest.raises(errors.StreamCut, match="before 'message_stop'"):
        await opened(double, events(*whole[:last])).acomplete(snapshot())


@pytest.mark.parametrize(
    ("failure", "kind", "type_"),
    [
        (Failure.BAD_REQUEST, errors.RequestInvalid, "invalid_request_error"),
        (Failure.BAD_KEY, errors.AuthenticationFailed, "authentication_error"),
        (Failure.FORBIDDEN, errors.AuthenticationFailed, "permission_error"),
        (Failure.CREDITS, errors.PaymentRequired, "billing_error"),
        (Failure.UNKNOWN_MODEL, errors.RequestInvalid, "not_found_error"),
        (Failure.TIMEOUT, errors.Overloaded, "timeout_error"),
        (Failure.CONFLICT, errors.Overloaded, "conflict_error"),
        (Failure.TOO_LARGE, errors.ContextTooLarge, "request_too_large"),
        (Failure.CONTEXT_TOO_LONG, errors.ContextTooLarge, "invalid_request_error"),
        (Failure.RATE_LIMITED, errors.RateLimited, "rate_limit_error"),
        (Failure.SERVER, errors.Overloaded, "api_error"),
        (Failure.OVERLOADED, errors.Overloaded, "overloaded_error"),
    ],
)
async def test_each_error_is_one_of_ours_with_its_facts(
    double: FakeProvider, failure: Failure, kind: type[errors.ProviderError], type_: str
) -> None:
    """PROVIDERS 2, 8, 9."""
    with pytest.raises(errors.ProviderError) as raised:
        await opened(double, Step(failure=failure, retry_after_s=7)).acomplete(snapshot())

    assert type(raised.value) is kind
    facts = raised.value.facts
    assert (facts.provider, facts.type, facts.request_id, facts.retry_after_s) == (
        "anthropic",
        type_,
        "req_fake_000001",
        7,
    )
    assert facts.status == double.requests[0].status
    assert type_ in facts.body


async def test_a_code_of_the_provider_is_kept(double: FakeProvider) -> None:
    """PROVIDERS 9: `error_code` is the stable word."""
    error = {"type": "billing_error", "message": "Spent.", "details": {"error_code": "contract_spend_limit_reached"}}
    reply = HttpReply(status=402, body=json.dumps({"type": "error", "error": error}))

    with pytest.raises(errors.PaymentRequired) as raised:
        await opened(double, Step(failure=reply)).acomplete(snapshot())

    assert raised.value.facts.code == "contract_spend_limit_reached"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [("<html>Hello</html>", "text/html"), ('{"type":"message","content":[]}', "application/json"), ("", "text/plain")],
)
async def test_a_reply_that_is_no_stream_is_none(double: FakeProvider, body: str, content_type: str) -> None:
    """PROVIDERS 4: a page of a proxy under status 200 is no empty answer."""
    reply = HttpReply(status=200, body=body, content_type=content_type)

    with pytest.raises(errors.ResponseInvalid, match=content_type) as raised:
        await opened(double, Step(failure=reply)).acomplete(snapshot())

    assert raised.value.facts.body == body
    assert not raised.value.retryable


@pytest.mark.parametrize(
    "late",
    [
        {"type": "message_delta"},
        {"type": "content_block_delta"},
        {"type": "error", "error": {"type": "overloaded_error"}},
    ],
)
async def test_what_is_wrong_behind_the_last_event_takes_nothing_from_the_answer(
    double: FakeProvider, late: Mapping[str, Any]
) -> None:
    """PROVIDERS 4, 25: it was billed, and asking again would be billed again."""
    response = await opened(double, events(*message(TEXT), late)).acomplete(snapshot())

    assert response.blocks == (TextBlock(text="Hello."),)


async def test_events_that_are_no_json_are_no_response(double: FakeProvider) -> None:
    """PROVIDERS 4."""
    reply = HttpReply(status=200, body="event: message_start\ndata: {broken\n\n", content_type="text/event-stream")

    with pytest.raises(errors.ResponseInvalid, match="no JSON"):
        await opened(double, Step(failure=reply)).acomplete(snapshot())


async def test_nobody_there_and_nobody_who_answers_are_failed_connections(double: FakeProvider) -> None:
    """PROVIDERS 2: tried again; the text says what was waited for."""
    gone = opened(double, base_url="http://127.0.0.1:9")
    late = opened(double, Step(text="Late.", first_byte_ms=5_000), timeout_s=0.2)

    with pytest.raises(errors.ConnectionFailed, match="no connection") as nobody:
        await gone.acomplete(snapshot())
    with pytest.raises(errors.ConnectionFailed, match=r"within 0\.2 s") as slow:
        await late.acomplete(snapshot())

    assert nobody.value.retryable
    assert slow.value.retryable


async def test_no_error_and_no_repr_shows_the_key() -> None:
    """PROVIDERS 10: also where the provider repeats it, and without a redactor that knows it."""
    key = "canary-0123456789-abcdef"
    body = json.dumps({"type": "error", "error": {"type": "authentication_error", "message": f"bad key {key}"}})
    script = Script(steps=(Step(failure=HttpReply(status=401, body=body)),))
    with FakeProvider(script, keys={Route.ANTHROPIC: key}) as double:
        adapter = AnthropicMessages(bound(double, MODEL))
        with pytest.raises(errors.AuthenticationFailed, match=r"bad key \[redacted\]") as raised:
            await adapter.acomplete(snapshot())

    error = raised.value
    shown = f"{error!r} {error} {error.facts!r} {error.__cause__!r} {adapter!r} {bound(double, MODEL)!r}"
    assert key not in shown
    assert error.__suppress_context__, "the SDK's own error, which shows it, is not told with ours"


async def test_what_comes_behind_the_last_event_takes_nothing_from_the_answer(double: FakeProvider) -> None:
    """PROVIDERS 7: a turn is whole with its last event."""
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in message(TEXT))
    for rest in ("event: message_stop\ndata: {broken\n\n", 'event: error\ndata: {"type":"error","error":{}}\n\n'):
        reply = HttpReply(status=200, body=body + rest, content_type="text/event-stream")

        response = await opened(double, Step(failure=reply)).acomplete(snapshot())

        assert response.blocks == (TextBlock(text="Hello."),)
