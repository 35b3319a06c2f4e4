"""What passes between the loop and a model: messages, one frozen call, and its response.

Nothing here knows a provider. An adapter turns a `StepSnapshot` into its wire's request and the reply into a
`ModelResponse`; `raw` keeps the provider's own content byte for byte, for verbatim replay.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, assert_never, runtime_checkable

from pydantic import JsonValue

from geode.llm.usage import Attempt, Usage


class Speaker(StrEnum):
    """Who a message is from. Providers call it the message's role; a Role is something else here."""

    USER = "user"
    ASSISTANT = "assistant"


class Origin(StrEnum):
    """Who wrote a text. `HOST` marks repair instructions and context that hooks injected."""

    USER = "user"
    MODEL = "model"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """Text, never empty when it is stored."""

    text: str
    origin: Origin = Origin.MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call that the model proposes. `arguments` is its JSON text as it came: it may be malformed."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The one answer to a `ToolUse` with the same `call_id`."""

    call_id: str
    text: str
    is_error: bool = False


Block = TextBlock | ToolUse | ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of the conversation. Tool uses stand only in assistant messages, tool results only in user messages."""

    role: Speaker
    blocks: tuple[Block, ...]
    raw: str | None = None

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls that this message proposes, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def text(self) -> str:
        """All text blocks, joined by blank lines."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` builds one for each call


def encode_message(message: Message) -> str:
    """Return the JSON text of `message`, as the checkpoint holds it."""
    body: dict[str, JsonValue] = {"role": message.role.value, "blocks": [_encode_block(b) for b in message.blocks]}
    if message.raw is not None:
        body["raw"] = message.raw
    return _ENCODER.encode(body)


def decode_message(text: str) -> Message:
    """Read what `encode_message` wrote.

    Raises:
        ValueError: if the text is not such a message.
    """
    body = json.loads(text)
    try:
        return Message(
            role=Speaker(body["role"]), blocks=tuple(_decode_block(b) for b in body["blocks"]), raw=body.get("raw")
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a stored message ({error!r}): {text[:200]!r}") from error


def _encode_block(block: Block) -> dict[str, JsonValue]:
    match block:
        case TextBlock():
            return {"text": block.text, "origin": block.origin.value}
        case ToolUse():
            return {"call": block.call_id, "tool": block.name, "arguments": block.arguments}
        case ToolResult():
            return {"result": block.call_id, "text": block.text, "error": block.is_error}
    assert_never(block)


def _decode_block(body: dict[str, JsonValue]) -> Block:
    if "call" in body:
        return ToolUse(call_id=str(body["call"]), name=str(body["tool"]), arguments=str(body["arguments"]))
    if "result" in body:
        return ToolResult(call_id=str(body["result"]), text=str(body["text"]), is_error=bool(body["error"]))
    return TextBlock(text=str(body["text"]), origin=Origin(str(body["origin"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSnapshot:
    """One model call, frozen: what is sent, and the ids that tie the reply to its place.

    `history_digest` is a running SHA-256 over the messages; two snapshots with equal digests ask the same.
    `forced_tool` is the tool that the model has to call, empty if it may choose; a route that forces none (Z.ai) lets
    it choose all the same.
    """

    session_id: str
    turn: int
    round: int
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]
    plan_hash: str
    plan_generation: int
    max_output_tokens: int
    history_digest: str
    forced_tool: str = ""


class StopReason(StrEnum):
    """Why the model stopped. An adapter maps each wire's words onto these; an unknown word is an error."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    PAUSE = "pause"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """What one call gave. `served_model` is what the provider says it ran; `latency_ms` is its own time.

    `simulated` is true where no language model was asked; the flag travels into every record. `provider` is who ran the
    model behind a route that leads to several, `request_id` the provider's own name of the request, and `attempts` are
    the requests that failed before it. `raw` is the provider's content as ASCII JSON, for replay word by word.
    `stop_detail` is what the provider says besides of why it stopped: the category of a refusal.
    """

    blocks: tuple[TextBlock | ToolUse, ...]
    stop: StopReason
    usage: Usage
    served_model: str
    latency_ms: int
    simulated: bool = False
    raw: str | None = None
    provider: str = ""
    request_id: str = ""
    stop_detail: str = ""
    attempts: tuple[Attempt, ...] = ()


class LLMAdapter(Protocol):
    """The one narrow door between the loop and a model.

    `acomplete` is called once a round. It may raise `geode.llm.errors.LLMError`; any other exception is a fault of the
    adapter and ends the turn as such. It must not mutate the snapshot.
    """

    @property
    def model(self) -> str:
        """The exact `route/id` that this adapter is bound to."""
        ...

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """Answer `snapshot`."""
        ...


class DeltaKind(StrEnum):
    """What a part of a reply is, while it comes."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL = "tool"
    """The name of a tool that the model begins to call."""
    AGAIN = "again"
    """The request failed half-way and is sent again: what was shown of it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A part of a reply while it comes. It is for showing alone: only the whole response counts."""

    kind: DeltaKind
    text: str = ""


class DeltaObserver(Protocol):
    """Is told each part of a reply as it comes. It must not raise, wait or keep the caller."""

    def __call__(self, delta: Delta) -> None:
        """Take one part."""
        ...


@runtime_checkable
class BoundsCost(Protocol):
    """What an adapter that knows its prices offers besides: a prompt then ends before it passes its limit on cost.

    Without it the loop learns what a call costs when it is paid for, and the last call may pass the limit.
    """

    def cost_usd_max(self, snapshot: StepSnapshot) -> float | None:
        """Return the most that `acomplete(snapshot)` can cost, whatever it retries; None if nobody knows its price.

        It is asked before each call.
        """
        ...
