"""The Messages API through Anthropic's SDK: what the loop says as a request, and a stream of events as a response.

Content is kept as it came and goes back as it came: reasoning with its signature even where its text is empty, and
blocks of types that nobody knew when this was written. Only `type` strings are looked at.

https://platform.claude.com/docs/en/api/messages, version 2026-10-21.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, assert_never

from geode.llm.binding import Binding, Effort
from geode.llm.clients import PerLoop, bounded, is_loopback, tls
from geode.llm.errors import ConfigurationError, ContextTooLarge, Facts, UnknownStop
from geode.llm.http_errors import hiding, request_id_of
from geode.llm.messages import (
    Delta,
    DeltaKind,
    DeltaObserver,
    Message,
    ModelResponse,
    Speaker,
    StepSnapshot,
    StopReason,
    TextBlock,
    ToolResult,
    ToolUse,
)
from geode.llm.served import check_served, priced
from geode.llm.streaming import CONNECT_S_MAX, Endpoint, Event, as_json, unseen
from geode.llm.tokens import output_tokens_max
from geode.llm.usage import Usage
from geode.redaction import Redactor

if TYPE_CHECKING:
    import anthropic

WIRE: Final = "anthropic"
_STOPS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "pause_turn": StopReason.PAUSE,
    "compaction": StopReason.PAUSE,
    "refusal": StopReason.REFUSAL,
}
_WINDOW_EXCEEDED: Final = "model_context_window_exceeded"
_NOT_ADAPTIVE: Final = re.compile(r"claude-(opus-4-5|sonnet-4-5|haiku-4-5)")
_CACHED: Final = {"type": "ephemeral", "ttl": "5m"}
# The messages that end the last two requests: the older one is read from the cache however many blocks lie between,
# while a single mark would look back no further than 20 of them.
_MARKED_MESSAGES: Final = 2


class AnthropicMessages:
    """Implements `LLMAdapter`. One request for each call, which is never sent again from here.

    Args:
        binding: the model, its key and address. A temperature is refused: these models take no sampling parameters.
        on_delta: is told each part of a reply as it comes.
        redactor: takes secrets out of what errors keep; the key of `binding` is known besides.

    Raises:
        ConfigurationError: if the binding has a temperature.
    """

    def __init__(
        self, binding: Binding, on_delta: DeltaObserver | None = None, redactor: Redactor | None = None
    ) -> None:
        if binding.options.temperature is not None:
            raise ConfigurationError(
                f"temperature {binding.options.temperature:g} is set for {binding.model}, which takes no sampling"
                " parameters; remove `temperature` from its options"
            )
        self._binding = binding
        self._on_delta = on_delta or unseen
        self._redactor = hiding(redactor or Redactor(), binding.key)
        self._clients = PerLoop(partial(_client, binding))

    @property
    def model(self) -> str:
        """See `LLMAdapter.model`."""
        return str(self._binding.model)

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """Send `snapshot` once.

        Raises:
            ProviderError: for everything that is no whole response.
        """
        import anthropic  # noqa: PLC0415  (half a second that only a call may cost)

        began = time.perf_counter()
        client = await self._clients.get()
        endpoint = Endpoint(
            route=self._binding.model.route,
            timeout_s=self._binding.timeout_s,
            redactor=self._redactor,
            raised=(anthropic.AnthropicError,),
        )
        reply = _Reply(self._binding, self._on_delta)
        opening = client.post(
            "/v1/messages",
            content=as_json(request_body(self._binding, snapshot)),
            options={"headers": {"content-type": "application/json"}, "timeout": client.timeout},
            cast_to=object,
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        await endpoint.receive(opening, reply)
        return reply.response(round((time.perf_counter() - began) * 1000))


def _client(binding: Binding) -> "anthropic.AsyncAnthropic":
    import anthropic  # noqa: PLC0415

    return anthropic.AsyncAnthropic(
        api_key=binding.key,
        base_url=binding.base_url,
        timeout=anthropic.Timeout(binding.timeout_s, connect=min(binding.timeout_s, CONNECT_S_MAX)),
        max_retries=0,
        http_client=anthropic.DefaultAsyncHttpxClient(
            trust_env=not is_loopback(binding.base_url), verify=tls(), event_hooks={"response": [bounded]}
        ),
    )


def request_body(binding: Binding, snapshot: StepSnapshot) -> dict[str, Any]:
    """Return the body of the request for `snapshot`."""
    body: dict[str, Any] = {
        "model": binding.model.model_id,
        "max_tokens": output_tokens_max(binding, snapshot),
        "messages": _messages(snapshot.messages),
        "stream": True,
    }
    if snapshot.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in snapshot.tools
        ]
    if snapshot.system:
        # Tools stand before it in what is cached, so that one mark covers both.
        body["system"] = [{"type": "text", "text": snapshot.system, "cache_control": _CACHED}]
    elif snapshot.tools:
        body["tools"][-1]["cache_control"] = _CACHED
    if snapshot.forced_tool:
        # Refused beside a budget for thinking, which is never asked for here.
        body["tool_choice"] = {"type": "tool", "name": snapshot.forced_tool}
    return body | _thinking(binding)


def _thinking(binding: Binding) -> dict[str, Any]:
    """Return how much the model may think: the same for every request of a session."""
    effort = binding.options.effort
    if effort is Effort.NONE:
        return {"thinking": {"type": "disabled"}}
    asked: dict[str, Any] = {} if effort is None else {"output_config": {"effort": effort.value}}
    if not _NOT_ADAPTIVE.match(binding.model.model_id):
        asked["thinking"] = {"type": "adaptive"}
    return asked


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    rendered = [{"role": message.role.value, "content": _content(message)} for message in messages]
    from_user = [message["content"] for message in rendered if message["role"] == Speaker.USER.value]
    for content in from_user[-_MARKED_MESSAGES:]:
        content[-1]["cache_control"] = _CACHED
    return rendered


def _content(message: Message) -> Any:
    if message.raw is not None:
        raw = json.loads(message.raw)
        if raw["wire"] == WIRE:
            # The API gives out text without content, and does not take it back.
            return [block for block in raw["content"] if block["type"] != "text" or block["text"].strip()]
    return [_block(block) for block in message.blocks]


def _block(block: TextBlock | ToolUse | ToolResult) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ToolUse():
            return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": _input(block.arguments)}
        case ToolResult():
            told: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id, "content": block.text}
            return told | ({"is_error": True} if block.is_error else {})
    assert_never(block)


def _input(arguments: str) -> dict[str, Any]:
    """Return arguments as the API wants them back. Of a call that was cut in its middle nothing can be sent back."""
    try:
        value = json.loads(arguments or "{}", parse_constant=_no_constant)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


class _Reply:
    """A message, put together from its events."""

    last_event = "message_stop"

    def __init__(self, binding: Binding, on_delta: DeltaObserver) -> None:
        self.ended = False
        self.headers: Mapping[str, str] = {}
        self._binding = binding
        self._on_delta = on_delta
        self._model = ""
        self._content: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, list[str]] = {}
        self._stop: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}

    def take(self, event: Event) -> None:
        match event["type"]:
            case "message_start":
                self._model = event["message"]["model"]
                # Its output is what was written by then. Nobody knows what a message cost that is cut after that.
                self._count({**event["message"]["usage"], "output_tokens": None})
            case "content_block_start":
                block = self._content[event["index"]] = dict(event["content_block"])
                if block["type"] == "tool_use":
                    self._on_delta(Delta(kind=DeltaKind.TOOL, text=block["name"]))
            case "content_block_delta":
                self._add(event["index"], event["delta"])
            case "message_delta":
                self._stop |= event["delta"]
                self._count(event["usage"])
            case "message_stop":
                for index, parts in self._texts.items():
                    self._close(self._content[index], "".join(parts))
                self.ended = True
            case _:
                pass  # a new kind of event tells nothing about the content of the message

    def usage(self) -> Usage | None:
        """Return what was said so far of tokens; the last figures count, they are cumulative."""
        if not self._usage:
            return None
        said = self._usage
        usage = Usage(
            uncached_input_tokens=said.get("input_tokens"),
            cache_write_tokens=said.get("cache_creation_input_tokens"),
            cache_write_1h_tokens=(said.get("cache_creation") or {}).get("ephemeral_1h_input_tokens"),
            cache_read_tokens=said.get("cache_read_input_tokens"),
            output_tokens=said.get("output_tokens"),
            reasoning_tokens=(said.get("output_tokens_details") or {}).get("thinking_tokens"),
        )
        return priced(usage, self._binding)

    def response(self, latency_ms: int) -> ModelResponse:
        """Return the whole response.

        Raises:
            ServedModelDiffers, UnknownStop, ContextTooLarge: if it is none that counts.
        """
        facts = Facts(provider=WIRE, status=200, request_id=request_id_of(self.headers))
        usage = self.usage() or Usage()
        check_served(self._model, self._binding, facts, usage)
        reason = str(self._stop.get("stop_reason"))
        if reason == _WINDOW_EXCEEDED:
            raise ContextTooLarge("the model's window was full before its answer was whole", facts, usage=usage)
        if reason not in _STOPS:
            raise UnknownStop(
                f"the model stopped for the reason {reason!r}, which is not known here", facts, usage=usage
            )
        content = [self._content[index] for index in sorted(self._content)]
        raw = {"wire": WIRE, "content": content}
        details = self._stop.get("stop_details") or {}
        return ModelResponse(
            blocks=tuple(block for index in sorted(self._content) for block in self._read(index)),
            stop=_STOPS[reason],
            usage=usage,
            served_model=self._model,
            latency_ms=latency_ms,
            raw=json.dumps(raw, separators=(",", ":")),
            request_id=facts.request_id,
            stop_detail=": ".join(str(details[key]) for key in ("category", "explanation") if details.get(key)),
        )

    def _add(self, index: int, delta: Event) -> None:
        """Add to a block what came of it."""
        block = self._content[index]
        match delta["type"]:
            case "text_delta":
                self._texts.setdefault(index, [block["text"]]).append(delta["text"])
                self._on_delta(Delta(kind=DeltaKind.TEXT, text=delta["text"]))
            case "thinking_delta":
                self._texts.setdefault(index, [block["thinking"]]).append(delta["thinking"])
                self._on_delta(Delta(kind=DeltaKind.REASONING, text=delta["thinking"]))
            case "input_json_delta":
                self._texts.setdefault(index, []).append(delta["partial_json"])
            case "signature_delta":
                block["signature"] = delta["signature"]
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case other:
                # A block that lacks a part would be refused when it is sent back, or be read as something else.
                raise ValueError(f"a part of the type {other!r} belongs to a block of type {block['type']!r}")

    def _close(self, block: dict[str, Any], text: str) -> None:
        """Put `text` into its place in a block."""
        match block["type"]:
            case "text" | "thinking" as key:
                block[key] = text
            case _ if text:
                block["input"] = _input(text)

    def _read(self, index: int) -> Iterator[TextBlock | ToolUse]:
        """Yield what the loop needs to know of a block: its text, or the call that it asks for."""
        block = self._content[index]
        if block["type"] == "text" and block["text"]:
            yield TextBlock(text=block["text"])
        elif block["type"] == "tool_use":
            arguments = "".join(self._texts.get(index, ())) or json.dumps(block["input"], separators=(",", ":"))
            yield ToolUse(call_id=block["id"], name=block["name"], arguments=arguments)

    def _count(self, usage: Event) -> None:
        self._usage |= {name: value for name, value in usage.items() if value is not None}
