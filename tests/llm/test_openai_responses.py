"""The Responses API as its SDK really speaks it, by key and by plan, against the strict double: PROVIDERS 4 and 7."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.dev.fake_provider.keys import EXPIRED
from geode.dev.fake_provider.script import (
    Call,
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
from geode.llm import errors
from geode.llm.binding import Effort, ModelOptions
from geode.llm.messages import Message, Speaker, StopReason, TextBlock, ToolResult, ToolSchema, ToolUse
from geode.llm.openai_responses import OpenAIResponses, request_body
from geode.llm.routes import Route
from geode.llm.usage import CostOrigin, Usage
from tests.llm.asking import HI, LOOK, answered, bound, events, snapshot, stored
from tests.llm.test_anthropic import JSON, SHARP, THOUGHT, UNKNOWN

MODEL, BY_PLAN = "openai/gpt-6-sol", "openai-codex/gpt-6-sol"
TEXT = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}


def opened(
    double: FakeProvider, *steps: Step, model: str = MODEL, options: ModelOptions | None = None, **more: Any
) -> OpenAIResponses:
    double.play(Script(steps=steps))
    return OpenAIResponses(bound(double, model, options, **more))


def response(
    *items: Mapping[str, Any], status: str = "completed", listed: bool = True, **more: Any
) -> tuple[dict[str, Any], ...]:
    """The events of a response whose items come whole; `listed` is whether its end holds them as well."""
    shell = {"id": "resp_1", "model": "gpt-6-sol", "status": "in_progress", "output": [], "usage": None}
    ended = {**shell, "status": status, "output": list(items) if listed else [], **more}
    done = ({"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items))
    return {"type": "response.created", "response": shell}, *done, {"type": f"response.{status}", "response": ended}


async def test_the_client_is_built_from_the_binding_alone_and_never_repeats_a_request(
    double: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROVIDERS 1."""
    for name, value in (
        ("OPENAI_API_KEY", "sk-of-somebody-else"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9"),
        ("HTTP_PROXY", "http://127.0.0.1:9"),
    ):
        monkeypatch.setenv(name, value)
    adapter = opened(double, Step(failure=Failure.UNAVAILABLE), Step(text="Hello."))

    with pytest.raises(errors.Overloaded):
        await adapter.acomplete(snapshot())
    reply = await adapter.acomplete(snapshot())

    assert reply.blocks == (TextBlock(text="Hello."),)
    assert [request.headers["x-stainless-retry-count"] for request in double.requests] == ["0", "0"]
    assert double.requests[0].headers["x-stainless-read-timeout"] == "30.0"


async def test_nothing_is_kept_at_the_provider_and_everything_goes_with_each_request(double: FakeProvider) -> None:
    """PROVIDERS 19, 21: stateless, with the same tools and the same effort; no pointer to an earlier response."""
    adapter = opened(
        double,
        Step(thinking=(Thinking(text="Hm."),), calls=(Call(name="look"),)),
        Step(text="Done."),
        options=ModelOptions(effort=Effort.LOW, temperature=0.5),
    )
    first = await adapter.acomplete(snapshot())
    await adapter.acomplete(snapshot(HI, stored(first), answered(first)))

    for body in (request.body for request in double.requests):
        assert set(body) == {
            *("model", "input", "store", "stream", "include", "prompt_cache_key", "instructions", "tools"),
            *("reasoning", "temperature", "max_output_tokens"),
        }
        assert (body["store"], body["stream"], body["include"]) == (False, True, ["reasoning.encrypted_content"])
        assert body["reasoning"] == {"effort": "low"}
        assert body["tools"][0]["name"] == "look"
    assert [item["type"] for item in double.requests[1].body["input"]] == [
        *("message", "reasoning", "function_call", "function_call_output")
    ]


async def test_by_the_plan_only_that_is_sent_which_its_side_takes(double: FakeProvider) -> None:
    """PROVIDERS 4: the public endpoint, `store` and `stream` as it wants them, no limit on output."""
    adapter = opened(double, Step(calls=(Call(name="look"),)), Step(text="Done."), model=BY_PLAN)
    first = await adapter.acomplete(snapshot())
    second = await adapter.acomplete(snapshot(HI, stored(first), answered(first)))

    assert second.blocks == (TextBlock(text="Done."),)
    for request in double.requests:
        assert (request.route, request.path) == (Route.OPENAI_CODEX, "/openai/v1/responses")
        assert request.body["instructions"] == "Be brief."
        assert not request.body.keys() & {"max_output_tokens", "temperature", "top_p", "previous_response_id"}


async def test_what_the_plans_side_would_refuse_is_told_before_anything_is_sent(double: FakeProvider) -> None:
    """PROVIDERS 4: no instructions, a temperature."""
    with pytest.raises(errors.ConfigurationError, match="no request without instructions"):
        await opened(double, model=BY_PLAN).acomplete(snapshot(system=""))
    with pytest.raises(errors.ConfigurationError, match=r"temperature 0\.5 is set for openai-codex/gpt-6-sol"):
        opened(double, model=BY_PLAN, options=ModelOptions(temperature=0.5))

    assert double.requests == ()


async def test_a_token_that_ran_out_says_what_to_do(double: FakeProvider) -> None:
    """PROVIDERS 4, 9: nothing here can renew it."""
    adapter = opened(double, model=BY_PLAN, key=EXPIRED)

    with pytest.raises(
        errors.AuthenticationFailed, match="sign in with ChatGPT again and set OPENAI_CODEX_TOKEN"
    ) as raised:
        await adapter.acomplete(snapshot())

    assert raised.value.facts.code == "token_expired"
    assert not raised.value.retryable


@pytest.mark.slow
@SHARP
@given(thought=st.lists(THOUGHT, max_size=3), unknown=st.lists(UNKNOWN, min_size=1, max_size=3), arguments=JSON)
def test_everything_that_came_survives_saving_and_goes_back_as_it_came(
    double: FakeProvider, thought: Sequence[Thinking], unknown: Sequence[dict[str, Any]], arguments: Any
) -> None:
    """PROVIDERS 14, 15, 21: encrypted reasoning, phases, items nobody knows, arguments to the letter, in order."""
    text = json.dumps({"given": arguments}, indent=1)
    adapter = opened(
        double,
        Step(thinking=tuple(thought), text="So.", blocks=tuple(unknown), calls=(Call(name="look", arguments=text),)),
        Step(text="Done."),
    )

    async def both() -> None:
        first = await adapter.acomplete(snapshot())
        await adapter.acomplete(snapshot(HI, stored(first), answered(first)))

    asyncio.run(both())

    came = double.requests[1].body["input"][1:-1]
    assert [item["type"] for item in came] == [
        *["reasoning"] * len(thought),
        "message",
        *["brand_new_block"] * len(unknown),
        "function_call",
    ]
    assert all(item["encrypted_content"] for item in came[: len(thought)])
    assert came[len(thought)]["phase"] == "commentary"
    assert json.dumps(came[len(thought) + 1 : -1]) == json.dumps(list(unknown))
    assert came[-1]["arguments"] == text


async def test_reasoning_that_came_without_its_content_is_kept_and_not_sent_back(double: FakeProvider) -> None:
    """PROVIDERS 4: its bare id names something that nobody stored; the request would be refused."""
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    adapter = opened(double, events(*response(bare, TEXT)), Step(text="Done."))
    first = await adapter.acomplete(snapshot())
    await adapter.acomplete(snapshot(HI, stored(first), HI))

    assert json.loads(first.raw or "")["content"] == [bare, TEXT]
    assert double.requests[1].body["input"][1] == TEXT


@pytest.mark.parametrize("listed", [True, False])
async def test_items_are_taken_from_where_they_were_done_and_else_from_the_end(
    double: FakeProvider, listed: bool
) -> None:
    """Some servers leave the end empty; an item that was cut is only there."""
    half = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "look",
        "arguments": '{"a',
        "status": "incomplete",
    }
    steps = events(*response(TEXT, listed=listed))
    start, done, end = response(TEXT, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    end["response"]["output"] = [TEXT, half]
    adapter = opened(double, steps, events(start, done, end), Step(text="Done."))

    whole, cut = await adapter.acomplete(snapshot()), await adapter.acomplete(snapshot())
    await adapter.acomplete(snapshot(HI, stored(cut), answered(cut)))

    assert whole.blocks == (TextBlock(text="Hello."),)
    assert cut.stop is StopReason.MAX_TOKENS
    assert cut.blocks[1] == ToolUse(call_id="c1", name="look", arguments='{"a')
    assert double.requests[2].body["input"][2] == {**half, "arguments": "{}"}, "well formed, and all else as it came"


def test_a_message_of_another_wire_is_told_from_its_blocks(double: FakeProvider) -> None:
    """PROVIDERS 12: a failed call is told by a text, since there is no flag for it."""
    use = ToolUse(call_id="toolu_1", name="look", arguments='{"a": 1}')
    foreign = Message(
        role=Speaker.ASSISTANT, blocks=(TextBlock(text="I look."), use), raw='{"wire":"anthropic","content":[]}'
    )
    failed = ToolResult(call_id="toolu_1", text="it broke", is_error=True)
    result = Message(role=Speaker.USER, blocks=(failed, TextBlock(text="So?")))

    assert request_body(bound(double, MODEL), snapshot(HI, foreign, result))["input"][1:] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "toolu_1", "name": "look", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "toolu_1", "output": "Error: it broke"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "So?"}]},
    ]


