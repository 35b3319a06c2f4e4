"""How many tokens a text may be, before a provider has counted them: an estimate to plan by, a bound to pay by.

No tokenizer is at hand for most models, so characters are weighed by their class. The weights were measured against
three public tokenizers (o200k, cl100k, Claude's older one) on prose, code, JSON, digits, base64, hexadecimal and the
scripts of several languages. `tokens_at_most` was above all three on each of them, random letters included: byte-level
tokenizers never make more tokens than bytes, and none makes more than six of ten lower-case letters in a row.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from geode.llm.binding import Binding
from geode.llm.messages import Message, StepSnapshot, TextBlock, ToolResult, ToolSchema, ToolUse
from geode.llm.usage import Usage

_LOWER: Final = bytes(range(0x61, 0x7B))
_LOWER_RUN: Final = re.compile(rb"[a-z]{4,}")
_UPPER: Final = bytes(range(0x41, 0x5B))
_DIGITS: Final = bytes(range(0x30, 0x3A))
_SPACE: Final = b" "
_CONTINUED: Final = bytes(range(0x80, 0xC0))  # in UTF-8, every byte of a character but its first
_OF_TWO: Final = bytes(range(0xC0, 0xE0))
_OF_THREE: Final = bytes(range(0xE0, 0xF0))
_OF_FOUR: Final = bytes(range(0xF0, 0x100))

_MESSAGE_TOKENS: Final = 12
"""What frames a message, a call or a result."""
_REQUEST_TOKENS: Final = 600
"""What a provider adds to a request: its own words about tools, and the frame of the system text."""


def estimated_tokens(text: str) -> int:
    """Return how many tokens `text` is likely to be: within a third for prose, code, JSON and Chinese."""
    raw = text.encode("utf-8", "replace")
    lower, upper, digits = _count(raw, _LOWER), _count(raw, _UPPER), _count(raw, _DIGITS)
    spaces, continued = _count(raw, _SPACE), _count(raw, _CONTINUED)
    two, three, four = _count(raw, _OF_TWO), _count(raw, _OF_THREE), _count(raw, _OF_FOUR)
    signs = len(raw) - lower - upper - digits - spaces - continued - two - three - four
    weighed = 0.26 * lower + 0.5 * upper + 0.8 * digits + 0.05 * spaces + 0.6 * signs
    return round(weighed + 0.6 * two + three + 2.2 * four)


def tokens_at_most(text: str) -> int:
    """Return more tokens than a common tokenizer makes of `text`: three times those of prose, near those of base64."""
    raw = text.encode("utf-8", "replace")
    return len(raw) - sum(len(run) * 2 // 5 for run in _LOWER_RUN.findall(raw))


def _count(raw: bytes, of: bytes) -> int:
    return len(raw) - len(raw.translate(None, delete=of))


def output_tokens_max(binding: Binding, snapshot: StepSnapshot) -> int:
    """Return how many tokens a reply to `snapshot` may have: the least that the host, the options and the model say."""
    wanted = binding.options.max_output_tokens or snapshot.max_output_tokens
    return min(wanted, snapshot.max_output_tokens, binding.output_tokens_max)


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
