"""How many tokens a request can be, before a provider has counted them: a bound to hold money by.

No tokenizer is at hand for most models, so characters are weighed by their class: byte-level tokenizers never make more
tokens than bytes, nor more than six of ten lower-case letters in a row. On prose, code, JSON, digits, base64,
hexadecimal, random letters and the scripts of several languages the bound was above what three public tokenizers
(o200k, cl100k, Claude's older one) make of them.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from geode.llm.binding import Binding
from geode.llm.messages import Message, StepSnapshot, TextBlock, ToolResult, ToolSchema, ToolUse
from geode.llm.usage import Usage

_LOWER_RUN: Final = re.compile(rb"[a-z]{4,}")
_MESSAGE_TOKENS: Final = 12
"""What frames a message, a call or a result."""
_REQUEST_TOKENS: Final = 600
"""What a provider adds to a request: its own words about tools, and the frame of the system text."""


def tokens_at_most(text: str) -> int:
    """Return more tokens than a common tokenizer makes of `text`: three times those of prose, near those of base64."""
    raw = text.encode("utf-8", "replace")
    return len(raw) - sum(len(run) * 2 // 5 for run in _LOWER_RUN.findall(raw))


def output_tokens_max(binding: Binding, snapshot: StepSnapshot) -> int:
    """Return how many tokens a reply to `snapshot` may have: the least that the host, the options and the model say."""
    limits = (snapshot.max_output_tokens, binding.output_tokens_max, binding.options.max_output_tokens)
    return min(limit for limit in limits if limit is not None)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A request that was answered, and what the provider says that it and its answer were."""

    snapshot: StepSnapshot
    input_tokens: int
    output_tokens: int


class InputMeter:
    """Bounds what the next request of a session reads: by the provider's own count of the last one, as far as it goes.

    Only what stands behind the last answer is weighed by its characters.
    """

    def __init__(self) -> None:
        self._last: _Counted | None = None
        self._bounded: tuple[StepSnapshot, int] | None = None

    def count(self, snapshot: StepSnapshot, usage: Usage) -> None:
        """Take what the answer to `snapshot` says of its own length; nothing, if it does not say."""
        if usage.input_tokens is not None and usage.output_tokens is not None:
            self._last = _Counted(snapshot, usage.input_tokens, usage.output_tokens)

    def at_most(self, snapshot: StepSnapshot) -> int:
        """Return the most tokens that a request of `snapshot` can be billed as its input."""
        if self._bounded is None or self._bounded[0] is not snapshot:
            self._bounded = (snapshot, self._bound(snapshot))
        return self._bounded[1]

    def _bound(self, snapshot: StepSnapshot) -> int:
        last = self._last
        if last is None or not _continues(last.snapshot, snapshot):
            fixed = tokens_at_most(snapshot.system) + sum(map(_schema_at_most, snapshot.tools))
            return _REQUEST_TOKENS + fixed + sum(map(_message_at_most, snapshot.messages))
        # The answer itself is read again, and the provider has counted that, too.
        new = snapshot.messages[len(last.snapshot.messages) + 1 :]
        return last.input_tokens + last.output_tokens + _MESSAGE_TOKENS + sum(map(_message_at_most, new))


def _continues(last: StepSnapshot, snapshot: StepSnapshot) -> bool:
    known = len(last.messages)
    return (
        len(snapshot.messages) > known
        and snapshot.messages[:known] == last.messages
        and snapshot.system == last.system
        and snapshot.tools == last.tools
    )


def _schema_at_most(tool: ToolSchema) -> int:
    return _MESSAGE_TOKENS + tokens_at_most(tool.name + tool.description + json.dumps(tool.input_schema))


def _message_at_most(message: Message) -> int:
    texts = [message.raw] if message.raw is not None else [_text(block) for block in message.blocks]
    return sum(_MESSAGE_TOKENS + tokens_at_most(text) for text in texts) + _MESSAGE_TOKENS


def _text(block: TextBlock | ToolUse | ToolResult) -> str:
    match block:
        case ToolUse():
            return block.call_id + block.name + block.arguments
        case ToolResult():
            return block.call_id + block.text
        case TextBlock():
            return block.text
