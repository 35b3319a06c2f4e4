"""The Responses API: `POST /v1/responses`, whole and streamed, by key and by subscription."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from geode.dev.fake_provider import failures
from geode.dev.fake_provider.given import Given
from geode.dev.fake_provider.models import KNOWN
from geode.dev.fake_provider.responses_rules import (
    Fault,
    item_faults,
    items_of,
    kind_of,
    parameter_faults,
    subscription_fault,
)
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

_CREATED: Final = 1_790_200_001
_STORED_MAX: Final = 10_000
_REASONS: Final[Mapping[Ending | str, str]] = {Ending.LENGTH: "max_output_tokens", "content_filter": "content_filter"}


class Responses:
    """Answers in the form of the Responses API."""

    def __init__(self) -> None:
        self.given = Given()
        self._stored: dict[str, list[Mapping[str, Any]]] = {}

    def refuse(self, failure: Failure, request: Request | None, *, note: str = "") -> HttpReply:
        """Return the error body of `failure`."""
        if failure is Failure.EMPTY_CHOICES and request is not None:
            return HttpReply(status=200, body=encode(_failed(_shell(request, Step()), Failure.SERVER)))
        return failures.openai(failure, note)

    def check(self, request: Request) -> None:
        """Raise `Refused` if the request breaks a rule."""
        body, by_plan = request.body, request.route is Route.OPENAI_CODEX
        if by_plan and (detail := subscription_fault(body)):
            raise Refused(json_reply(400, {"detail": detail}))
        if request.model not in KNOWN[request.route] and request.model not in request.script.models:
            raise Refused(self.refuse(Failure.UNKNOWN_MODEL, request, note=request.model))
        for fault in parameter_faults(body):
            raise Refused(_reply(fault))
        for fault in item_faults(self._items(body), body, self.given):
            raise Refused(_reply(fault))
        window = request.script.context_tokens
        if window is not None and request.tokens > window and body.get("truncation") != "auto":
            raise Refused(failures.openai(Failure.CONTEXT_TOO_LONG, "", param="input"))

    def _items(self, body: Body) -> list[Mapping[str, Any]]:
        previous = body.get("previous_response_id")
        if previous is None:
            return items_of(body)
        if previous not in self._stored:
            message = f"Previous response with id '{previous}' not found."
            raise Refused(
                _reply(Fault(message=message, param="previous_response_id", code="previous_response_not_found"))
            )
        return [*self._stored[previous], *items_of(body)]

    def asked(self, body: Body) -> Asked:
        """Return what the agent needs to know."""
        prompt, results, named = "", list[tuple[str, str]](), dict[str, str]()
        for item in self._items(body):
            match kind_of(item):
                case "function_call":
                    named[item["call_id"]] = item["name"]
                case "function_call_output":
                    results.append((named.get(item["call_id"], ""), text_of(item["output"])))
                case "message" if item["role"] == "user":
                    prompt, results = text_of(item["content"]), []
        tools = [tool for tool in body.get("tools") or [] if tool.get("type") == "function"]
        offered = [Tool(name=tool["name"], schema=tool.get("parameters") or {}) for tool in tools]
        forced = str(choice.get("name", "")) if isinstance(choice := body.get("tool_choice"), dict) else ""
        return Asked(prompt=prompt, tools=tuple(offered), results=tuple(results), forced=forced)

    def answer(self, request: Request, step: Step) -> Answer:
        """Return the response that `step` describes."""
        output = self._output(request, step)
        shell = _shell(request, step)
        whole = {**shell, "output": output, "usage": _usage(request, step, output)}
        whole = _failed(whole, Failure.SERVER) if step.end == Ending.FAILED else {**whole, **_status(step)}
        if request.body.get("store") is not False:
            if len(self._stored) >= _STORED_MAX:
                del self._stored[next(iter(self._stored))]
            self._stored[str(whole["id"])] = [*self._items(request.body), *output]
        return Answer(whole=lambda: encode(whole), events=lambda: _numbered(_events(shell, whole)))

    def stream_error(self, failure: Failure, request: Request, events: Sequence[str]) -> str:
        """Return an `error` event, or `response.failed` where the server itself gave up."""
        error = json.loads(self.refuse(failure, request).body)["error"]
        number = len(events)
        event: dict[str, Any]
        if failure is Failure.SERVER:
            event = {"type": "response.failed", "response": _failed(_shell(request, Step()), failure)}
        else:
            event = {"type": "error", "code": error["code"], "message": error["message"], "param": None}
        return _sse({**event, "sequence_number": number})

    def _output(self, request: Request, step: Step) -> list[Mapping[str, Any]]:
        output: list[Mapping[str, Any]] = []
        for at, thinking in enumerate(step.thinking):
            name = drawn("rs_", request.seed, at)
            summary = (
                [] if thinking.redacted or not thinking.text else [{"type": "summary_text", "text": thinking.text}]
            )
            sealed = name + "".join(part["text"] for part in summary)
            encrypted = thinking.seal or seal(sealed)
            self.given.keep_seal(encrypted, sealed)
            item: dict[str, Any] = {"id": name, "type": "reasoning", "summary": summary, "encrypted_content": encrypted}
            if request.body.get("store") is not False:
                bare = {key: value for key, value in item.items() if key != "encrypted_content"}
                self.given.keep_whole(bare)
            output.append(item)
        reasoning = list(output)
        ends_here = step.end in (Ending.END, Ending.REFUSAL)
        if step.text or step.refusal is not None:
            output.append(_message(request, step, phase="final_answer" if ends_here else "commentary"))
        for block in step.blocks:
            self.given.keep_whole(block)
            output.append(block)
        for at, call in enumerate(step.calls):
            call_id = call.call_id or drawn("call_", request.seed, at)
            self.given.keep_before(call_id, reasoning)
            last = at + 1 == len(step.calls)
            output.append(
                {
                    "id": drawn("fc_", request.seed, at),
                    "type": "function_call",
                    "call_id": call_id,
                    "name": call.name,
                    "arguments": arguments_text(call.arguments),
                    "status": "incomplete" if last and step.end == Ending.LENGTH else "completed",
                }
            )
        return output


def _reply(fault: Fault) -> HttpReply:
    error = {"message": fault.message, "type": "invalid_request_error", "param": fault.param, "code": fault.code}
    return json_reply(fault.status, {"error": error})


def _shell(request: Request, step: Step) -> dict[str, Any]:
    """Return the response as it is before anything was said."""
    body = request.body
    return {
        "id": drawn("resp_", request.seed),
        "object": "response",
        "created_at": _CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": step.served_model or request.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "store": body.get("store", True),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "truncation": body.get("truncation", "disabled"),
        "usage": None,
        "metadata": {},
    }


def _status(step: Step) -> dict[str, Any]:
    if step.end in (Ending.END, Ending.TOOLS, Ending.REFUSAL):
        return {"status": "completed"}
    if step.end in _REASONS:
        return {"status": "incomplete", "incomplete_details": {"reason": _REASONS[step.end]}}
    if isinstance(step.end, Ending):
        return {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return {"status": "incomplete", "incomplete_details": {"reason": step.end}}


def _failed(response: Mapping[str, Any], failure: Failure) -> dict[str, Any]:
    error = json.loads(failures.openai(failure, "").body)["error"]
    return {**response, "status": "failed", "error": {"code": error["code"], "message": error["message"]}}


def _message(request: Request, step: Step, *, phase: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if step.text:
        parts.append({"type": "output_text", "text": step.text, "annotations": [], "logprobs": []})
    if step.refusal is not None:
        parts.append({"type": "refusal", "refusal": step.refusal})
    name = drawn("msg_", request.seed)
    return {"id": name, "type": "message", "role": "assistant", "status": "completed", "phase": phase, "content": parts}


def _usage(request: Request, step: Step, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    figures = step.figures
    read, written = figures.cache_read_tokens or 0, figures.cache_write_tokens or 0
    fresh = request.tokens if figures.input_tokens is None else figures.input_tokens
    said = tokens_of(encode(list(output))) if figures.output_tokens is None else figures.output_tokens
    thought = sum(tokens_of(thinking.text) for thinking in step.thinking)
    reasoning = thought if figures.reasoning_tokens is None else figures.reasoning_tokens
    return {
        "input_tokens": fresh + read + written,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": fresh + read + written + said,
    }


def _events(shell: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": shell}
    yield {"type": "response.in_progress", "response": shell}
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": _begun(item)}
        at["item_id"] = item.get("id", "")
        match kind_of(item):
            case "message":
                for place, part in enumerate(item["content"]):
                    yield from _part_events({**at, "content_index": place}, part)
            case "reasoning":
                for place, part in enumerate(item["summary"]):
                    yield from _summary_events({**at, "summary_index": place}, part)
            case "function_call":
                name = "response.function_call_arguments"
                for piece in pieces(item["arguments"]):
                    yield {"type": f"{name}.delta", **at, "delta": piece}
                yield {"type": f"{name}.done", **at, "name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _begun(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an item as it is announced: empty, and without its encrypted content, which only `done` brings."""
    match kind_of(item):
        case "message":
            return {**item, "content": [], "status": "in_progress"}
        case "reasoning":
            return {**item, "summary": [], "encrypted_content": None}
        case "function_call":
            return {**item, "arguments": "", "status": "in_progress"}
    return item


def _part_events(at: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    field = "text" if part["type"] == "output_text" else "refusal"
    name = f"response.{part['type']}"
    more: dict[str, Any] = {"logprobs": []} if field == "text" else {}
    yield {"type": "response.content_part.added", **at, "part": {**part, field: ""}}
    for piece in pieces(part[field]):
        yield {"type": f"{name}.delta", **at, "delta": piece, **more}
    yield {"type": f"{name}.done", **at, field: part[field], **more}
    yield {"type": "response.content_part.done", **at, "part": part}


def _summary_events(at: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    name = "response.reasoning_summary"
    yield {"type": f"{name}_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": f"{name}_text.delta", **at, "delta": piece}
    yield {"type": f"{name}_text.done", **at, "text": part["text"]}
    yield {"type": f"{name}_part.done", **at, "part": part}


def _numbered(events: Iterator[dict[str, Any]]) -> list[str]:
    return [_sse({**event, "sequence_number": number}) for number, event in enumerate(events)]


def _sse(event: Mapping[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {encode(event)}\n\n"
