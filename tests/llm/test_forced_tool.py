"""A request that makes the model call one tool, on each wire that has a word for it."""

import json
from dataclasses import replace

import pytest

from geode.dev.fake_provider.server import FakeProvider
from geode.llm.binding import Effort, ModelOptions
from geode.llm.messages import StopReason, ToolSchema, ToolUse
from geode.llm.opening import open_adapter
from tests.doubles.provider import keys_of
from tests.doubles.snapshots import READ, asked

GIVE = ToolSchema(
    name="give",
    description="Give it.",
    input_schema={
        "type": "object",
        "properties": {"care": {"type": "object", "properties": {"score": {"enum": [7]}}, "required": ["score"]}},
        "required": ["care"],
    },
)
FORCED = replace(asked(tools=(READ, GIVE), system="Judge."), forced_tool="give")
MODELS = {
    "anthropic/claude-opus-5-5": {"type": "tool", "name": "give"},
    "anthropic/claude-haiku-4-5-20251001": {"type": "tool", "name": "give"},
    "openai/gpt-6-astra": {"type": "function", "name": "give"},
    "openai-codex/gpt-6-astra": {"type": "function", "name": "give"},
    "openrouter/anthropic/claude-opus-5.5": {"type": "function", "function": {"name": "give"}},
}


@pytest.fixture
def double() -> FakeProvider:
    return FakeProvider()


@pytest.mark.parametrize(("model", "choice"), MODELS.items())
async def test_a_tool_can_be_forced(double: FakeProvider, model: str, choice: object) -> None:
    """It goes together with adaptive thinking; only a budget for thinking would be refused beside it."""
    with double:
        response = await open_adapter(model, keys_of(double)).acomplete(FORCED)
    assert double.requests[0].body["tool_choice"] == choice
    assert response.stop is StopReason.TOOL_USE
    [use] = [block for block in response.blocks if isinstance(block, ToolUse)]
    assert (use.name, json.loads(use.arguments)) == ("give", {"care": {"score": 7}})


async def test_an_effort_does_not_forbid_it(double: FakeProvider) -> None:
    with double:
        options = ModelOptions(effort=Effort.HIGH)
        response = await open_adapter("anthropic/claude-opus-5-5", keys_of(double), options=options).acomplete(FORCED)
    assert response.stop is StopReason.TOOL_USE


async def test_a_route_that_forces_none_is_not_asked_to(double: FakeProvider) -> None:
    """PROVIDERS 22: Z.ai takes `auto` alone."""
    with double:
        response = await open_adapter("zai/glm-5.3", keys_of(double)).acomplete(FORCED)
    assert "tool_choice" not in double.requests[0].body
    assert response.stop is StopReason.END_TURN


@pytest.mark.parametrize("model", [*MODELS, "zai/glm-5.3"])
async def test_without_one_a_request_is_what_it_was(double: FakeProvider, model: str) -> None:
    with double:
        await open_adapter(model, keys_of(double)).acomplete(replace(FORCED, forced_tool=""))
    assert "tool_choice" not in double.requests[0].body
