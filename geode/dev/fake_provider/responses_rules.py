"""What the Responses API refuses, read from a request's body and from what was given out before."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from geode.dev.fake_provider.given import Given
from geode.dev.fake_provider.wire import Body, canonical, words

_PARAMETERS: Final = words(
    "model input stream access_programs background background_options context_management conversation include"
    " instructions max_output_tokens max_tool_calls metadata moderation parallel_tool_calls previous_response_id prompt"
    " prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store"
    " stream_options temperature text tool_choice tools top_logprobs top_p truncation user"
)
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OUTPUT_MIN: Final = 16
_NOT_BY_SUBSCRIPTION: Final = ("max_output_tokens", "temperature", "top_p", "previous_response_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong: the message, the parameter that it is about, a code, and a status."""

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400


def parameter_faults(body: Body) -> Iterator[Fault]:
    """Say what is wrong with anything but the input items."""
    for name in body:
        if name not in _PARAMETERS:
            yield Fault(message=f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    if "input" not in body and "previous_response_id" not in body:
        yield Fault(message="Missing required parameter: 'input'.", param="input", code="missing_required_parameter")
    most = body.get("max_output_tokens")
    if most is not None and most < _OUTPUT_MIN:
        yield Fault(
            message=f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_OUTPUT_MIN}, but"
            f" got {most} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    if body.get("previous_response_id") and body.get("conversation"):
        yield Fault(message="Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")
    effort = (body.get("reasoning") or {}).get("effort") or "medium"
    if effort not in _EFFORTS:
        yield Fault(
            message=f"Invalid value: '{effort}'. Supported values are: {', '.join(map(repr, _EFFORTS))}.",
            param="reasoning.effort",
            code="invalid_value",
        )
    yield from _tool_faults(body)


def _tool_faults(body: Body) -> Iterator[Fault]:
    names = []
    for at, tool in enumerate(body.get("tools") or []):
        if tool.get("type") != "function":
            continue
        for name in ("name", "parameters", "strict"):
            if name not in tool:
                where = f"tools[{at}].{name}"
                yield Fault(
                    message=f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter"
                )
        names.append(tool.get("name"))
        if not _NAME.fullmatch(str(tool.get("name"))):
            message = (
                f"Invalid 'tools[{at}].name': string does not match pattern. Expected a string that matches the pattern"
                " '^[a-zA-Z0-9_-]+$'."
            )
            yield Fault(message=message, param=f"tools[{at}].name", code="invalid_value")
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "function" and choice.get("name") not in names:
        yield Fault(message=f"Tool choice '{choice.get('name')}' not found in 'tools' parameter.", param="tool_choice")


def items_of(body: Body) -> list[Mapping[str, Any]]:
    """Return the input as items, also where it is a string."""
    given = body.get("input", [])
    return [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else list(given)


def kind_of(item: Mapping[str, Any]) -> str:
    """Return the type of an item; one with a role and no type is a message."""
    return str(item.get("type", "message" if "role" in item else ""))


def item_faults(items: Sequence[Mapping[str, Any]], body: Body, given: Given) -> Iterator[Fault]:
    """Say what is wrong with the items: calls answered once and in place, reasoning back, nothing that was not kept."""
    if not items:
        yield Fault(message="Input must not be empty.", param="input")
    waiting: list[str] = []
    called: set[str] = set()
    answered: set[str] = set()
    for at, item in enumerate(items):
        match kind_of(item):
            case "function_call":
                if item["call_id"] in called:
                    yield Fault(message=f"Duplicate function call with call_id {item['call_id']}.", param="input")
                if not isinstance(item["arguments"], str):
                    yield Fault(message=f"Invalid type for 'input[{at}].arguments': expected a string.", param="input")
                waiting.append(item["call_id"])
                called.add(item["call_id"])
            case "function_call_output":
                yield from _output_fault(item, called, answered)
                answered.add(item["call_id"])
                waiting = [call for call in waiting if call != item["call_id"]]
            case "message" if item["role"] != "assistant" and waiting:
                yield _unanswered(waiting[0])
            case "message" | "reasoning":
                pass
            case other if not given.is_whole(item):
                message = f"Invalid value: '{other}'. It is no type of an input item."
                yield Fault(message=message, param=f"input[{at}].type", code="invalid_value")
    if waiting:
        yield _unanswered(waiting[0])
    if called and not body.get("tools"):
        yield Fault(message="Tools must be provided when the input holds function calls.", param="tools")
    yield from _reasoning_faults(items, body, given)


def _output_fault(item: Mapping[str, Any], called: set[str], answered: set[str]) -> Iterator[Fault]:
    call_id = item["call_id"]
    if call_id not in called:
        message = f"No tool call found for function call output with call_id {call_id}."
        yield Fault(message=message, param="input")
    if call_id in answered:
        yield Fault(message=f"Duplicate function call output with call_id {call_id}.", param="input")
    if not isinstance(item.get("output"), str | list):
        yield Fault(message="Missing required parameter: 'input.output'.", param="input")


def _unanswered(call_id: str) -> Fault:
    return Fault(message=f"No tool output found for function call {call_id}.", param="input")


def _reasoning_faults(items: Sequence[Mapping[str, Any]], body: Body, given: Given) -> Iterator[Fault]:
    before: list[str] = []
    for at, item in enumerate(items):
        match kind_of(item):
            case "reasoning":
                yield from _sealed_fault(item, body, given)
                before.append(canonical(item))
                if at + 1 == len(items) or kind_of(items[at + 1]) == "function_call_output":
                    message = (
                        f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
                    )
                    yield Fault(message=message, param="input")
            case "function_call":
                expected = given.before(item["call_id"])
                if expected and tuple(before[-len(expected) :]) != expected:
                    message = (
                        f"Item '{item.get('id')}' of type 'function_call' was provided without its required 'reasoning'"
                        " item, unchanged and in order."
                    )
                    yield Fault(message=message, param="input")


def _sealed_fault(item: Mapping[str, Any], body: Body, given: Given) -> Iterator[Fault]:
    sealed, name = item.get("encrypted_content"), str(item.get("id"))
    if sealed is None:
        if body.get("store") is False or not given.is_whole(item):
            yield Fault(
                message=f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try"
                " again with `store` set to true, or remove this item from your input.",
                param="input",
                status=404,
            )
    elif not given.is_sealed(sealed, name + "".join(part["text"] for part in item["summary"])):
        yield Fault(
            message=f"The encrypted content {sealed[:12]}... could not be verified. Reason: Encrypted content could not"
            " be decrypted or parsed.",
            code="invalid_encrypted_content",
        )


def subscription_fault(body: Body) -> str | None:
    """Return what the ChatGPT plan's side refuses, which has error bodies of its own."""
    if body.get("store") is not False:
        return "Store must be set to false"
    if body.get("stream") is not True:
        return "Stream must be set to true"
    if not body.get("instructions"):
        return "Instructions are required"
    return next((f"Unsupported parameter: {name}" for name in _NOT_BY_SUBSCRIPTION if name in body), None)
