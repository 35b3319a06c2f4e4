"""Chat Completions as OpenRouter and Z.ai speak it, whole and streamed."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from geode.dev.fake_provider import chat_rules, failures
from geode.dev.fake_provider.given import Given
from geode.dev.fake_provider.models import JEV, KNOWN
from geode.dev.fake_provider.script import Ending, Failure, HttpReply, Step
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
    json_reply,
    pieces,
    seal,
    text_of,
    tokens_of,
)
from geode.llm.routes import Route

_OPENROUTER_WORDS: Final[Mapping[Ending, str]] = {
    Ending.END: "stop",
    Ending.TOOLS: "tool_calls",
    Ending.LENGTH: "length",
    Ending.WINDOW: "length",
    Ending.REFUSAL: "content_filter",
    Ending.FAILED: "error",
}
_ZAI_WORDS: Final[Mapping[Ending, str]] = {
    **_OPENROUTER_WORDS,
    Ending.WINDOW: "model_context_window_exceeded",
    Ending.REFUSAL: "sensitive",
    Ending.FAILED: "network_error",
}
_CREDITS_A_TOKEN: Final = (1e-6, 5e-6)  # made up: input, output
_CREATED: Final = 1_790_200_001
_SAMPLING: Final = ("temperature", "top_p", "top_k")


class _Chat:
    """What both dialects have in common."""

    route: Route
    words: Mapping[Ending, str]

    def __init__(self) -> None:
        self.given = Given()

    def asked(self, body: Body) -> Asked:
        """Return what the agent needs to know."""
        prompt, results, named = "", list[tuple[str, str]](), dict[str, str]()
        for message in body["messages"]:
            named |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or []}
            if message["role"] == "tool":
                results.append((named.get(message["tool_call_id"], ""), text_of(message["content"])))
            elif message["role"] == "user":
                prompt, results = text_of(message["content"]), []
        tools = [tool["function"] for tool in body.get("tools") or []]
        offered = [Tool(name=tool["name"], schema=tool.get("parameters", {})) for tool in tools]
        forced = str(choice["function"]["name"]) if isinstance(choice := body.get("tool_choice"), dict) else ""
        return Asked(prompt=prompt, tools=tuple(offered), results=tuple(results), forced=forced)

    def _check_model(self, request: Request, refuse: Callable[..., HttpReply]) -> None:
        if request.model not in KNOWN[self.route] and request.model not in request.script.models:
            raise Refused(refuse(Failure.UNKNOWN_MODEL, request, note=request.model))
        window = request.script.context_tokens
        if window is not None and request.tokens > window:
            note = f"{request.tokens} tokens > {window}"
            raise Refused(refuse(Failure.CONTEXT_TOO_LONG, request, note=note))

    def _calls(self, request: Request, step: Step) -> list[dict[str, Any]]:
        return [
            {
                "id": call.call_id or drawn("call_", request.seed, at),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
            }
            for at, call in enumerate(step.calls)
        ]

    def _finish(self, step: Step) -> str:
        return self.words[step.end] if isinstance(step.end, Ending) and step.end in self.words else str(step.end)

    def _counts(self, request: Request, step: Step, message: Mapping[str, Any]) -> dict[str, Any]:
        figures = step.figures
        read, written = figures.cache_read_tokens or 0, figures.cache_write_tokens or 0
        fresh = request.tokens if figures.input_tokens is None else figures.input_tokens
        output = tokens_of(encode(message)) if figures.output_tokens is None else figures.output_tokens
        thought = sum(tokens_of(thinking.text) for thinking in step.thinking)
        return {
            "prompt_tokens": fresh + read + written,
            "completion_tokens": output,
            "total_tokens": fresh + read + written + output,
            "prompt_tokens_details": {"cached_tokens": read},
            "completion_tokens_details": {
                "reasoning_tokens": thought if figures.reasoning_tokens is None else figures.reasoning_tokens
            },
        }

    def _answer(self, request: Request, whole: dict[str, Any], reasoning: Sequence[Mapping[str, Any]]) -> Answer:
        return Answer(whole=lambda: encode(whole), events=lambda: _chunks(whole, reasoning))


class OpenRouter(_Chat):
    """OpenRouter's dialect: `reasoning_details`, cost in the usage, the provider that served."""

    route = Route.OPENROUTER
    words = _OPENROUTER_WORDS

    def refuse(self, failure: Failure, request: Request | None, *, note: str = "") -> HttpReply:
        """Return the error body of `failure`."""
        if failure is Failure.EMPTY_CHOICES:
            error = {
                "code": 502,
                "message": "Provider returned error",
                "metadata": {"error_type": "provider_unavailable"},
            }
            return json_reply(200, {"error": error, "user_id": "user_fake"})
        return failures.openrouter(failure, note)

    def check(self, request: Request) -> None:
        """Raise `Refused` if the request breaks a rule."""
        body = request.body
        if JEV.match(request.model):
            message = (
                f"{request.model} is a decisions model and cannot be used with the chat/completions endpoint. Use the"
                " /api/alpha/decisions endpoint instead."
            )
            raise Refused(json_reply(400, {"error": {"message": message, "code": 400}, "user_id": "user_fake"}))
        self._check_model(request, self.refuse)
        if found := next(chat_rules.tool_refusals(body), None):
            raise Refused(self.refuse(Failure.BAD_REQUEST, request, note=found))
        if chat_rules.details_lost(body, self.given):
            note = "Gemini models require OpenRouter reasoning details to be preserved in each request"
            raise Refused(self.refuse(Failure.BAD_REQUEST, request, note=note))
        strict = (body.get("provider") or {}).get("require_parameters")
        if request.model.startswith("anthropic/"):
            if strict and any(name in body for name in _SAMPLING):
                note = "No endpoints found that can handle the requested parameters."
                error = {"message": note, "code": 404, "metadata": {"error_type": "not_found"}}
                raise Refused(json_reply(404, {"error": error, "user_id": "user_fake"}))
            if chat_rules.ends_with_assistant(body):
                note = (
                    "This model does not support assistant message prefill. The conversation must end with a user"
                    " message."
                )
                raise Refused(self.refuse(Failure.BAD_REQUEST, request, note=note))

    def answer(self, request: Request, step: Step) -> Answer:
        """Return the completion that `step` describes."""
        details: list[dict[str, Any]] = [
            {"type": "reasoning.encrypted", "data": thinking.seal or seal(thinking.text), "id": None}
            if thinking.redacted or not thinking.text
            else {
                "type": "reasoning.text",
                "text": thinking.text,
                "signature": thinking.seal or seal(thinking.text),
                "id": None,
            }
            for thinking in step.thinking
        ]
        details = [{**detail, "format": "anthropic-claude-v1", "index": at} for at, detail in enumerate(details)]
        calls = self._calls(request, step)
        for call in calls:
            self.given.keep_before(call["id"], details)
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None, "refusal": step.refusal}
        if details:
            message["reasoning"] = "".join(thinking.text for thinking in step.thinking if not thinking.redacted)
            message["reasoning_details"] = details
        if calls:
            message["tool_calls"] = calls
        finish = self._finish(step)
        choice = {"index": 0, "message": message, "finish_reason": finish, "native_finish_reason": finish}
        if step.end == Ending.FAILED:
            metadata = {"error_type": "provider_unavailable"}
            choice["error"] = {"code": 502, "message": "Provider disconnected", "metadata": metadata}
        counts = self._counts(request, step, message)
        cost = step.figures.cost_usd
        if cost is None:
            priced = zip((counts["prompt_tokens"], counts["completion_tokens"]), _CREDITS_A_TOKEN, strict=True)
            cost = round(sum(tokens * price for tokens, price in priced), 9)
        counts["prompt_tokens_details"]["cache_write_tokens"] = step.figures.cache_write_tokens or 0
        usage = {**counts, "cost": cost, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
        whole = {
            "id": drawn("gen-1790200001-", request.seed, length=20),
            "provider": _provider(request.body),
            "model": step.served_model or request.model,
            "object": "chat.completion",
            "created": _CREATED,
            "choices": [choice],
            "usage": usage,
        }
        return self._answer(request, whole, _fragments(details))

    def stream_error(self, failure: Failure, request: Request, events: Sequence[str]) -> str:
        """Return a chunk with an error and the finish reason `error`."""
        error = json.loads(self.refuse(failure, request).body)["error"]
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "native_finish_reason": "error"}
        chunk = {
            "id": drawn("gen-1790200001-", request.seed, length=20),
            "object": "chat.completion.chunk",
            "created": _CREATED,
            "model": request.model,
            "provider": _provider(request.body),
            "error": error,
            "choices": [choice],
        }
        return f"data: {encode(chunk)}\n\n"


