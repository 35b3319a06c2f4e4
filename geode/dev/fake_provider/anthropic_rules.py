"""What the Messages API refuses, read from a request's body alone: what stands on the wire, not what a loop believes.

The rules are those of its public documentation (version 2026-10-21): parameters that are gone, roles, results right
behind their calls and before any text, ids and names of the allowed form, each id once, nothing empty, reasoning back
unchanged, an end that the model can answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from geode.dev.fake_provider.given import Given
from geode.dev.fake_provider.wire import Body, canonical, words

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MESSAGES_MAX: Final = 100_000
_BREAKPOINTS_MAX: Final = 4
_OUTPUT_MAX: Final = 128_000
_PARAMETERS: Final = words(
    "model messages max_tokens cache_control container diagnostics inference_geo metadata output_config service_tier"
    " speed stop_sequences stream system thinking tool_choice tools user_profile_id workspace_id"
)
_ALWAYS_THINKING: Final = re.compile(r"claude-(fable-5|opus-5-5)")
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_OWNERS: Final = {
    **dict.fromkeys(("image", "document", "search_result", "tool_result"), "user"),
    **dict.fromkeys(("tool_use", "thinking", "redacted_thinking"), "assistant"),
}
_REASONING: Final = ("thinking", "redacted_thinking")
_UNANSWERED: Final = "`tool_use` ids were found without `tool_result` blocks immediately after"
_MUST_ANSWER: Final = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
_UNCHANGED: Final = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must"
    " remain as they were in the original response."
)


def refusals(body: Body, given: Given | None = None) -> list[str]:
    """Return why the Messages API would refuse this body, the first reason first; nothing if it would not.

    Args:
        body: the parsed JSON of the request.
        given: what was given out before and has to come back unchanged.
    """
    given = given or Given()
    messages: Sequence[Mapping[str, Any]] = body.get("messages", [])
    return [*_parameters(body), *_turns(messages, given), *_reasoning(messages, given), *_tools(body, messages)]


def _parameters(body: Body) -> Iterator[str]:
    for name in ("model", "messages", "max_tokens"):
        if name not in body:
            yield f"{name}: Field required"
    yield from (f"{name}: Extra inputs are not permitted" for name in body if name not in _PARAMETERS)
    most = body.get("max_tokens", 1)
    if not isinstance(most, int) or most < 0:
        yield "max_tokens: Input should be greater than or equal to 0"
    elif most > _OUTPUT_MAX:
        yield (
            f"max_tokens: {most} > {_OUTPUT_MAX}, which is the maximum allowed number of output tokens for"
            f" {body.get('model')}"
        )
    effort = body.get("output_config", {}).get("effort", "high")
    if effort not in _EFFORTS:
        yield f"output_config.effort: Input should be {', '.join(map(repr, _EFFORTS))}"
    yield from _thinking_parameter(body)
    marked = _count_breakpoints(body)
    if marked > _BREAKPOINTS_MAX:
        yield f"A maximum of {_BREAKPOINTS_MAX} blocks with cache_control may be provided. Found {marked}."


def _thinking_parameter(body: Body) -> Iterator[str]:
    thinking, forced = body.get("thinking"), body.get("tool_choice", {}).get("type") in ("any", "tool")
    if thinking is None:
        return
    match thinking.get("type"):
        case "enabled":
            budget = thinking.get("budget_tokens")
            if not isinstance(budget, int) or budget < 1024:
                yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
            elif budget >= body.get("max_tokens", 0):
                yield "`max_tokens` must be greater than `thinking.budget_tokens`."
            if forced:
                yield "Thinking may not be enabled when tool_choice forces tool use."
        case "disabled":
            if _ALWAYS_THINKING.match(str(body.get("model"))):
                yield f"thinking.type: 'disabled' is not supported on {body.get('model')}"
        case "adaptive" | "between_tools":
            pass
        case other:
            yield f"thinking: Input tag {other!r} found using 'type' does not match any of the expected tags"


def _count_breakpoints(body: Body) -> int:
    places: list[Mapping[str, Any]] = [body, *body.get("tools", [])]
    if isinstance(body.get("system"), list):
        places += body["system"]
    for message in body.get("messages", []):
        if isinstance(message["content"], list):
            places += message["content"]
    return sum(1 for place in places if place.get("cache_control"))


def _turns(messages: Sequence[Mapping[str, Any]], given: Given) -> Iterator[str]:
    if not messages or len(messages) > _MESSAGES_MAX:
        yield "messages: at least one message is required"
        return
    if messages[0]["role"] != "user":
        yield "messages: first message must use the user role"
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        where, role, content = f"messages.{at}", message["role"], blocks_of(message)
        if role not in ("user", "assistant"):
            yield f"{where}.role: Input should be 'user' or 'assistant'"
        if not content:
            yield f"{where}: content must not be empty"
        for place, block in enumerate(content):
            yield from _block(f"{where}.content.{place}", role, block, given)
        yield from _answers(at, content, waiting)
        waiting = [block["id"] for block in content if block["type"] == "tool_use"]
        if twice := [call for call in waiting if call in seen or waiting.count(call) > 1]:
            yield f"{where}: `tool_use` ids must be unique: {twice[0]}"
        seen.update(waiting)
    if waiting:
        yield f"messages.{len(messages) - 1}: {_UNANSWERED}: {', '.join(waiting)}. {_MUST_ANSWER}"
    elif messages[-1]["role"] == "assistant" and not given.is_whole(messages[-1]["content"]):
        yield (
            "This model does not support assistant message prefill (a prefilled assistant message). The conversation"
            " must end with a user message."
        )


def _answers(at: int, content: Sequence[Mapping[str, Any]], waiting: Sequence[str]) -> Iterator[str]:
    where = f"messages.{at}"
    answers = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if missing := [call for call in waiting if call not in answers]:
        yield f"messages.{at - 1}: {_UNANSWERED}: {', '.join(missing)}. {_MUST_ANSWER}"
    for answer in dict.fromkeys(answers):
        if answer not in waiting:
            yield (
                f"{where}.content.{answers.index(answer)}: unexpected `tool_use_id` found in `tool_result` blocks:"
                f" {answer}. Each `tool_result` block must have a corresponding `tool_use` block in the previous"
                " message."
            )
        elif answers.count(answer) > 1:
            yield (
                f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks with id:"
                f" {answer}"
            )
    if any(block["type"] != "tool_result" for block in content[: len(answers)]):
        yield f"{where}: `tool_result` blocks must come first"


def blocks_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the content of a message as blocks, also where it is written as a string."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _block(place: str, role: str, block: Mapping[str, Any], given: Given) -> Iterator[str]:
    kind = block["type"]
    if (owner := _OWNERS.get(kind, role)) != role:
        yield f"{place}: `{kind}` blocks are of the {owner} role"
    match kind:
        case "thinking" | "redacted_thinking":
            yield from _seal(place, block, given)
        case "text":
            if not block["text"].strip():
                yield f"{place}: text content blocks must be non-empty"
            if role == "user" and block.get("citations"):
                yield f"{place}.citations: Extra inputs are not permitted"
        case "tool_use":
            if not _CALL_ID.fullmatch(block["id"]):
                yield f"{place}.id: string should match pattern '^[a-zA-Z0-9_-]+$'"
            if not isinstance(block["input"], dict):
                yield f"{place}.input: input should be a valid dictionary"
        case "tool_result":
            content = block.get("content", "")
            if not (content.strip() if isinstance(content, str) else content):
                yield f"{place}: content must not be empty"
        case other if other not in _OWNERS and not given.is_whole(block):
            yield f"{place}.type: unknown {other!r}: Input tag does not match any of the expected tags"


def _seal(place: str, block: Mapping[str, Any], given: Given) -> Iterator[str]:
    if block["type"] == "redacted_thinking":
        if not given.is_sealed(block["data"], ""):
            yield f"{place}: Invalid `data` in `redacted_thinking` block"
    elif not given.is_sealed(block["signature"], block["thinking"]):
        yield f"{place}: Invalid `signature` in `thinking` block"


def _reasoning(messages: Sequence[Mapping[str, Any]], given: Given) -> Iterator[str]:
    """Within the tool loop that is under way, each turn must come back with the reasoning that led to its calls."""
    loop_starts = max(
        (
            at
            for at, message in enumerate(messages)
            if message["role"] == "user" and not any(block["type"] == "tool_result" for block in blocks_of(message))
        ),
        default=0,
    )
    for at, message in enumerate(messages):
        content = blocks_of(message)
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if at < loop_starts or not calls or not given.before(calls[0]):
            continue
        came = tuple(canonical(block) for block in content if block["type"] in _REASONING)
        if came != given.before(calls[0]):
            yield f"messages.{at}.content.0: {_UNCHANGED}"


def _tools(body: Body, messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = [tool["name"] for tool in body.get("tools", [])]
    for at, tool in enumerate(body.get("tools", [])):
        if not _NAME.fullmatch(tool["name"]):
            pattern = "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
            yield f"tools.{at}.name: {tool['name']!r} is not allowed: {pattern}"
        if "type" not in tool and tool.get("input_schema", {}).get("type") != "object":
            yield f"tools.{at}.custom.input_schema.type: Field required"
    if len(set(names)) != len(names):
        yield "tools: Tool names must be unique."
    if not names and any(block["type"] in ("tool_use", "tool_result") for m in messages for block in blocks_of(m)):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools."
    choice = body.get("tool_choice")
    if choice and choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"Tool {choice.get('name')!r} not found in provided tools"
    if choice and not names:
        yield "tool_choice may only be specified while providing tools."
