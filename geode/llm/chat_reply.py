"""A chat completion, put together from its chunks: the message as it goes back, and what the loop needs to know."""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from geode.llm.binding import Binding
from geode.llm.chat_dialects import WINDOWS, Dialect
from geode.llm.errors import ContextTooLarge, Facts, ProviderError, ResponseInvalid, UnknownStop
from geode.llm.http_errors import provider_error, request_id_of
from geode.llm.messages import (
    Delta,
    DeltaKind,
    DeltaObserver,
    ModelResponse,
    StopReason,
    TextBlock,
    ToolUse,
)
from geode.llm.served import check_served, priced
from geode.llm.streaming import Event
from geode.llm.usage import Usage
from geode.redaction import Redactor

_REASONING: Final = ("reasoning", "reasoning_content")
_OF_PIECES: Final = ("index", "function")
_JOINED: Final = ("text", "summary")
"""What of a reasoning detail comes in pieces. All else of it comes whole."""


class ChatReply:
    """One response. `ended` once there is a finish reason; figures of usage may come behind it."""

    last_event = "finish_reason"

    def __init__(self, binding: Binding, dialect: Dialect, on_delta: DeltaObserver, redactor: Redactor) -> None:
        self.ended = False
        self.headers: Mapping[str, str] = {}
        self._binding, self._dialect, self._redactor = binding, dialect, redactor
        self._on_delta = on_delta
        self._head: dict[str, Any] = {}
        self._end: Event = {}
        self._usage: Event = {}
        self._texts: dict[str, list[str]] = {}
        self._others: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._call_at: dict[int, int] = {}

    def take(self, event: Event) -> None:
        """Take one chunk."""
        self._head |= {key: event[key] for key in ("id", "model", "provider") if event.get(key)}
        self._usage = event.get("usage") or self._usage
        for choice in event.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            for key, value in (choice.get("delta") or {}).items():
                if value is not None and key != "role":
                    self._add(key, value)
            if choice.get("finish_reason"):
                self._end, self.ended = choice, True

    def _add(self, key: str, value: Any) -> None:
        if key == "tool_calls":
            for part in value:
                self._add_call(part)
        elif key == "reasoning_details":
            _join(self._others.setdefault(key, []), value)
        elif isinstance(value, str):
            self._texts.setdefault(key, []).append(value)
            kind = DeltaKind.TEXT if key in ("content", "refusal") else DeltaKind.REASONING
            if value and (kind is DeltaKind.TEXT or key in _REASONING):
                self._on_delta(Delta(kind=kind, text=value))
        elif isinstance(value, list):
            self._others[key] = [*self._others.get(key, ()), *value]
        else:
            self._others[key] = value

    def _add_call(self, part: Event) -> None:
        """Add a piece of a call. Some providers give all calls the same index; another id is another call."""
        index, function = part.get("index", len(self._calls)), part.get("function") or {}
        at = self._call_at.get(index)
        if at is None or (part.get("id") and self._calls[at]["id"] not in ("", part["id"])):
            at = self._call_at[index] = len(self._calls)
            self._calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call = self._calls[at]
        # An id comes once, and some send an empty one with each further piece.
        call |= {key: value for key, value in part.items() if value not in (None, "") and key not in _OF_PIECES}
        if function.get("name") and not call["function"]["name"]:
            call["function"]["name"] = function["name"]
            self._on_delta(Delta(kind=DeltaKind.TOOL, text=function["name"]))
        call["function"]["arguments"] += function.get("arguments") or ""

    def usage(self) -> Usage | None:
        """Return what the reply says of tokens; what was cached is a part of its input."""
        said = self._usage
        if not said:
            return None
        into, out = said.get("prompt_tokens_details") or {}, said.get("completion_tokens_details") or {}
        read, written, whole = into.get("cached_tokens"), into.get("cache_write_tokens"), said.get("prompt_tokens")
        usage = Usage(
            uncached_input_tokens=None if whole is None else max(0, whole - (read or 0) - (written or 0)),
            cache_write_tokens=written,
            cache_read_tokens=read,
            output_tokens=said.get("completion_tokens"),
            reasoning_tokens=out.get("reasoning_tokens"),
        )
        return priced(usage, self._binding, _reported_usd(said))

    def response(self, taken: AbstractSet[str], latency_ms: int) -> ModelResponse:
        """Return the whole response; `taken` are the call ids of the history.

        Raises:
            ProviderError: if it failed, or is none that counts.
        """
        facts = Facts(provider=self._binding.model.route.value, status=200, request_id=self._request_id())
        usage = self.usage() or Usage()
        stop = self._stop(facts, usage)
        served = str(self._head.get("model", ""))
        check_served(served, self._binding, facts, usage)
        message = self._message()
        refusal = "".join(self._texts.get("refusal", ()))
        # What was refused is told as text: a provider takes no message back that has neither content nor calls.
        raw = json.dumps({"wire": self._binding.model.route.value, "content": [message]}, separators=(",", ":"))
        return ModelResponse(
            blocks=(*self._said(), *_uses(message.get("tool_calls", ()), taken)),
            stop=StopReason.REFUSAL if refusal else stop,
            usage=usage,
            served_model=served,
            latency_ms=latency_ms,
            raw=None if refusal else raw,
            provider=str(self._head.get("provider", "")),
            request_id=facts.request_id,
            stop_detail=refusal,
        )

    def _said(self) -> Iterator[TextBlock]:
        for key in ("content", "refusal"):
            if text := "".join(self._texts.get(key, ())):
                yield TextBlock(text=text)

    def _stop(self, facts: Facts, usage: Usage) -> StopReason:
        """Return why it ended. OpenRouter keeps the word of the provider behind it beside its own."""
        reason, native = str(self._end["finish_reason"]), str(self._end.get("native_finish_reason"))
        if reason in self._dialect.failures:
            raise self._failure(reason, facts, usage)
        if {reason, native} & WINDOWS:
            raise ContextTooLarge("the model's window was full before its answer was whole", facts, usage=usage)
        stop = StopReason.REFUSAL if native == "refusal" else self._dialect.stops.get(reason)
        match stop:
            case None:
                text = f"the model stopped for the reason {reason!r}, which is not known here"
                raise UnknownStop(self._redactor.redact(text), facts, usage=usage)
            case StopReason.END_TURN if self._calls:
                return StopReason.TOOL_USE
            case StopReason.TOOL_USE if not self._calls:
                raise ResponseInvalid("the model stopped for its tool calls, and there are none", facts, usage=usage)
        return stop

    def _failure(self, reason: str, facts: Facts, usage: Usage) -> ProviderError:
        words = self._dialect.words(self._end)
        return provider_error(
            self._binding.model.route,
            status=200,
            type=words.type or self._dialect.failures[reason],
            code=words.code,
            message=words.message or f"the reply ended with {reason!r}",
            headers={"request-id": facts.request_id},
            body=self._end.get("error"),
            redactor=self._redactor,
            usage=usage,
            retryable=words.retryable,
        )

    def _message(self) -> dict[str, Any]:
        """Return the message as it goes back: what came in pieces is whole, nothing is left out or added."""
        texts = {key: "".join(parts) for key, parts in self._texts.items()}
        message: dict[str, Any] = {"role": "assistant", "content": "", **texts, **self._others}
        seen: set[str] = set()
        for at, call in enumerate(self._calls):
            if not call["id"] or call["id"] in seen:
                call["id"] = f"call_{at}"  # results could not name it otherwise
            seen.add(call["id"])
        return message | ({"tool_calls": self._calls} if self._calls else {})

    def _request_id(self) -> str:
        own = str(self._head.get("id", ""))
        return own if own and self._dialect.names_requests else request_id_of(self.headers) or own


