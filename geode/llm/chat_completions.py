"""Chat Completions through OpenAI's SDK, for the routes `openrouter` and `zai`.

An assistant message goes back as it came, with the reasoning that led to its calls; tools and the same way of thinking
go with every request. What differs between the providers stands in `geode.llm.chat_dialects`.
"""

import json
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from geode.llm.binding import Binding
from geode.llm.chat_dialects import DIALECTS, Dialect
from geode.llm.chat_reply import ChatReply
from geode.llm.clients import PerLoop
from geode.llm.errors import ProviderError
from geode.llm.http_errors import hiding
from geode.llm.messages import (
    DeltaObserver,
    Message,
    ModelResponse,
    Speaker,
    StepSnapshot,
    StopReason,
    TextBlock,
    ToolResult,
)
from geode.llm.openai_client import openai_client
from geode.llm.spending import billed_for
from geode.llm.streaming import Endpoint, as_json, unseen
from geode.llm.tokens import output_tokens_max
from geode.llm.usage import Usage
from geode.redaction import Redactor

_CACHED: Final = {"type": "ephemeral"}
_MARKED_MESSAGES: Final = 2
"""The ends of the last two requests: the older one is what the cache holds, the newer one what it is to hold."""


class ChatCompletions:
    """Implements `LLMAdapter`. One request for each call, which is never sent again from here.

    Args:
        binding: the model, its key and address.
        on_delta: is told each part of a reply as it comes.
        redactor: takes secrets out of what errors keep; the key of `binding` is known besides.

    Raises:
        ConfigurationError: if the route does not take such a binding.
    """

    def __init__(
        self, binding: Binding, on_delta: DeltaObserver | None = None, redactor: Redactor | None = None
    ) -> None:
        self._dialect = DIALECTS[binding.model.route]
        self._dialect.check(binding)
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
            ProviderError: for everything that is no whole response.
        """
        import openai  # noqa: PLC0415  (half a second that only a call may cost)

        began = time.perf_counter()
        client = await self._clients.get()
        endpoint = Endpoint(
            route=self._binding.model.route,
            timeout_s=self._binding.timeout_s,
            redactor=self._redactor,
            raised=(openai.OpenAIError,),
            words=self._dialect.words,
        )
        reply = ChatReply(self._binding, self._dialect, self._on_delta, self._redactor)
        opening = client.post(
            "/chat/completions",
            content=as_json(request_body(self._binding, self._dialect, snapshot)),
            options={"headers": {"content-type": "application/json"}},
            cast_to=object,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        taken = {use.call_id for message in snapshot.messages for use in message.tool_uses}
        try:
            await endpoint.receive(opening, reply)
            return reply.response(taken, _ms_since(began))
        except ProviderError as error:
            if not {error.facts.type, error.facts.code} & self._dialect.refusals:
                raise
            return _refused(error, _ms_since(began))


def _ms_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)


def _refused(error: ProviderError, latency_ms: int) -> ModelResponse:
    """Return a refusal that came in the form of an error: nothing was said, and the reason is the provider's."""
    return ModelResponse(
        blocks=(),
        stop=StopReason.REFUSAL,
        usage=billed_for(error) or Usage(),
        served_model="",
        latency_ms=latency_ms,
        request_id=error.facts.request_id,
        stop_detail=str(error.args[0]),
    )


def request_body(binding: Binding, dialect: Dialect, snapshot: StepSnapshot) -> dict[str, Any]:
    """Return the body of the request for `snapshot`."""
    body: dict[str, Any] = {
        "model": binding.model.wire_id,
        "messages": _messages(binding.model.route.value, snapshot, marked=dialect.marks_cache(binding)),
        "max_tokens": output_tokens_max(binding, snapshot),
        "stream": True,
    }
    if snapshot.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
            }
            for tool in snapshot.tools
        ]
    if snapshot.forced_tool and dialect.forces_tools:
        body["tool_choice"] = {"type": "function", "function": {"name": snapshot.forced_tool}}
    return body | dialect.settings(binding)


def _messages(wire: str, snapshot: StepSnapshot, *, marked: bool) -> list[dict[str, Any]]:
    """Return the conversation; `marked` says to the provider's cache how far it will come again."""
    rendered: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    if snapshot.system:
        ends.append({"role": "system", "content": _content(snapshot.system, marked=marked)})
        rendered += ends
    fixed = len(ends)
    wire_ids: Mapping[str, str] = {}
    for message in snapshot.messages:
        if message.role is Speaker.ASSISTANT:
            said = _assistant(wire, message)
            rendered.append(said)
            calls = said.get("tool_calls", ())
            wire_ids = {use.call_id: call["id"] for use, call in zip(message.tool_uses, calls, strict=True)}
        else:
            rendered += _from_user(message, wire_ids, marked=marked)
            ends.append(rendered[-1])
    if marked:
        for end in (*ends[:fixed], *ends[fixed:][-_MARKED_MESSAGES:]):
            end["content"][-1]["cache_control"] = _CACHED
    return rendered


def _from_user(message: Message, wire_ids: Mapping[str, str], *, marked: bool) -> Iterator[dict[str, Any]]:
    for block in message.blocks:
        if isinstance(block, ToolResult):
            # The wire has no flag for it.
            text = f"Error: {block.text}" if block.is_error else block.text
            call_id = wire_ids.get(block.call_id, block.call_id)
            yield {"role": "tool", "tool_call_id": call_id, "content": _content(text, marked=marked)}
    if any(isinstance(block, TextBlock) for block in message.blocks):
        yield {"role": "user", "content": _content(message.text, marked=marked)}


def _content(text: str, *, marked: bool) -> str | list[dict[str, Any]]:
    """Return a text in the one form that it has in every request of a session: only parts can bear a mark."""
    return [{"type": "text", "text": text}] if marked else text


def _assistant(wire: str, message: Message) -> dict[str, Any]:
    if message.raw is not None:
        raw = json.loads(message.raw)
        if raw["wire"] == wire:
            said: dict[str, Any] = raw["content"][0]
            return said | (
                {"tool_calls": [_whole(call) for call in said["tool_calls"]]} if "tool_calls" in said else {}
            )
    calls = [
        _whole({"id": use.call_id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}})
        for use in message.tool_uses
    ]
    return {"role": "assistant", "content": message.text} | ({"tool_calls": calls} if calls else {})


def _whole(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call as it came; of one that was cut in its middle the arguments cannot go back."""
    function = call["function"]
    try:
        sound = isinstance(json.loads(function["arguments"]), dict)
    except ValueError:
        sound = False
    return call if sound else {**call, "function": {**function, "arguments": "{}"}}
