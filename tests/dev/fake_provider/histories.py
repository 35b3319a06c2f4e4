"""The same question to each wire of the OpenAI SDK, and the history in which its calls were answered."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import openai

from geode.llm.routes import Route

Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A reply in words that no wire owns, and the items or the message that have to come back."""

    text: str
    ending: str
    calls: list[tuple[str, str, str]]
    back: list[dict[str, Any]]
    model: str
    usage: Any


MODELS = {
    Route.OPENAI: "gpt-6-sol",
    Route.OPENAI_CODEX: "gpt-6-sol",
    Route.OPENROUTER: "google/gemini-3-pro",
    Route.ZAI: "glm-5.3",
}
IS_CHAT = (Route.OPENROUTER, Route.ZAI)


def question(route: Route) -> dict[str, Any]:
    """Return a sound request with one tool."""
    function = {"name": "read_file", "description": "Read.", "parameters": {"type": "object", "properties": {}}}
    if route in IS_CHAT:
        tools = [{"type": "function", "function": function}]
        return {"model": MODELS[route], "messages": [{"role": "user", "content": "go"}], "tools": tools}
    return {
        "model": MODELS[route],
        "instructions": "Be good.",
        "input": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "strict": False, **function}],
        "store": False,
    }


def ask(client: openai.OpenAI, route: Route, wanted: dict[str, Any], *, stream: bool = False) -> Told:
    """Ask through the SDK."""
    if route in IS_CHAT:
        return _chat_stream(client, wanted) if stream else _chat(client.chat.completions.create(**wanted))
    if not stream:
        return _response(client.responses.create(**wanted))
    *_, last = client.responses.create(**wanted, stream=True)
    return _response(last.response)


def answered(wanted: dict[str, Any], told: Told) -> dict[str, Any]:
    """Return the request that goes on with the results of all calls."""
    ids = [call_id for call_id, _, _ in told.calls]
    if "messages" in wanted:
        results = [{"role": "tool", "tool_call_id": call_id, "content": "text"} for call_id in ids]
        return {**wanted, "messages": [*wanted["messages"], *told.back, *results]}
    results = [{"type": "function_call_output", "call_id": call_id, "output": "text"} for call_id in ids]
    return {**wanted, "input": [*wanted["input"], *told.back, *results]}


def _chat(reply: Any) -> Told:
    choice = reply.choices[0]
    message = choice.message
    return Told(
        text=message.content or "",
        ending=choice.finish_reason,
        calls=[(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []],
        back=[message.model_dump(exclude_none=True)],
        model=reply.model,
        usage=reply.usage,
    )


def _chat_stream(client: openai.OpenAI, wanted: dict[str, Any]) -> Told:
    """Put a message together from its chunks, fragments of reasoning as they came."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: list[dict[str, Any]] = []
    ending, model, usage = "", "", None
    for chunk in client.chat.completions.create(**wanted, stream=True):
        model, usage = chunk.model, chunk.usage or usage
        for choice in chunk.choices:
            delta = choice.delta
            message["content"] += delta.content or ""
            ending = choice.finish_reason or ending
            more = delta.model_extra or {}
            if "reasoning_content" in more:
                message["reasoning_content"] = message.get("reasoning_content", "") + more["reasoning_content"]
            if "reasoning_details" in more:
                message.setdefault("reasoning_details", []).extend(more["reasoning_details"])
            for call in delta.tool_calls or []:
                if call.id:
                    function = {"name": call.function.name, "arguments": ""}
                    calls.append({"id": call.id, "type": "function", "function": function})
                calls[call.index]["function"]["arguments"] += call.function.arguments
    if calls:
        message["tool_calls"] = calls
    told = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
    return Told(text=message["content"], ending=ending, calls=told, back=[message], model=model, usage=usage)


def _response(reply: Any) -> Told:
    reason = reply.incomplete_details.reason if reply.incomplete_details else ""
    return Told(
        text=reply.output_text,
        ending=f"{reply.status} {reason}".strip(),
        calls=[(item.call_id, item.name, item.arguments) for item in reply.output if item.type == "function_call"],
        back=[item.to_dict() for item in reply.output],
        model=reply.model,
        usage=reply.usage,
    )
