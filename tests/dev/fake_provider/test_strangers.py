"""Facts of bodies that nobody foresaw: the double refuses or answers them, and never breaks."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from tests.dev.fake_provider.histories import question
from tests.dev.fake_provider.test_decisions import SOUND

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
CHAT = [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c1", "content": "x"}]
ITEMS = [
    {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "x"},
]
ANTHROPIC = {
    "model": "claude-opus-5-5",
    "max_tokens": 50,
    "system": [{"type": "text", "text": "be", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]},
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
}


def chat(route: Route) -> dict[str, Any]:
    body = question(route)
    return {**body, "messages": [*body["messages"], *CHAT], "temperature": 0.5}


def responses() -> dict[str, Any]:
    body = question(Route.OPENAI)
    return {**body, "input": [*body["input"], *ITEMS], "reasoning": {"effort": "low"}}


BODIES = [
    (Route.ANTHROPIC, "/anthropic/v1/messages", ANTHROPIC),
    (Route.OPENAI, "/openai/v1/responses", responses()),
    (Route.OPENROUTER, "/openrouter/api/v1/chat/completions", chat(Route.OPENROUTER)),
    (Route.ZAI, "/zai/api/paas/v4/chat/completions", chat(Route.ZAI)),
    (Route.TYPESAFE, "/typesafe/v1/systemone", SOUND),
    (Route.OPENROUTER, "/openrouter/api/alpha/decisions", {**SOUND, "model": "typesafe/jev-1.13"}),
]
ODD = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", [], {}, [[]], [None], {"x": None}, {"type": 5}, [{"type": "text"}]]
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in a JSON value."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*at, key))


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, verify=False) as shared:
        yield shared


@pytest.mark.parametrize(("route", "path", "sound"), BODIES)
def test_the_bodies_are_sound(double: FakeProvider, client: httpx.Client, route: Route, path: str, sound: Any) -> None:
    """Or what follows would show little."""
    headers = {"authorization": f"Bearer {double.key(route)}", "anthropic-version": "1"}
    assert client.post(double.url + path, json=sound, headers=headers).status_code == 200


@pytest.mark.parametrize(("route", "path", "sound"), BODIES)
@given(data=st.data())
def test_whatever_stands_in_a_body_is_refused_or_answered(
    running: FakeProvider, client: httpx.Client, *, route: Route, path: str, sound: Any, data: st.DataObject
) -> None:
    body = copy.deepcopy(sound)
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(list(places(body))))
        at = body
        for part in way:
            at = at[part]
        at[last] = copy.deepcopy(data.draw(ODD))
    body["stream"] = data.draw(st.booleans()) if "questions" not in sound else None
    if body["stream"] is None:
        del body["stream"]
    headers = {"authorization": f"Bearer {running.key(route)}", "anthropic-version": "1"}
    reply = client.post(running.url + path, json=body, headers=headers)
    assert reply.status_code in (200, 400, 404, 422), (reply.status_code, reply.text, json.dumps(body))
