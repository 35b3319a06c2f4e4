"""The completion check: may this turn end? Built-in rules first, then the judge that was selected, if any."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from geode.llm.messages import Message
from geode.redaction import clean_text


class CheckOutcome(StrEnum):
    """What a check says of an answer."""

    PASS = "pass"  # noqa: S105  (not a password)
    REPAIRABLE = "repairable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionResult:
    """The immutable answer of a completion check. Reasons are empty for a pass; for the others the model reads them."""

    outcome: CheckOutcome
    reasons: tuple[str, ...] = ()
    by: str = "rules"

    @property
    def passed(self) -> bool:
        """Whether the turn may end."""
        return self.outcome is CheckOutcome.PASS


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionView:
    """What a check sees: what was asked, what was answered, and which effects nobody knows the end of.

    `prompt` is shortened; `messages` is the whole conversation, the answer included.
    """

    prompt: str
    answer: str
    uncertain_effects: tuple[str, ...]
    messages: tuple[Message, ...] = ()


class CompletionJudge(Protocol):
    """A judge engine in the loop.

    It may raise: a judge that is down is no pass, and the answer is delivered as not verified.
    """

    @property
    def name(self) -> str:
        """The engine's name, as the result reports it."""
        ...

    async def judge_completion(self, view: CompletionView) -> CompletionResult:
        """Judge one answer."""
        ...


async def verify_turn_async(view: CompletionView, judges: Sequence[CompletionJudge] = ()) -> CompletionResult:
    """Check an answer by the rules, then by each judge until one does not pass it."""
    if not view.answer.strip():
        return CompletionResult(outcome=CheckOutcome.REPAIRABLE, reasons=("The answer is empty.",))
    if view.uncertain_effects:
        reasons = tuple(f"Whether {effect} took effect is unknown." for effect in view.uncertain_effects)
        return CompletionResult(outcome=CheckOutcome.FAILED, reasons=reasons)
    result = CompletionResult(outcome=CheckOutcome.PASS)
    for judge in judges:
        try:
            result = _sound(await judge.judge_completion(view), judge.name)
        except Exception as error:  # noqa: BLE001  (a judge is foreign code; one that is down is no pass)
            reason = clean_text(f"The judge {judge.name} is down ({type(error).__name__}: {error}).")
            return CompletionResult(outcome=CheckOutcome.FAILED, reasons=(reason,), by=judge.name)
        if not result.passed:
            return result
    return result


def _sound(result: object, judge: str) -> CompletionResult:
    """Return a judge's result with clean reasons; one that does not pass always has a reason to tell."""
    if not isinstance(result, CompletionResult) or not isinstance(result.outcome, CheckOutcome):
        raise TypeError(f"it answered {result!r:.200}")
    reasons = tuple(clean_text(reason) for reason in result.reasons if reason.strip())
    if not reasons and not result.passed:
        reasons = (f"The judge {judge} did not accept the answer, and gave no reason.",)
    return replace(result, reasons=reasons)
