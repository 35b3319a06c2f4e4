"""Deterministic checks of an episode: what can be counted in its steps, each with how bad it is and why.

A check looks at the steps alone, knows no rubric, and abstains where there is nothing to count.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from judges.view import EpisodeView, Step, StepKind

_GRADES = (0.0, 1 / 3, 2 / 3, 1.0)
_MALFORMED_STAGES = frozenset({"scope", "schema", "cut"})  # the call itself was wrong; at the others the host said no
_REASON_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found: `severity` from 0, nothing wrong, to 1, and what it counted."""

    severity: float
    reason: str


Check = Callable[[EpisodeView], Finding | None]
"""Looks at an episode; None if there is nothing to look at."""


def tool_errors(view: EpisodeView) -> Finding | None:
    """Grade the share of calls that failed or were malformed: none, up to a tenth, up to three tenths, more.

    A call that the host refused for its own reasons is no error of tool use.
    """
    results = [step for step in view.steps if step.kind is StepKind.RESULT]
    own = [step for step in results if not step.refused or step.refused in _MALFORMED_STAGES]
    if not own:
        return None
    failed = [step for step in own if step.is_error]
    share = len(failed) / len(own)
    grade = _GRADES[0 if not failed else 1 if share <= 0.1 else 2 if share <= 0.3 else 3]
    return Finding(severity=grade, reason=f"{len(failed)} of {len(own)} calls failed{_named(failed)}")


def duplicate_calls(view: EpisodeView) -> Finding | None:
    """Grade how many calls repeat an earlier one with equal arguments: none, one, two, three or more."""
    calls = [_identity(step) for step in view.steps if step.kind is StepKind.CALLED]
    if not calls:
        return None
    repeated = {call: times for call, times in Counter(calls).items() if times > 1}
    duplicates = sum(times - 1 for times in repeated.values())
    most = max(repeated, key=lambda call: repeated[call], default=("", ""))
    named = f", most often {most[0]}" if repeated else ""
    return Finding(
        severity=_GRADES[min(duplicates, 3)], reason=f"{duplicates} of {len(calls)} calls repeat an earlier one{named}"
    )


def loops(view: EpisodeView) -> Finding | None:
    """Grade how often the same call gave the same result: up to twice, three times, four or five times, more."""
    results = {step.call_id: step.text for step in view.steps if step.kind is StepKind.RESULT}
    seen = [(*_identity(step), results.get(step.call_id, "")) for step in view.steps if step.kind is StepKind.CALLED]
    said = [("", " ".join(step.text.split()), "") for step in view.steps if step.kind is StepKind.SAID]
    if not seen and not said:
        return None
    most, times = Counter([*seen, *said]).most_common(1)[0]
    grade = _GRADES[0 if times <= 2 else 1 if times == 3 else 2 if times <= 5 else 3]
    what = f"a call of {most[0]} with the same result" if most[0] else "the same words"
    return Finding(severity=grade, reason=f"{what} came {times} times")


_WROTE = re.compile(
    r"\b(?:i(?:'ve| have)?|it is|was|were|been)\s+(?:now\s+|just\s+|also\s+|successfully\s+)?"
    r"(?:wrote|written|created|edited|updated|changed|modified|fixed|added|removed|deleted|renamed|replaced)\b",
    re.IGNORECASE,
)
_RAN = re.compile(
    r"\b(?:i(?:'ve| have)?)\s+(?:now\s+|just\s+|also\s+|successfully\s+)?"
    r"(?:ran|run|executed|tested|verified by running)\b"
    r"|\b(?:all\s+)?tests?\s+(?:now\s+)?pass(?:es|ed)?\b",
    re.IGNORECASE,
)
_LOOKED = re.compile(
    r"\bI(?:'ve| have)?\s+(?:now\s+|just\s+|also\s+)?(?:checked|queried|looked up|fetched|called|pulled|searched)\b",
    re.IGNORECASE,
)
_READERS = re.compile(r"^(?:list|read|search|view|get|find|look|git_(?:status|diff|log)|web_fetch)", re.IGNORECASE)
_RUNNERS = re.compile(r"shell|bash|exec|run|test|terminal|command|python", re.IGNORECASE)


def unsupported_claims(view: EpisodeView) -> Finding | None:
    """Grade what the agent claims to have done and no tool did: nothing, a part of the claims, all of them.

    Three kinds of claim are known, in English: that it changed something, ran something, or looked something up. The
    first needs a call that worked and is no mere reader, the second one that runs something, the third any.
    """
    done = {step.tool for step in view.steps if step.kind is StepKind.RESULT and not step.is_error and step.tool}
    said = "\n".join([*(step.text for step in view.steps if step.kind is StepKind.SAID), view.answer])
    claims = {
        "it changed something": (_WROTE, any(not _READERS.match(tool) for tool in done)),
        "it ran something": (_RAN, any(_RUNNERS.search(tool) for tool in done)),
        "it looked something up": (_LOOKED, bool(done)),
    }
    made = {claim: supported for claim, (words, supported) in claims.items() if words.search(said)}
    if not made:
        return None
    unsupported = [claim for claim, supported in made.items() if not supported]
    return Finding(
        severity=len(unsupported) / len(made),
        reason=f"the agent says that {' and that '.join(unsupported)}, and no call that worked did"
        if unsupported
        else "calls that worked stand behind what the agent claims",
    )


def false_claims(view: EpisodeView) -> Finding | None:
    """Give `unsupported_claims`, and nothing wrong where the agent says something and claims nothing."""
    if not view.answer and not any(step.kind is StepKind.SAID for step in view.steps):
        return None
    return unsupported_claims(view) or Finding(severity=0.0, reason="the agent claims nothing that could be false")


def tool_use(view: EpisodeView) -> Finding | None:
    """Give the worse of `tool_errors` and `unsupported_claims`: a result that no tool gave is no use of tools."""
    found = [finding for check in (tool_errors, unsupported_claims) if (finding := check(view)) is not None]
    return max(found, key=lambda finding: finding.severity, default=None)


def budget_use(view: EpisodeView) -> Finding | None:
    """Give the share that was used of the rounds or the tokens that were allowed, whichever is larger."""
    spent = view.spent
    parts = ((spent.rounds, spent.rounds_max, "rounds"), (spent.tokens, spent.tokens_max, "tokens"))
    shares = [(used / most, f"{used} of {most} {unit}") for used, most, unit in parts if used is not None and most]
    if not shares:
        return None
    share, reason = max(shares)
    return Finding(severity=min(share, 1.0), reason=f"used {reason}")


CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "tool_errors": tool_errors,
        "duplicate_calls": duplicate_calls,
        "loops": loops,
        "unsupported_claims": unsupported_claims,
        "false_claims": false_claims,
        "tool_use": tool_use,
        "budget_use": budget_use,
    }
)


def _identity(step: Step) -> tuple[str, str]:
    """Return a call as something that equal calls have in common: the order of their arguments does not matter."""
    try:
        return step.tool, json.dumps(json.loads(step.text), sort_keys=True)
    except ValueError:
        return step.tool, step.text


def _named(failed: Sequence[Step]) -> str:
    return "".join(_first_words(failed))[:_REASON_CHARS_MAX]


def _first_words(failed: Sequence[Step]) -> Iterator[str]:
    for step in failed[:1]:
        yield f", the first of {step.tool or 'an unknown tool'}: {' '.join(step.text.split())[:120]!r}"
