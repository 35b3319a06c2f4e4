"""One call of a wire, without a loop around it: what is asked, and a reply that the double gives word for word."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from geode.dev.fake_provider.script import HttpReply, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.binding import Binding, ModelOptions
from geode.llm.messages import (
    Message,
    ModelResponse,
    Origin,
    Speaker,
    StepSnapshot,
    TextBlock,
    ToolResult,
    ToolSchema,
    decode_message,
    encode_message,
)
from geode.llm.prices import Prices
from geode.llm.routes import Route, parse_model

PRICES = Prices(input=4, output=20, cache_read=0.4, cache_write=5, cache_write_1h=8, as_of="2026-12-01", source="test")
LOOK = ToolSchema(name="look", description="Look.", input_schema={"type": "object", "properties": {}})
HI = Message(role=Speaker.USER, blocks=(TextBlock(text="hi", origin=Origin.USER),))


def bound(double: FakeProvider, model: str, options: ModelOptions | None = None, **more: Any) -> Binding:
    name = parse_model(model)
    # By the plan and by key one asks at the same address.
    base = double.base_url(Route.OPENAI if name.route is Route.OPENAI_CODEX else name.route)
    parts: dict[str, Any] = {
        "key": double.key(name.route),
        "base_url": base,
        "served_as": frozenset({name.model_id}),
        "context_tokens": 1_000_000,
        "output_tokens_max": 64_000,
        "prices": PRICES,
        "options": options or ModelOptions(),
        "timeout_s": 30.0,
        **more,
    }
    return Binding(model=name, **parts)


def snapshot(*messages: Message, system: str = "Be brief.", tools: Sequence[ToolSchema] = (LOOK,)) -> StepSnapshot:
    return StepSnapshot(
        session_id="01SESSION",
        turn=1,
        round=1,
        model="a/model",
        system=system,
        messages=messages or (HI,),
        tools=tuple(tools),
        plan_hash="p",
        plan_generation=1,
        max_output_tokens=1_000,
        history_digest="d",
    )


def stored(response: ModelResponse) -> Message:
    """A response as it comes back from a checkpoint."""
    message = Message(role=Speaker.ASSISTANT, blocks=response.blocks, raw=response.raw)
    return decode_message(encode_message(message))


def answered(response: ModelResponse, text: str = "seen") -> Message:
    """The results of all calls of a response, or a user's word where it has none."""
    uses = stored(response).tool_uses
    results = tuple(ToolResult(call_id=use.call_id, text=text) for use in uses)
    return Message(role=Speaker.USER, blocks=results or HI.blocks)


def events(*events: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Step:
    """A stream, event for event."""
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    reply = HttpReply(status=status, body=body, content_type="text/event-stream", headers=headers or {})
    return Step(failure=reply)
