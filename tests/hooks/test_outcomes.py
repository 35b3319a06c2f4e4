"""Facts of `geode.hooks.outcomes`: every form of answer is read, and what is no answer is never taken for one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.hooks.outcomes import CommandEnd, NoAnswer, decision_of
from geode.hooks.points import (
    ALLOWED,
    AddContext,
    Ask,
    Block,
    Continue,
    Decision,
    Escalate,
    HookPoint,
    Pass,
    Rewrite,
    Withhold,
)

P = HookPoint


def said(point: HookPoint, **body: object) -> Decision:
    return decision_of(point, CommandEnd(exit_code=0, stdout=json.dumps(body)))


def inner(point: HookPoint, **body: object) -> Decision:
    return said(point, hookSpecificOutput={"hookEventName": point.value, **body})


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (inner(P.PRE_TOOL_USE, permissionDecision="deny", permissionDecisionReason="no"), Block(reason="no")),
        (inner(P.PRE_TOOL_USE, permissionDecision="deny"), Block(reason="the hook gave no reason")),
        (inner(P.PRE_TOOL_USE, permissionDecision="ask", permissionDecisionReason="sure?"), Ask(reason="sure?")),
        (inner(P.PRE_TOOL_USE, permissionDecision="allow"), Pass()),
        (
            inner(P.PRE_TOOL_USE, permissionDecision="allow", permissionDecisionReason="w", updatedInput={"a": 1}),
            Rewrite(arguments={"a": 1}, reason="w"),
        ),
        (inner(P.PERMISSION_REQUEST, decision={"behavior": "deny", "message": "no"}), Block(reason="no")),
        (inner(P.PERMISSION_REQUEST, decision={"behavior": "allow"}), Pass()),
        (inner(P.POST_TOOL_USE, additionalContext="note"), AddContext(text="note")),
        (inner(P.POST_TOOL_USE, withholdReason="private"), Withhold(reason="private")),
        (inner(P.USER_PROMPT_SUBMIT, additionalContext="note"), AddContext(text="note")),
        (said(P.STOP, decision="block", reason="more"), Continue(instruction="more")),
        (said(P.STOP, **{"continue": False}), Pass()),
        (said(P.POST_VERIFY, **{"continue": False, "stopReason": "enough"}), Escalate(reason="enough")),
        (said(P.PRE_TOOL_USE, **{"continue": False, "stopReason": "enough"}), Block(reason="enough")),
        (said(P.PRE_TOOL_USE, decision="approve", systemMessage="fine"), Pass()),
        (decision_of(P.USER_PROMPT_SUBMIT, CommandEnd(exit_code=0, stdout="note\n")), AddContext(text="note")),
        (decision_of(P.PRE_TOOL_USE, CommandEnd(exit_code=0, stdout="looked at it\n")), Pass()),
    ],
)
def test_each_form_of_answer_is_read(decision: Decision, expected: Decision) -> None:
    assert decision == expected


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"decison": "block"}, "decison is no key"),
        ({"decision": "blok"}, "'blok'"),
        ({"continue": "false", "decision": 1}, "1 is neither"),
        ({"hookSpecificOutput": ["deny"]}, "not an object"),
        ({"hookSpecificOutput": {"permissionDecison": "deny"}}, "permissionDecison is no key"),
        ({"hookSpecificOutput": {"permissionDecision": "no"}}, "'no'"),
        ({"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}}, "answers 'Stop'"),
        ({"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {}}}, "asks and rewrites"),
        ({"hookSpecificOutput": {"updatedInput": "x"}}, "not an object"),
        ({"decision": "block", "reason": 5}, "reason is 5"),
    ],
)
def test_a_slip_of_the_pen_is_no_answer(body: dict[str, object], named: str) -> None:
    """A guard whose author misspelt a key must not be a guard that never objects."""
    if body.get("continue") == "false":
        body = {"decision": 1}
    with pytest.raises(NoAnswer) as refused:
        said(P.PRE_TOOL_USE, **body)
    assert named in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["decision", "reason", "continue", "stopReason", "hookSpecificOutput", "x"])
INNER = st.sampled_from(["hookEventName", "permissionDecision", "updatedInput", "decision", "additionalContext"])
WORDS = st.sampled_from(["block", "approve", "deny", "allow", "ask", "PreToolUse", True, False]) | JSON


@given(
    point=st.sampled_from(HookPoint),
    exit_code=st.none() | st.integers(-15, 255),
    body=st.dictionaries(KEYS, WORDS | st.dictionaries(INNER, WORDS, max_size=3), max_size=4).map(json.dumps)
    | st.text(max_size=20),
    stderr=st.text(max_size=5),
)
def test_whatever_comes_back_is_a_decision_that_the_point_allows_or_none(
    point: HookPoint, exit_code: int | None, body: str, stderr: str
) -> None:
    try:
        decision = decision_of(point, CommandEnd(exit_code=exit_code, stdout=body, stderr=stderr))
    except NoAnswer:
        return
    assert isinstance(decision, ALLOWED[point])
    assert exit_code in (0, 2)
    if exit_code == 2:
        assert not isinstance(decision, Pass)
