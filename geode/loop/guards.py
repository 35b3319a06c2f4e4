"""What the hooks say of a prompt, a compaction, an answer and an end, in the words that the loop acts on.

A hook that is broken counts as the strictest answer of its point. Calls have their own hooks, in the executor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from geode.events import HookDecided
from geode.executor.told import decided
from geode.hooks.points import (
    AddContext,
    Block,
    Compacting,
    Continue,
    Escalate,
    HookEvent,
    HookPoint,
    PromptSubmitted,
    Repair,
    Stopping,
    TurnVerified,
    Verifying,
)
from geode.hooks.registry import Answer, HookRegistry
from geode.hooks.system import HookSystem
from geode.loop.verify import CheckOutcome, CompletionResult
from geode.records.checkpoint import Progress
from geode.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the hooks make of a prompt: what the model also reads, or why the prompt is blocked."""

    contexts: tuple[str, ...] = ()
    blocked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objections:
    """What stands against an answer: what is to be repaired, and why it cannot be."""

    repairs: tuple[str, ...] = ()
    escalations: tuple[str, ...] = ()

    def __add__(self, other: "Objections") -> "Objections":
        return Objections(repairs=(*self.repairs, *other.repairs), escalations=(*self.escalations, *other.escalations))


class LoopGuards:
    """Asks the hooks of one session at the points of its loop, and reports what they said."""

    def __init__(self, registry: HookRegistry, observers: HookSystem, redactor: Redactor) -> None:
        self._registry, self._observers, self._redact = registry, observers, redactor.redact
        self._redactor = redactor

    async def prompt(self, text: str, progress: Progress) -> Admission:
        """Ask UserPromptSubmit."""
        contexts: list[str] = []
        blocked = ""
        for answer in await self._asked(HookPoint.USER_PROMPT_SUBMIT, PromptSubmitted(text=text), progress):
            match answer.decision:
                case AddContext(text=context) if context.strip():
                    contexts.append(self._redact(context))
                case Block() | None:
                    blocked = blocked or _reason(answer)
        return Admission(contexts=tuple(contexts), blocked=self._redact(blocked))

    async def compaction(self, tokens: int, tokens_max: int, progress: Progress) -> str:
        """Ask PreCompact; return why nothing may be left out, or nothing."""
        event = Compacting(tokens=tokens, tokens_max=tokens_max)
        answers = await self._asked(HookPoint.PRE_COMPACT, event, progress)
        return next((self._redact(_reason(answer)) for answer in answers), "")

    async def before_check(self, answer: str, repairs_left: int, progress: Progress) -> Objections:
        """Ask PreVerify, which may spare the check an answer that it need not look at."""
        event = Verifying(answer=answer, repairs_left=repairs_left)
        return self._objections(await self._asked(HookPoint.PRE_VERIFY, event, progress))

    async def after_check(
        self, answer: str, check: CompletionResult, repairs_left: int, progress: Progress
    ) -> Objections:
        """Ask PostVerify; hooks can only add to what the check gave."""
        found = Objections(
            repairs=check.reasons if check.outcome is CheckOutcome.REPAIRABLE else (),
            escalations=check.reasons if check.outcome is CheckOutcome.FAILED else (),
        )
        event = TurnVerified(answer=answer, passed=check.passed, reasons=check.reasons, repairs_left=repairs_left)
        return found + self._objections(await self._asked(HookPoint.POST_VERIFY, event, progress))

    async def stop(self, answer: str, continuations_left: int, progress: Progress) -> Continue | str | None:
        """Ask Stop; return what to go on with, why the end is not verified, or nothing."""
        event = Stopping(answer=answer, verified=True, continuations_left=continuations_left)
        for said in await self._asked(HookPoint.STOP, event, progress):
            match said.decision:
                case Continue(instruction=instruction) if continuations_left > 0:
                    return Continue(instruction=self._redact(instruction))
                case None:
                    return self._redact(_reason(said))
        return None

    def _objections(self, answers: Sequence[Answer]) -> Objections:
        repairs, escalations = [], []
        for said in answers:
            match said.decision:
                case Repair(instruction=instruction):
                    repairs.append(self._redact(instruction))
                case Escalate() | None:
                    escalations.append(self._redact(_reason(said)))
        return Objections(repairs=tuple(repairs), escalations=tuple(escalations))

    async def _asked(self, point: HookPoint, event: HookEvent, progress: Progress) -> list[Answer]:
        answers = []
        for hook in self._registry.at(point):
            if answer := await self._registry.ask_one(hook, point, event):
                said: HookDecided = decided(answer, point, progress.turn, progress.round, self._redactor)
                self._observers.emit(said)
                answers.append(answer)
        return answers


def _reason(answer: Answer) -> str:
    if answer.broken:
        return f"the guard {answer.hook!r} is broken ({answer.problem})"
    return str(getattr(answer.decision, "reason", "")) or f"the hook {answer.hook!r} gave no reason"