def test_a_tool_is_strict_only_if_its_schema_allows_it(double: FakeProvider) -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    tools = (LOOK, ToolSchema(name="closed", description="", input_schema=closed))

    sent = request_body(bound(double, MODEL), snapshot(tools=tools))["tools"]

    assert [tool["strict"] for tool in sent] == [False, True]


@pytest.mark.parametrize(
    ("status", "more", "stop", "detail"),
    [
        ("completed", {}, StopReason.END_TURN, ""),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, StopReason.MAX_TOKENS, ""),
        ("incomplete", {"incomplete_details": {"reason": "content_filter"}}, StopReason.REFUSAL, "content_filter"),
        ("failed", {"error": {"code": "bio_policy", "message": "No."}}, StopReason.REFUSAL, "bio_policy: No."),
    ],
)
async def test_each_end_has_its_meaning(
    double: FakeProvider, status: str, more: dict[str, Any], stop: StopReason, detail: str
) -> None:
    """PROVIDERS 4, 17: what a policy keeps back is a refusal; a status 200 is no success by itself."""
    reply = await opened(double, events(*response(TEXT, status=status, **more))).acomplete(snapshot())

    assert (reply.stop, reply.stop_detail) == (stop, detail)
    assert reply.blocks == (TextBlock(text="Hello."),)


