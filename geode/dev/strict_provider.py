"""A provider for tests that takes only what the strictest one takes, and refuses with an error of that form.

A request is first turned into the body that the Messages API would get, and the fake provider's rules read that body
alone: so what is checked is what would stand on the wire, not what the loop believes of its history.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from geode.dev.fake_provider.anthropic_rules import refusals
from geode.llm.errors import ConfigurationError
from geode.llm.messages import (
    Block,
    ModelResponse,
    StepSnapshot,
    StopReason,
    TextBlock,
    ToolResult,
    ToolUse,
)
from geode.llm.usage import Usage

MODEL: Final = "simulated/strict"


class StrictProvider:
    """An adapter that answers with its replies in order, the last one for ever, and only a request without a fault.

    `bodies` holds what it was sent.
    """

    model = MODEL

    def __init__(self, replies: Sequence[ModelResponse] = ()) -> None:
        self._replies = list(replies) or [says("I have looked.")]
        self.bodies: list[dict[str, Any]] = []

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """Answer `snapshot`.

        Raises:
            ConfigurationError: with the provider's error body, if the request breaks a rule.
        """
        body = to_body(snapshot)
        self.bodies.append(body)
        if found := refusals(body):
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": found[0]}}
            raise ConfigurationError(f"400 {json.dumps(error)}")
        return self._replies[min(len(self.bodies), len(self._replies)) - 1]


def says(text: str) -> ModelResponse:
    """Return a text-only reply."""
    return ModelResponse(
        blocks=(TextBlock(text=text),),
        stop=StopReason.END_TURN,
        usage=Usage(),
        served_model=MODEL,
        latency_ms=1,
        simulated=True,
    )


def to_body(snapshot: StepSnapshot) -> dict[str, Any]:
    """Return the body of the request as the Messages API would get it, through JSON and back."""
    body = {
        "model": snapshot.model,
        "max_tokens": snapshot.max_output_tokens,
        "system": snapshot.system,
        "messages": [
            {"role": message.role.value, "content": [_block(block) for block in message.blocks]}
            for message in snapshot.messages
        ],
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in snapshot.tools
        ],
    }
    decoded: dict[str, Any] = json.loads(json.dumps(body, ensure_ascii=False).encode())
    return decoded


def _block(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ToolUse():
            return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": json.loads(block.arguments)}
        case ToolResult():
            return {
                "type": "tool_result",
                "tool_use_id": block.call_id,
                "content": block.text,
                "is_error": block.is_error,
            }