def _provider(body: Body) -> str:
    """Return who serves: the first one that the request admits."""
    wanted = body.get("provider") or {}
    return str([*(wanted.get("only") or []), *(wanted.get("order") or []), "Fake"][0])


class Zai(_Chat):
    """Z.ai's dialect: `reasoning_content`, `max_tokens`, business codes in errors."""

    route = Route.ZAI
    words = _ZAI_WORDS

    def refuse(self, failure: Failure, request: Request | None, *, note: str = "") -> HttpReply:
        """Return the error body of `failure`."""
        return failures.zai(failure, note)

    def check(self, request: Request) -> None:
        """Raise `Refused` if the request breaks a rule."""
        body = request.body
        self._check_model(request, self.refuse)
        if found := next(chat_rules.zai_refusals(body), None):
            raise Refused(json_reply(400, {"error": {"code": found[0], "message": found[1]}}))
        note = next(chat_rules.tool_refusals(body), "")
        if not note and chat_rules.reasoning_lost(body, self.given):
            note = "reasoning_content is missing in assistant tool call message"
        if note:
            error = {"code": "1214", "message": f"messages parameter is illegal. {note}"}
            raise Refused(json_reply(400, {"error": error}))

    def answer(self, request: Request, step: Step) -> Answer:
        """Return the completion that `step` describes."""
        thought = "".join(thinking.text for thinking in step.thinking)
        calls = self._calls(request, step)
        message: dict[str, Any] = {"role": "assistant", "content": step.text or step.refusal or ""}
        if thought:
            message["reasoning_content"] = thought
            for call in calls:
                self.given.keep_before(call["id"], [thought])
        if calls:
            message["tool_calls"] = calls
        whole = {
            "id": drawn("", request.seed, length=32),
            "request_id": request.id,
            "model": step.served_model or request.model,
            "object": "chat.completion",
            "created": _CREATED,
            "choices": [{"index": 0, "message": message, "finish_reason": self._finish(step)}],
            "usage": self._counts(request, step, message),
        }
        reasoning = [{"reasoning_content": part} for part in pieces(thought)]
        return self._answer(request, whole, reasoning)

    def stream_error(self, failure: Failure, request: Request, events: Sequence[str]) -> str:
        """Return a line with the error alone."""
        return f"data: {self.refuse(failure, request).body}\n\n"


