"""What OpenRouter and Z.ai refuse of a chat request, read from its body alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from geode.dev.fake_provider.given import Given
from geode.dev.fake_provider.wire import Body, canonical

_UNANSWERED: Final = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The"
    " following tool_call_ids did not have response messages: {ids}"
)
_UNASKED: Final = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
)
_ROLES: Final = ("system", "developer", "user", "assistant", "tool")


def tool_refusals(body: Body) -> Iterator[str]:
    """Say what is wrong with the turns: each call answered once, right behind it; the tools sent on every request."""
    messages: Sequence[Mapping[str, Any]] = body.get("messages", [])
    if not messages:
        yield "Input must have at least 1 token."
    waiting: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        yield from _alone(at, message)
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield _UNASKED
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield _UNANSWERED.replace("{ids}", ", ".join(waiting))
        calls = message.get("tool_calls") or []
        waiting = [call["id"] for call in calls]
        if twice := [call for call in waiting if call in seen or waiting.count(call) > 1]:
            yield f"messages.{at}.tool_calls: Duplicate tool call id {twice[0]!r}"
        seen.update(waiting)
    if waiting:
        yield _UNANSWERED.replace("{ids}", ", ".join(waiting))
    tools = body.get("tools") or []
    if seen and not tools:
        yield "Tools must be provided on each request of a conversation that holds tool calls."
    for at, tool in enumerate(tools):
        if tool.get("type") != "function" or not tool.get("function", {}).get("name"):
            yield f"tools.{at}: Invalid input: expected a function with a name"


def _alone(at: int, message: Mapping[str, Any]) -> Iterator[str]:
    role, content, calls = message["role"], message.get("content"), message.get("tool_calls") or []
    if role not in _ROLES:
        yield f"messages.{at}.role: Invalid value: {role!r}"
    if role != "assistant" and not isinstance(content, str | list):
        yield f"messages.{at}.content: Required"
    if role == "assistant" and not (calls or content):
        yield f"messages.{at}: content must not be empty"
    if calls and role != "assistant":
        yield f"messages.{at}: 'tool_calls' is only allowed for the role 'assistant'"
    if any(not isinstance(call["function"]["arguments"], str) for call in calls):
        yield f"messages.{at}.tool_calls: 'arguments' must be a string"


def ends_with_assistant(body: Body) -> bool:
    """Return whether the reply would have to go on with a text that is already there."""
    return bool(body["messages"][-1]["role"] == "assistant")


def details_lost(body: Body, given: Given) -> bool:
    """Return whether the `reasoning_details` that led to a call did not come back unchanged and in order."""
    for message, expected in _with_reasoning(body, given):
        came = tuple(canonical(item) for item in merged(message.get("reasoning_details") or []))
        if came != expected:
            return True
    return False


def reasoning_lost(body: Body, given: Given) -> bool:
    """Return whether the `reasoning_content` of the tool loop under way did not come back unchanged."""
    spoke = max((at for at, message in enumerate(body["messages"]) if message["role"] == "user"), default=0)
    under_way = {"messages": body["messages"][spoke:]}
    return any(
        (canonical(message.get("reasoning_content")),) != expected
        for message, expected in _with_reasoning(under_way, given)
    )


def _with_reasoning(body: Body, given: Given) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...]]]:
    for message in body["messages"]:
        calls = message.get("tool_calls") or []
        if calls and (expected := given.before(calls[0]["id"])):
            yield message, expected


def merged(details: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Join fragments of one detail as a stream delivers them; what came whole stays as it is."""
    joined: list[dict[str, Any]] = []
    for detail in details:
        last = joined[-1] if joined else None
        if (
            last
            and detail.get("type") == last.get("type") == "reasoning.text"
            and detail.get("index") == last.get("index")
        ):
            last |= {key: value for key, value in detail.items() if key != "text" and value is not None}
            last["text"] = (last.get("text") or "") + (detail.get("text") or "")
        else:
            joined.append(dict(detail))
    return joined


def zai_refusals(body: Body) -> Iterator[tuple[str, str]]:
    """Say what Z.ai refuses besides, with its business code."""
    messages = body.get("messages", [])
    if not any(message["role"] == "user" for message in messages):
        yield "1214", "messages parameter is illegal. At least one user message is needed."
    for name in ("max_completion_tokens", "stream_options", "frequency_penalty", "presence_penalty"):
        if name in body:
            yield "1210", f"{name} is not supported."
    if body.get("tool_choice", "auto") != "auto":
        yield "1210", "tool_choice supports auto only."
    for name in ("temperature", "top_p"):
        if name in body and not 0 < body[name] < 1:
            yield "1210", f"{name} must be in (0, 1)."
    if any("name" in message for message in messages):
        yield "1214", "messages parameter is illegal. `name` is not a field of a message."
    if any("strict" in tool.get("function", {}) for tool in body.get("tools") or []):
        yield "1210", "tools.function.strict is not supported."
    if (body.get("thinking") or {"type": "enabled"}).get("type") not in ("enabled", "disabled"):
        yield "1210", "thinking.type must be enabled or disabled."
