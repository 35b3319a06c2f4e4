"""The Responses API through OpenAI's SDK, without state at the provider: all items of a session go with each request.

Nothing is stored there (`store: false`). Items come back exactly as they came and in their order: reasoning with its
encrypted content, calls, messages with their phase, and items of types that nobody knew when this was written.

https://developers.openai.com/api/docs/api-reference/responses. The route `openai-codex` is the same public endpoint
with the access token of Sign in with ChatGPT, https://developers.openai.com/siwc/token-sharing-open-source.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from geode.llm.binding import Binding
from geode.llm.clients import PerLoop
from geode.llm.errors import ConfigurationError, Facts, UnknownStop
from geode.llm.http_errors import hiding, provider_error, request_id_of
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
    ToolSchema,
    ToolUse,
)
from geode.llm.openai_client import openai_client
from geode.llm.routes import Route
from geode.llm.served import check_served, priced
from geode.llm.streaming import Endpoint, Event, Words, as_json, unseen, words_of
from geode.llm.strict_schema import allows_strict
from geode.llm.tokens import output_tokens_max
from geode.llm.usage import Usage
from geode.redaction import Redactor

WIRE: Final = "openai_responses"
_SIGN_IN: Final = (
    "; sign in with ChatGPT again and set OPENAI_CODEX_TOKEN to the new access token, or use the route 'openai' with an"
    " API key"
)
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_POLICY_CODES: Final = ("bio_policy", "misalignment_policy_violation", "content_filter", "content_policy_violation")


class OpenAIResponses:
    """Implements `LLMAdapter` for the routes `openai` and `openai-codex`. It sends each call once.

    Args:
        binding: the model, its key and address. By the plan there is no temperature.
        on_delta: is told each part of a reply as it comes.
        redactor: takes secrets out of what errors keep; the key of `binding` is known besides.

    Raises:
        ConfigurationError: if the binding has a temperature, and its route takes none.
    """

    def __init__(
        self, binding: Binding, on_delta: DeltaObserver | None = None, redactor: Redactor | None = None
    ) -> None:
        self._by_plan = binding.model.route is Route.OPENAI_CODEX
        if self._by_plan and binding.options.temperature is not None:
            raise ConfigurationError(
                f"temperature {binding.options.temperature:g} is set for {binding.model}, but the route takes none;"
                " remove `temperature` from its options"
            )
        self._binding = binding
        self._on_delta = on_delta or unseen
        self._redactor = hiding(redactor or Redactor(), binding.key)
        self._clients = PerLoop(partial(openai_client, binding))

    @property
    def model(self) -> str:
        """See `LLMAdapter.model`."""
        return str(self._binding.model)

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """Send `snapshot` once.

        Raises:
            ConfigurationError: if the plan's side would refuse it for having no system prompt.
            ProviderError: for everything that is no whole response.
        """
        import openai  # noqa: PLC0415  (half a second that only a call may cost)

        began = time.perf_counter()
        body = request_body(self._binding, snapshot)
        client = await self._clients.get()
        endpoint = Endpoint(
            route=self._binding.model.route,
            timeout_s=self._binding.timeout_s,
            redactor=self._redactor,
            raised=(openai.OpenAIError,),
            words=_plan_words if self._by_plan else words_of,
        )
        reply = _Reply(self._binding, self._on_delta, self._redactor)
        opening = client.post(
            "/responses",
            content=as_json(body),
            options={"headers": {"content-type": "application/json"}},
            cast_to=object,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        await endpoint.receive(opening, reply)
        return reply.response(round((time.perf_counter() - began) * 1000))


def _plan_words(body: object) -> Words:
    """Read an error of the plan's side, and say what to do about a token that has run out."""
    words = words_of(body)
    if words.code != "token_expired":
        return words
    return Words(type=words.type, code=words.code, message=words.message.rstrip(".") + _SIGN_IN)