async def test_a_refusal_part_is_a_refusal(double: FakeProvider) -> None:
    """PROVIDERS 17: its status is `completed`."""
    reply = await opened(double, Step(text="Well.", refusal="I will not.")).acomplete(snapshot())

    assert reply.stop is StopReason.REFUSAL
    assert [block.text for block in reply.blocks if isinstance(block, TextBlock)] == ["Well.", "I will not."]


@pytest.mark.parametrize(
    ("status", "more", "word"),
    [
        ("incomplete", {"incomplete_details": {"reason": "steered"}}, "incomplete: steered"),
        ("incomplete", {}, "incomplete"),
        ("cancelled", {}, "cancelled"),
    ],
)
async def test_an_end_that_nobody_knows_is_an_error(
    double: FakeProvider, status: str, more: dict[str, Any], word: str
) -> None:
    """PROVIDERS 18."""
    with pytest.raises(errors.UnknownStop, match=f"'{word}'"):
        await opened(double, events(*response(TEXT, status=status, **more))).acomplete(snapshot())


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", errors.Overloaded, True),
        ("rate_limit_exceeded", errors.RateLimited, True),
        ("context_length_exceeded", errors.ContextTooLarge, False),
        ("invalid_prompt", errors.RequestInvalid, False),
        ("insufficient_quota", errors.PaymentRequired, False),
        ("sunspots", errors.ResponseInvalid, False),
    ],
)
@pytest.mark.parametrize("by", ["response.failed", "error", "nested error"])
async def test_an_error_inside_of_a_stream_is_known_by_its_code(
    double: FakeProvider, by: str, code: str, kind: type[errors.ProviderError], retryable: bool
) -> None:
    """PROVIDERS 6: as an event of three forms, each under status 200."""
    error = {"code": code, "message": "It broke."}
    start, done, end = response(TEXT, status="failed", error=error)
    event: Mapping[str, Any] = {
        "response.failed": end,
        "error": {"type": "error", "param": None, **error},
        "nested error": {"type": "error", "error": {"type": code, **error}},
    }[by]

    with pytest.raises(kind, match=r"It broke\.") as raised:
        await opened(double, events(start, done, event)).acomplete(snapshot())

    assert type(raised.value) is kind
    assert raised.value.retryable is retryable
    assert (raised.value.facts.status, raised.value.facts.code) == (200, code)
    assert raised.value.facts.request_id == "req_fake_000001"


