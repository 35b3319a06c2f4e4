"""The Messages API: `POST /v1/messages`, whole and streamed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from geode.dev.fake_provider import failures
from geode.dev.fake_provider.anthropic_rules import blocks_of, refusals
from geode.dev.fake_provider.caching import Cached, PromptCache
from geode.dev.fake_provider.given import Given
from geode.dev.fake_provider.models import KNOWN
from geode.dev.fake_provider.script import Ending, Failure, HttpReply, Step, Thinking
from geode.dev.fake_provider.wire import (
    Answer,
    Asked,
    Body,
    Refused,
    Request,
    Tool,
    arguments_text,
    drawn,
    encode,
    pieces,
    seal,
    text_of,
    tokens_of,
)
from geode.llm.routes import Route

_WORDS: Final[Mapping[Ending, str]] = {
    Ending.END: "end_turn",
    Ending.TOOLS: "tool_use",
    Ending.LENGTH: "max_tokens",
    Ending.REFUSAL: "refusal",
    Ending.PAUSE: "pause_turn",
    Ending.WINDOW: "model_context_window_exceeded",
}
_CONTINUED: Final = ("pause_turn", "compaction")  # such a turn comes back as the last one, without a user turn


class Anthropic:
    """Answers in the form of the Messages API."""

    def __init__(self) -> None:
        self.given = Given()
        self.cache = PromptCache()

    def refuse(self, failure: Failure, request: Request | None, *, note: str = "") -> HttpReply:
        """Return the error body of `failure`."""
        return failures.anthropic(failure, request.id if request else "req_fake", note)

    def check(self, request: Request) -> None:
        """Raise `Refused` if the request breaks a rule."""
        if not request.headers.get("anthropic-version"):
            note = "anthropic-version: header is required"
            raise Refused(self.refuse(Failure.BAD_REQUEST, request, note=note))
        if found := refusals(request.body, self.given):
            raise Refused(self.refuse(Failure.BAD_REQUEST, request, note=found[0]))
        if request.model not in KNOWN[Route.ANTHROPIC] and request.model not in request.script.models:
            raise Refused(self.refuse(Failure.UNKNOWN_MODEL, request, note=request.model))
        window = request.script.context_tokens
        if window is not None and request.tokens > window:
            note = f"{request.tokens} tokens > {window} maximum"
            raise Refused(self.refuse(Failure.CONTEXT_TOO_LONG, request, note=note))

    def asked(self, body: Body) -> Asked:
        """Return what the agent needs to know."""
        prompt, results, named = "", [], dict[str, str]()
        for message in body["messages"]:
            content = blocks_of(message)
            named |= {block["id"]: block["name"] for block in content if block["type"] == "tool_use"}
            answers = [block for block in content if block["type"] == "tool_result"]
            results += [(named.get(block["tool_use_id"], ""), text_of(block.get("content"))) for block in answers]
            if message["role"] == "user" and not answers:
                prompt, results = text_of(content), []
        tools = [Tool(name=tool["name"], schema=tool.get("input_schema", {})) for tool in body.get("tools", [])]
        forced = str(body.get("tool_choice", {}).get("name", ""))
        return Asked(prompt=prompt, tools=tuple(tools), results=tuple(results), forced=forced)

    def answer(self, request: Request, step: Step) -> Answer:
        """Return the message that `step` describes."""
        hidden = (request.body.get("thinking") or {}).get("display") == "omitted"
        reasoning = [self._think(thinking, hidden=hidden) for thinking in step.thinking]
        content: list[Mapping[str, Any]] = list(reasoning)
        if step.text:
            content.append({"type": "text", "text": step.text})
        for block in step.blocks:
            self.given.keep_whole(block)
            content.append(block)
        for at, call in enumerate(step.calls):
            call_id = call.call_id or drawn("toolu_", request.seed, at)
            self.given.keep_before(call_id, reasoning)
            text = arguments_text(call.arguments)
            content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": _Arguments(text)})
        stop = _WORDS[step.end] if isinstance(step.end, Ending) and step.end in _WORDS else str(step.end)
        if stop in _CONTINUED:
            self.given.keep_whole(_as_sent(content))
        message = {
            "id": drawn("msg_", request.seed),
            "type": "message",
            "role": "assistant",
            "model": step.served_model or request.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": self._usage(request, step, content),
        }
        if step.end == Ending.REFUSAL:
            details = {"type": "refusal", "category": None, "explanation": step.refusal}
            message["stop_details"] = details
        return Answer(
            whole=lambda: encode({**message, "content": _as_sent(content)}),
            events=lambda: [_event(event) for event in _events(message)],
        )

    def stream_error(self, failure: Failure, request: Request, events: Sequence[str]) -> str:
        """Return an `error` event."""
        return f"event: error\ndata: {self.refuse(failure, request).body}\n\n"

    def _think(self, thinking: Thinking, *, hidden: bool) -> dict[str, Any]:
        text = "" if hidden or thinking.redacted else thinking.text
        sealed = thinking.seal or seal(text, thinking.text)
        self.given.keep_seal(sealed, text)
        if thinking.redacted:
            return {"type": "redacted_thinking", "data": sealed}
        return {"type": "thinking", "thinking": text, "signature": sealed}

    def _usage(self, request: Request, step: Step, content: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        figures = step.figures
        cached = self.cache.look_up(request.body) if figures.cache_read_tokens is None else Cached()
        read = cached.read if figures.cache_read_tokens is None else figures.cache_read_tokens
        written = cached.written if figures.cache_write_tokens is None else figures.cache_write_tokens
        counted = max(1, request.tokens - cached.read - cached.written)
        thought = sum(tokens_of(thinking.text) for thinking in step.thinking)
        usage = {
            "input_tokens": counted if figures.input_tokens is None else figures.input_tokens,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": figures.output_tokens,
            "service_tier": "standard",
        }
        if figures.output_tokens is None:
            usage["output_tokens"] = tokens_of(encode(_as_sent(content)))
        reasoning = thought if figures.reasoning_tokens is None else figures.reasoning_tokens
        if step.thinking or reasoning:
            usage["output_tokens_details"] = {"thinking_tokens": reasoning}
        return usage


class _Arguments(str):
    """Arguments of a call as text: a stream sends them as they are, a whole message what can be read of them."""

    __slots__ = ()


def _as_sent(content: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: _read(value) if isinstance(value, _Arguments) else value for key, value in b.items()} for b in content
    ]


def _read(text: str) -> object:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}  # a call that was cut off: the API gives an object, with what it has
    return value if isinstance(value, dict) else {}


def _event(event: Mapping[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {encode(event)}\n\n"


def _events(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    usage = message["usage"]
    head = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    head.pop("stop_details", None)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        start, deltas = _in_deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    if "stop_details" in message:
        delta["stop_details"] = message["stop_details"]
    counts = {key: value for key, value in usage.items() if key not in ("cache_creation", "service_tier")}
    return [*events, {"type": "message_delta", "delta": delta, "usage": counts}, {"type": "message_stop"}]


def _in_deltas(block: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[dict[str, str]]]:
    """Return a block as it starts, and what is then added to it. A type that nobody knows starts complete."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in pieces(block["text"])]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"])]
            return (
                {"type": "thinking", "thinking": "", "signature": ""},
                [*deltas, {"type": "signature_delta", "signature": block["signature"]}],
            )
        case "tool_use" if isinstance(block["input"], _Arguments):
            parts = [{"type": "input_json_delta", "partial_json": part} for part in ["", *pieces(block["input"])]]
            return {**block, "input": {}}, parts
        case _:
            return block, []