def request_body(binding: Binding, snapshot: StepSnapshot) -> dict[str, Any]:
    """Return the body of the request for `snapshot`.

    Raises:
        ConfigurationError: if the route needs a system prompt, and there is none.
    """
    body: dict[str, Any] = {
        "model": binding.model.model_id,
        "input": [item for message in snapshot.messages for item in _items(message)],
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        # Requests of one session have a long beginning in common; the key brings them to the same cache.
        "prompt_cache_key": snapshot.session_id,
    }
    if snapshot.system:
        body["instructions"] = snapshot.system
    if snapshot.tools:
        body["tools"] = [_tool(tool) for tool in snapshot.tools]
    if snapshot.forced_tool:
        body["tool_choice"] = {"type": "function", "name": snapshot.forced_tool}
    if binding.options.effort is not None:
        body["reasoning"] = {"effort": binding.options.effort.value}
    if binding.model.route is Route.OPENAI_CODEX:
        if not snapshot.system:
            raise ConfigurationError(
                f"{binding.model} takes no request without instructions; give the scaffold a system prompt"
            )
        return body
    if binding.options.temperature is not None:
        body["temperature"] = binding.options.temperature
    return body | {"max_output_tokens": output_tokens_max(binding, snapshot)}


def _tool(tool: ToolSchema) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": allows_strict(tool.input_schema),
    }


def _items(message: Message) -> Sequence[Mapping[str, Any]]:
    if message.raw is not None:
        raw = json.loads(message.raw)
        if raw["wire"] == WIRE:
            return [_whole(item) for item in raw["content"] if not _is_lost(item)]
    results = [_result(block) for block in message.blocks if isinstance(block, ToolResult)]
    parts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    kind = "input_text" if message.role is Speaker.USER else "output_text"
    said = {"type": "message", "role": message.role.value, "content": [{"type": kind, "text": text} for text in parts]}
    calls = [
        {"type": "function_call", "call_id": use.call_id, "name": use.name, "arguments": _sound(use.arguments)}
        for use in message.tool_uses
    ]
    return [*results, *([said] if parts else []), *calls]


