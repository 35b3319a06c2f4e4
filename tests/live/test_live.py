"""One short conversation with each provider whose key is set: `python -m pytest -m live`. Only shapes are asserted.

What a model says is its own affair. A key comes from the same variable as in production.
"""

import json
import os

import pytest

from geode.llm.errors import CredentialMissing
from geode.llm.messages import DeltaKind, ModelResponse, StopReason
from geode.llm.opening import open_adapter
from tests.doubles.snapshots import READ, answered, asked, results

pytestmark = [pytest.mark.live, pytest.mark.enable_socket, pytest.mark.anyio]

# The cheapest that each route has.
MODELS = (
    "anthropic/claude-haiku-4-5-20251001",
    "openai/gpt-5.4-nano",
    "openai-codex/gpt-6-luna",
    "openrouter/openrouter/free",
    "zai/glm-4.7-flash",
)

WANTED = "Call read_file with the path a.txt, once."


def check_shape(response: ModelResponse) -> None:
    assert response.stop in (StopReason.END_TURN, StopReason.TOOL_USE, StopReason.MAX_TOKENS)
    assert response.served_model
    assert response.request_id
    assert (response.usage.input_tokens or 0) > 0
    assert (response.usage.output_tokens or 0) > 0
    assert response.raw is not None
    assert json.loads(response.raw)["content"]


@pytest.mark.parametrize("model", MODELS)
async def test_a_call_and_its_result_go_there_and_back(model: str) -> None:
    """PROVIDERS 39: the double says what its makers know; whether the providers still agree, only they can tell."""
    shown = []
    try:
        adapter = open_adapter(model, os.environ, on_delta=shown.append)
    except CredentialMissing as missing:
        pytest.skip(str(missing))
    first = await adapter.acomplete(asked(WANTED, tools=[READ], system="Be brief."))
    check_shape(first)
    calls = answered(first).tool_uses
    assert all(call.name == READ.name for call in calls)
    goes_on = (answered(first), results(first, "hello") if calls else "Thank you. What is 2 + 2?")
    second = await adapter.acomplete(asked(WANTED, *goes_on, tools=[READ], system="Be brief."))
    check_shape(second)
    assert {delta.kind for delta in shown} & {DeltaKind.TEXT, DeltaKind.TOOL}
