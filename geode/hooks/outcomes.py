"""What the end of a hook's command means at each point. Pure: it runs nothing.

A command that ends with 0 says what it has to say as one JSON object on stdout, or nothing; with 2 it objects, and
stderr is the reason. Everything else is no answer: the hook is broken, and the point's strictest answer counts, unless
the hook's own entry says `on_error: allow`. The JSON is that of hooks for Claude Code, as publicly documented.

    point              objects (exit 2, or JSON)        broken (any other end)
    UserPromptSubmit   the prompt is blocked            blocked
    PreToolUse         the call is blocked              blocked
    PermissionRequest  refused, nobody is asked         refused
    PostToolUse        the model reads the reason too   the true result, and a warning
    PreCompact         nothing is left out              nothing is left out
    PreVerify          the answer is sent back          escalated
    PostVerify         the answer is sent back          escalated
    Stop               the turn goes on once more       not verified

`allow` never lifts what policy, a rule or another hook says: it is no opinion.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from pydantic import JsonValue

from geode.hooks.points import (
    AddContext,
    Ask,
    Block,
    Continue,
    Decision,
    Escalate,
    HookPoint,
    Pass,
    Repair,
    Rewrite,
    Withhold,
)

OBJECTS = 2
"""The exit code by which a command objects."""

_NO_REASON = "the hook gave no reason"
_KEYS = frozenset({"continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason"})
_INNER = "hookSpecificOutput"
_INNER_KEYS: Mapping[HookPoint, frozenset[str]] = {
    HookPoint.USER_PROMPT_SUBMIT: frozenset({"additionalContext"}),
    HookPoint.PRE_TOOL_USE: frozenset({"permissionDecision", "permissionDecisionReason", "updatedInput"}),
    HookPoint.PERMISSION_REQUEST: frozenset({"decision"}),
    HookPoint.POST_TOOL_USE: frozenset({"additionalContext", "withholdReason"}),
}
_EVENT_NAME = "hookEventName"


class NoAnswer(Exception):  # noqa: N818  (named by what is missing)
    """The command ended without saying anything that its point knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a hook's command ended. A negative exit code is a signal's number; None means that its time ran out.

    `too_long` says that it wrote more than it may; it was then stopped.
    """

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    too_long: bool = False


def decision_of(point: HookPoint, end: CommandEnd) -> Decision:
    """Return what the command said.

    Raises:
        NoAnswer: saying what is wrong with how it ended.
    """
    if end.too_long:
        raise NoAnswer("it wrote more than a hook may")
    if end.exit_code is None:
        raise NoAnswer("it did not end in time")
    if end.exit_code < 0:
        raise NoAnswer(f"signal {-end.exit_code} ended it")
    if end.exit_code == OBJECTS:
        return _objection(point, end.stderr.strip() or _NO_REASON)
    if end.exit_code != 0:
        said = f" ({end.stderr.strip()})" if end.stderr.strip() else ""
        raise NoAnswer(f"it ended with exit code {end.exit_code}{said}")
    said = end.stdout.strip()
    if not said.startswith("{"):
        # Text on stdout is the prompt's context, and elsewhere for whoever looks at the hook.
        is_context = point is HookPoint.USER_PROMPT_SUBMIT and said
        return AddContext(text=said) if is_context else Pass()
    return _answer(point, _parsed(said))


def _parsed(text: str) -> dict[str, JsonValue]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoAnswer(f"its output is not one JSON object ({error})") from error
    assert isinstance(body, dict)  # it begins with a brace
    return body


def _answer(point: HookPoint, body: dict[str, JsonValue]) -> Decision:
    inner = body.pop(_INNER, {})
    if not isinstance(inner, dict):
        raise NoAnswer(f"{_INNER} is {inner!r:.80}, not an object")
    inner = dict(inner)
    if (named := inner.pop(_EVENT_NAME, point.value)) != point.value:
        raise NoAnswer(f"it answers {named!r:.80}, and {point} was asked")
    for where, unknown in (
        ("", body.keys() - _KEYS),
        (f"{_INNER}.", inner.keys() - _INNER_KEYS.get(point, frozenset())),
    ):
        if unknown:
            # A misspelt "decision" would otherwise be a guard that never objects.
            raise NoAnswer(f"{where}{min(unknown)} is no key that {point} knows")
    if body.get("continue", True) is not True:
        return _end(point, _text(body, "stopReason"))
    match body.get("decision"):
        case "block" | "deny":
            return _objection(point, _text(body, "reason") or _NO_REASON)
        case None | "approve" | "allow":
            return _inner_answer(point, inner)
    raise NoAnswer(f"decision {body['decision']!r:.80} is neither 'block' nor 'approve'")


def _inner_answer(point: HookPoint, inner: dict[str, JsonValue]) -> Decision:
    match point:
        case HookPoint.PRE_TOOL_USE:
            return _call_answer(inner)
        case HookPoint.PERMISSION_REQUEST:
            return _permission_answer(inner)
        case HookPoint.POST_TOOL_USE if "withholdReason" in inner:
            return Withhold(reason=_text(inner, "withholdReason") or _NO_REASON)
        case HookPoint.POST_TOOL_USE | HookPoint.USER_PROMPT_SUBMIT if text := _text(inner, "additionalContext"):
            return AddContext(text=text)
    return Pass()


def _call_answer(inner: dict[str, JsonValue]) -> Decision:
    reason = _text(inner, "permissionDecisionReason") or _NO_REASON
    rewritten = inner.get("updatedInput")
    if rewritten is not None and not isinstance(rewritten, dict):
        raise NoAnswer(f"updatedInput is {rewritten!r:.80}, not an object")
    match inner.get("permissionDecision"):
        case "deny":
            return Block(reason=reason)
        case "ask" | "defer" if rewritten is None:
            return Ask(reason=reason)
        case None | "allow":
            return Pass() if rewritten is None else Rewrite(arguments=rewritten, reason=reason)
        case "ask" | "defer":
            raise NoAnswer(
                "it asks and rewrites at once; rewrite with 'allow': what is to be asked about is asked then"
            )
    raise NoAnswer(f"permissionDecision {inner['permissionDecision']!r:.80} is not allow, ask or deny")


def _permission_answer(inner: dict[str, JsonValue]) -> Decision:
    decision = inner.get("decision")
    if decision is None:
        return Pass()
    behaviour = decision.get("behavior") if isinstance(decision, dict) else None
    if behaviour == "allow":
        return Pass()
    if behaviour == "deny" and isinstance(decision, dict):
        return Block(reason=_text(decision, "message") or _NO_REASON)
    raise NoAnswer(f"decision {decision!r:.80} has no behavior of allow or deny")


def _objection(point: HookPoint, reason: str) -> Decision:
    match point:
        case (
            HookPoint.USER_PROMPT_SUBMIT | HookPoint.PRE_TOOL_USE | HookPoint.PERMISSION_REQUEST | HookPoint.PRE_COMPACT
        ):
            return Block(reason=reason)
        case HookPoint.POST_TOOL_USE:
            return AddContext(text=reason)
        case HookPoint.PRE_VERIFY | HookPoint.POST_VERIFY:
            return Repair(instruction=reason)
        case HookPoint.STOP:
            return Continue(instruction=reason)
    assert_never(point)


def _end(point: HookPoint, reason: str) -> Decision:
    """Return what comes nearest to "the agent stops here": nothing further begins, and nothing counts as verified."""
    match point:
        case HookPoint.STOP:
            return Pass()
        case HookPoint.PRE_VERIFY | HookPoint.POST_VERIFY:
            return Escalate(reason=reason or _NO_REASON)
        case _:
            return _objection(point, reason or _NO_REASON)


def _text(body: Mapping[str, JsonValue], key: str) -> str:
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise NoAnswer(f"{key} is {value!r:.80}, not text")
    return value or ""