async def test_a_server_that_gives_up_in_a_stream_is_overloaded(double: FakeProvider) -> None:
    """PROVIDERS 6: `response.failed` of the double."""
    step = Step(text="Half", stream_error=StreamError(after_events=4, failure=Failure.SERVER))

    with pytest.raises(errors.Overloaded):
        await opened(double, step).acomplete(snapshot())


@pytest.mark.parametrize("last", [1, 2])
async def test_a_stream_is_a_turn_only_with_its_last_event(double: FakeProvider, last: int) -> None:
    """PROVIDERS 7."""
    with pytest.raises(errors.StreamCut, match=r"before 'response\.completed'"):
        await opened(double, events(*response(TEXT)[:last])).acomplete(snapshot())


async def test_cached_tokens_are_a_part_of_the_input_and_counted_once(double: FakeProvider) -> None:
    """PROVIDERS 23, 24: and what was not said is unknown."""
    figures = Figures(
        input_tokens=100, cache_read_tokens=1_000, cache_write_tokens=300, output_tokens=50, reasoning_tokens=20
    )
    adapter = opened(
        double,
        Step(text="Hello.", figures=figures),
        events(*response(TEXT, usage={"input_tokens": 10, "output_tokens": 5})),
        events(*response(TEXT)),
    )

    rich, poor, none = [await adapter.acomplete(snapshot()) for _ in range(3)]

    assert rich.usage == Usage(
        uncached_input_tokens=100,
        cache_write_tokens=300,
        cache_read_tokens=1_000,
        output_tokens=50,
        reasoning_tokens=20,
        cost_usd=pytest.approx((100 * 4 + 300 * 5 + 1_000 * 0.4 + 50 * 20) / 1e6),
        cost_origin=CostOrigin.COMPUTED,
    )
    assert rich.usage.input_tokens == 1_400
    assert (poor.usage.uncached_input_tokens, poor.usage.cache_read_tokens, poor.usage.reasoning_tokens) == (
        10,
        None,
        None,
    )
    assert none.usage == Usage()


async def test_another_model_than_the_bound_one_does_not_count(double: FakeProvider) -> None:
    """PROVIDERS 26: a dated snapshot of it does."""
    adapter = opened(
        double, Step(text="A.", served_model="gpt-6-sol-2026-11-01"), Step(text="B.", served_model="gpt-6-luna")
    )

    assert (await adapter.acomplete(snapshot())).served_model == "gpt-6-sol-2026-11-01"
    with pytest.raises(errors.ServedModelDiffers, match="'gpt-6-luna' answered"):
        await adapter.acomplete(snapshot())