def _fragments(details: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the deltas in which details are streamed: text in pieces under one index, its signature at the end."""
    deltas: list[dict[str, Any]] = []
    for detail in details:
        if detail["type"] != "reasoning.text":
            deltas.append({"reasoning_details": [dict(detail)]})
            continue
        for part in pieces(detail["text"]):
            fragment = {**detail, "text": part, "signature": None}
            deltas.append({"reasoning": part, "reasoning_details": [fragment]})
        deltas.append({"reasoning_details": [{**detail, "text": ""}]})
    return deltas


def _chunks(whole: Mapping[str, Any], reasoning: Sequence[Mapping[str, Any]]) -> list[str]:
    choice = whole["choices"][0]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *map(dict, reasoning)]
    deltas += [{"content": part} for part in pieces(message["content"] or "")]
    if message.get("refusal"):
        deltas.append({"refusal": message["refusal"]})
    for at, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        deltas.append({"tool_calls": [{"index": at, **call, "function": {**function, "arguments": ""}}]})
        parts = pieces(function["arguments"])
        deltas += [{"tool_calls": [{"index": at, "function": {"arguments": part}}]} for part in parts]
    head = {key: value for key, value in whole.items() if key not in ("choices", "usage", "object")}
    head["object"] = "chat.completion.chunk"
    last = {key: value for key, value in choice.items() if key != "message"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks = [encode({**head, "choices": [one]}) for one in choices]
    ends = {**head, "choices": [{**last, "delta": {}}]}
    if "provider" in whole:
        chunks += [encode(ends), encode({**head, "choices": [], "usage": whole["usage"]})]
    else:
        chunks.append(encode({**ends, "usage": whole["usage"]}))
    waiting = [": OPENROUTER PROCESSING\n\n"] if "provider" in whole else []  # a comment, not an event
    return [*waiting, *(f"data: {chunk}\n\n" for chunk in chunks), "data: [DONE]\n\n"]