def _uses(calls: Sequence[Event], taken: AbstractSet[str]) -> Iterator[ToolUse]:
    """Yield calls with ids that the history does not have. Some providers begin to count anew in each message.

    The message itself keeps the provider's ids, which its reasoning may name.
    """
    given = set(taken)
    for call in calls:
        call_id, suffix = call["id"], 1
        while call_id in given:
            suffix += 1
            call_id = f"{call['id']}_{suffix}"
        given.add(call_id)
        yield ToolUse(call_id=call_id, name=call["function"]["name"], arguments=call["function"]["arguments"] or "{}")


def _join(details: list[dict[str, Any]], parts: Sequence[Event]) -> None:
    """Add pieces of reasoning: those of one detail follow each other, and have one type and index."""
    for part in parts:
        last = details[-1] if details else {}
        joined = next((key for key in _JOINED if isinstance(part.get(key), str) and isinstance(last.get(key), str)), "")
        if joined and (last.get("type"), last.get("index")) == (part.get("type"), part.get("index")):
            last[joined] += part[joined]
            last |= {key: value for key, value in part.items() if value is not None and key != joined}
        else:
            details.append(dict(part))


def _reported_usd(usage: Event) -> float | None:
    """Return what the request cost. With a key of one's own, OpenRouter's share and the provider's are two figures."""
    cost = usage.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool):
        return None
    upstream = (usage.get("cost_details") or {}).get("upstream_inference_cost")
    return cost + (upstream if usage.get("is_byok") and isinstance(upstream, int | float) else 0.0)