@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        (Failure.BAD_REQUEST, errors.RequestInvalid, ""),
        (Failure.BAD_KEY, errors.AuthenticationFailed, "invalid_api_key"),
        (Failure.FORBIDDEN, errors.AuthenticationFailed, "insufficient_permissions"),
        (Failure.CREDITS, errors.PaymentRequired, "insufficient_quota"),
        (Failure.PLAN_QUOTA, errors.PaymentRequired, "usage_limit_reached"),
        (Failure.UNKNOWN_MODEL, errors.RequestInvalid, "model_not_found"),
        (Failure.CONFLICT, errors.Overloaded, ""),
        (Failure.TIMEOUT, errors.Overloaded, ""),
        (Failure.TOO_LARGE, errors.ContextTooLarge, ""),
        (Failure.CONTEXT_TOO_LONG, errors.ContextTooLarge, "context_length_exceeded"),
        (Failure.CONTENT_FILTER, errors.RequestInvalid, "invalid_prompt"),
        (Failure.RATE_LIMITED, errors.RateLimited, "rate_limit_exceeded"),
        (Failure.SERVER, errors.Overloaded, "server_error"),
        (Failure.OVERLOADED, errors.Overloaded, "server_is_overloaded"),
    ],
)
async def test_each_error_is_one_of_ours_with_its_facts(
    double: FakeProvider, failure: Failure, kind: type[errors.ProviderError], code: str
) -> None:
    """PROVIDERS 2, 8, 9: a quota that is used up comes with status 429 and is not waited for."""
    with pytest.raises(errors.ProviderError) as raised:
        await opened(double, Step(failure=failure, retry_after_s=7)).acomplete(snapshot())

    assert type(raised.value) is kind
    facts = raised.value.facts
    assert (facts.provider, facts.code, facts.request_id, facts.retry_after_s) == ("openai", code, "req_fake_000001", 7)
    assert facts.status == double.requests[0].status


async def test_an_error_of_another_form_keeps_what_it_says(double: FakeProvider) -> None:
    """PROVIDERS 4: the plan's side says `{"detail": ...}`, of which the SDK's own text shows nothing."""
    reply = HttpReply(status=400, body='{"detail":"Store must be set to false"}')

    with pytest.raises(errors.RequestInvalid, match="Store must be set to false"):
        await opened(double, Step(failure=reply), model=BY_PLAN).acomplete(snapshot())


@pytest.mark.parametrize(
    ("body", "content_type"), [("<html>Hello</html>", "text/html"), ('{"status":"completed"}', "application/json")]
)
async def test_a_reply_that_is_no_stream_is_none(double: FakeProvider, body: str, content_type: str) -> None:
    """PROVIDERS 4."""
    reply = HttpReply(status=200, body=body, content_type=content_type)

    with pytest.raises(errors.ResponseInvalid, match=content_type) as raised:
        await opened(double, Step(failure=reply)).acomplete(snapshot())

    assert raised.value.facts.body == body


async def test_a_response_that_failed_in_one_piece_is_no_answer(double: FakeProvider) -> None:
    """PROVIDERS 4: status 200, `status: failed`, no exception of the SDK."""
    with pytest.raises(errors.Overloaded):
        await opened(double, Step(failure=Failure.EMPTY_CHOICES)).acomplete(snapshot())


async def test_a_window_that_fills_up_cuts_the_answer(double: FakeProvider) -> None:
    reply = await opened(double, Step(text="Half", ending=Ending.WINDOW)).acomplete(snapshot())

    assert reply.stop is StopReason.MAX_TOKENS


async def test_no_error_and_no_repr_shows_the_key() -> None:
    """PROVIDERS 10: a token of the plan is as secret as a key, and is shaped like none."""
    key = "canary-0123456789-abcdef"
    body = json.dumps({"error": {"message": f"Incorrect token: {key}", "code": "invalid_api_key"}})
    script = Script(steps=(Step(failure=HttpReply(status=401, body=body)),))
    with FakeProvider(script, keys={Route.OPENAI_CODEX: key}) as double:
        adapter = OpenAIResponses(bound(double, BY_PLAN))
        with pytest.raises(errors.AuthenticationFailed, match=r"Incorrect token: \[redacted\]") as raised:
            await adapter.acomplete(snapshot())

    error = raised.value
    assert key not in f"{error!r} {error} {error.facts!r} {error.__cause__!r} {adapter!r} {bound(double, BY_PLAN)!r}"
    assert error.__suppress_context__
