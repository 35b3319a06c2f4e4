"""What the strictest provider takes, written without a look at the code under test."""

import re
from collections.abc import Sequence

from geode.llm.messages import Message, Speaker, ToolResult, ToolUse

_UNSENDABLE = re.compile("[\0\ud800-\udfff]")


def problems(messages: Sequence[Message], *, is_request: bool = True) -> list[str]:
    """Say everything for which a provider would refuse `messages`; nothing if it would take them."""
    found: list[str] = []
    if not messages or messages[0].role is not Speaker.USER:
        found.append("the first message is not the user's")
    if is_request and messages and messages[-1].role is not Speaker.USER:
        found.append("the last message is not the user's")
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        found += [f"message {at}: {problem}" for problem in _alone(message)]
        answers = [block.call_id for block in message.blocks if isinstance(block, ToolResult)]
        if answers != waiting:
            found.append(f"message {at}: {answers} do not answer {waiting}")
        if any(not isinstance(block, ToolResult) for block in message.blocks[: len(answers)]):
            found.append(f"message {at}: something stands before a result")
        waiting = []
        for block in message.blocks:
            if isinstance(block, ToolUse):
                if not block.call_id or block.call_id in seen:
                    found.append(f"message {at}: call id {block.call_id!r} is empty or was used")
                seen.add(block.call_id)
                waiting.append(block.call_id)
    if is_request and waiting:
        found.append(f"{waiting} were never answered")
    return found


def _alone(message: Message) -> list[str]:
    found = []
    if not message.blocks:
        found.append("it has no content")
    for block in message.blocks:
        if isinstance(block, ToolUse):
            if message.role is not Speaker.ASSISTANT:
                found.append("a user asks for a tool")
            texts = [block.call_id, block.name, block.arguments]
        else:
            if isinstance(block, ToolResult) and message.role is not Speaker.USER:
                found.append("the model answers a call")
            if not block.text.strip():
                found.append("a text is empty")
            texts = [block.text]
        found += [f"{text!r} cannot be sent" for text in texts if _UNSENDABLE.search(text)]
    return found