def _is_lost(item: Mapping[str, Any]) -> bool:
    """Return whether an item only names what a provider that stores nothing does not have."""
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _whole(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an item as it came; of a call that was cut in its middle the arguments cannot go back."""
    if item.get("type") != "function_call" or (sound := _sound(item["arguments"])) == item["arguments"]:
        return item
    return {**item, "arguments": sound}


def _sound(arguments: str) -> str:
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except ValueError:
        return "{}"


def _result(block: ToolResult) -> dict[str, Any]:
    # The wire has no flag for it.
    text = f"Error: {block.text}" if block.is_error else block.text
    return {"type": "function_call_output", "call_id": block.call_id, "output": text}


class _Reply:
    """A response, put together from its events."""

    last_event = "response.completed"

    def __init__(self, binding: Binding, on_delta: DeltaObserver, redactor: Redactor) -> None:
        self.ended = False
        self.headers: Mapping[str, str] = {}
        self._binding = binding
        self._on_delta = on_delta
        self._redactor = redactor
        self._done: dict[int, dict[str, Any]] = {}
        self._response: dict[str, Any] = {}

    def take(self, event: Event) -> None:
        match event["type"]:
            case "response.output_item.done":
                # Only here, not where it was announced, an item is whole.
                self._done[event["output_index"]] = event["item"]
            case "response.output_item.added":
                if event["item"].get("type") == "function_call":
                    self._on_delta(Delta(kind=DeltaKind.TOOL, text=event["item"]["name"]))
            case "response.output_text.delta" | "response.refusal.delta":
                self._on_delta(Delta(kind=DeltaKind.TEXT, text=event["delta"]))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._on_delta(Delta(kind=DeltaKind.REASONING, text=event["delta"]))
            case "response.created" | "response.in_progress":
                self._response = event["response"]
            case "error":
                self._fail(event)
            case kind if kind in _ENDS:
                self._response = event["response"]
                self.ended = True

    def usage(self) -> Usage | None:
        """Return what the response says of tokens; cached ones are a part of its input."""
        said = self._response.get("usage")
        if not said:
            return None
        into, out = said.get("input_tokens_details") or {}, said.get("output_tokens_details") or {}
        read, written = into.get("cached_tokens"), into.get("cache_write_tokens")
        whole = said.get("input_tokens")
        usage = Usage(
            uncached_input_tokens=None if whole is None else whole - (read or 0) - (written or 0),
            cache_write_tokens=written,
            cache_read_tokens=read,
            output_tokens=said.get("output_tokens"),
            reasoning_tokens=out.get("reasoning_tokens"),
        )
        return priced(usage, self._binding)

    def response(self, latency_ms: int) -> ModelResponse:
        """Return the whole response.

        Raises:
            ServedModelDiffers, UnknownStop: if it is none that counts.
            ProviderError: if it says that it failed.
        """
        facts = Facts(provider=self._binding.model.route.value, status=200, request_id=request_id_of(self.headers))
        usage = self.usage() or Usage()
        check_served(str(self._response.get("model")), self._binding, facts, usage)
        items = self._items()
        blocks = tuple(block for item in items for block in _blocks(item))
        stop, detail = self._stop(items, facts, usage)
        return ModelResponse(
            blocks=blocks,
            stop=stop,
            usage=usage,
            served_model=self._response["model"],
            latency_ms=latency_ms,
            raw=json.dumps({"wire": WIRE, "content": items}, separators=(",", ":")),
            request_id=facts.request_id,
            stop_detail=detail,
        )

    def _items(self) -> list[dict[str, Any]]:
        """Return all items: as they were when they were done, else as the end of the response holds them."""
        listed = dict(enumerate(self._response.get("output") or ()))
        merged = listed | self._done
        return [merged[index] for index in sorted(merged)]

    def _stop(self, items: Sequence[Mapping[str, Any]], facts: Facts, usage: Usage) -> tuple[StopReason, str]:
        status = str(self._response.get("status"))
        refused = any(part.get("type") == "refusal" for part in _parts(items))
        reason = (self._response.get("incomplete_details") or {}).get("reason")
        match status, reason:
            case "failed", _:
                error = self._response.get("error") or {}
                if error.get("code") in _POLICY_CODES:
                    return StopReason.REFUSAL, f"{error['code']}: {error.get('message') or ''}"
                self._fail(error)
            case "incomplete", "max_output_tokens":
                return StopReason.MAX_TOKENS, ""
            case "incomplete", "content_filter":
                return StopReason.REFUSAL, "content_filter"
            case "completed", _ if refused:
                return StopReason.REFUSAL, ""
            case "completed", _:
                calls = any(item.get("type") == "function_call" for item in items)
                return StopReason.TOOL_USE if calls else StopReason.END_TURN, ""
        said = f"{status}: {reason}" if reason else status
        raise UnknownStop(f"the model stopped for the reason {said!r}, which is not known here", facts, usage=usage)

    def _fail(self, error: Event) -> NoReturn:
        """Raise what an error inside of the stream means."""
        words = words_of(error)
        raise provider_error(
            self._binding.model.route,
            status=200,
            type="" if words.type == "error" else words.type,
            code=words.code,
            message=words.message,
            headers=self.headers,
            body=dict(error),
            redactor=self._redactor,
            usage=self.usage(),
        )


def _blocks(item: Mapping[str, Any]) -> Iterator[TextBlock | ToolUse]:
    """Yield what the loop needs to know of an item."""
    match item.get("type"):
        case "function_call":
            yield ToolUse(call_id=item["call_id"], name=item["name"], arguments=item["arguments"])
        case "message":
            for part in item["content"]:
                text = part.get("text") if part.get("type") == "output_text" else part.get("refusal")
                if text:
                    yield TextBlock(text=text)


def _parts(items: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    yield from (part for item in items if item.get("type") == "message" for part in item["content"])
