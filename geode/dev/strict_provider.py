"""A provider for tests that takes only what the strictest one takes, and refuses with an error of that form.

A request is first turned into the body that the Messages API would get, and `refusals` reads that body alone: so what
is checked is what would stand on the wire, not what the loop believes of its history.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from geode.llm.errors import ConfigurationError
from geode.llm.messages import (
    Block,
    ModelResponse,
    Speaker,
    StepSnapshot,
    StopReason,
    TextBlock,
    ToolResult,
    ToolUse,
)
from geode.llm.usage import Usage

MODEL: Final = "simulated/strict"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MESSAGES_MAX = 100_000
_UNANSWERED = "`tool_use` ids were found without `tool_result` blocks immediately after"


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


def refusals(body: Mapping[str, Any]) -> list[str]:
    """Return why the Messages API would refuse this body; nothing if it would not.

    The rules are those of its public documentation: roles, results right behind their calls and before any text, ids
    and names of the allowed form, each id once, nothing empty, an end that the model can answer.
    """
    messages = body.get("messages", [])
    found = []
    if not messages or len(messages) > _MESSAGES_MAX:
        found.append("messages: at least one message is required")
    if messages and messages[0]["role"] != Speaker.USER.value:
        found.append("messages: first message must use the user role")
    if messages and messages[-1]["role"] != Speaker.USER.value:
        found.append("messages: this model does not support a prefilled assistant message")
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        where, content = f"messages.{at}", message["content"]
        if not content:
            found.append(f"{where}: content must not be empty")
        found += _content(where, message["role"], content)
        answers = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if waiting and sorted(answers) != sorted(waiting):
            missing = [call for call in waiting if call not in answers] or answers
            found.append(f"messages.{at - 1}: {_UNANSWERED}: {', '.join(missing)}")
        if not waiting and answers:
            found.append(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {answers[0]}")
        if any(block["type"] != "tool_result" for block in content[: len(answers)]):
            found.append(f"{where}: `tool_result` blocks must come first")
        waiting = [block["id"] for block in content if block["type"] == "tool_use"]
        if twice := [call for call in waiting if call in seen or waiting.count(call) > 1]:
            found.append(f"{where}: `tool_use` ids must be unique: {twice[0]}")
        seen.update(waiting)
    if waiting:
        found.append(f"{_UNANSWERED}: {', '.join(waiting)}")
    names = [tool["name"] for tool in body.get("tools", [])]
    found += [f"tools: name {name!r} is not allowed" for name in names if not _NAME.fullmatch(name)]
    if len(set(names)) != len(names):
        found.append("tools: tool names must be unique")
    return found


def _content(where: str, role: str, content: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    for at, block in enumerate(content):
        place = f"{where}.content.{at}"
        match block["type"]:
            case "text":
                if not block["text"].strip():
                    found.append(f"{place}: text content blocks must be non-empty")
            case "tool_use":
                if role != Speaker.ASSISTANT.value:
                    found.append(f"{place}: `tool_use` blocks are of the assistant role")
                if not _CALL_ID.fullmatch(block["id"]):
                    found.append(f"{place}.id: string should match pattern '^[a-zA-Z0-9_-]+$'")
                if not isinstance(block["input"], dict):
                    found.append(f"{place}.input: input should be a valid dictionary")
            case "tool_result":
                if role != Speaker.USER.value:
                    found.append(f"{place}: `tool_result` blocks are of the user role")
                if not block["content"].strip():
                    found.append(f"{place}: content must not be empty")
            case other:
                found.append(f"{place}.type: unknown {other!r}")
    return found
