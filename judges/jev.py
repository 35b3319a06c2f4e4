"""The engine `jev`: a decision model answers every dimension in one request. It gives numbers, never a verdict.

A verdict needs a threshold that was fitted for this model and these questions (`judges.thresholds`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from pydantic import JsonValue

from geode.canonical import content_hash
from geode.clock import Clock, rfc3339
from geode.llm.chat_dialects import DIALECTS
from geode.llm.errors import BudgetReached, ContextTooLarge, ProviderError
from geode.llm.retry import Resending, RetryPolicy
from geode.llm.routes import Route
from geode.llm.spending import NoPurse, Purse, billed_for
from geode.llm.usage import Attempt, Usage
from geode.redaction import Redactor
from judges.jev_answers import AbstainBelow, entry_of_answer
from judges.jev_questions import Plan, Question, plan, question_set, questions_of, state_of
from judges.jev_wire import Decision, JevWire, bind_jev
from judges.judgment import Asked, Judgment, NoValue, Unscored, Value, no_value
from judges.rubric import Rubric
from judges.view import EpisodeView

NAME = "jev"
_VERSION = 1  # of the state's layout and of how answers are read: raise it with either
_TOO_LONG = "the episode leaves no room for this question, and is not cut"
_ANYTHING, _POLICY = AbstainBelow(), RetryPolicy()


def open_jev(
    model: str,
    environment: Mapping[str, str],
    clock: Clock,
    *,
    abstain_below: AbstainBelow = _ANYTHING,
    purse: Purse | None = None,
    redactor: Redactor | None = None,
    policy: RetryPolicy = _POLICY,
    allow_moving: bool = False,
) -> "Jev":
    """Return the engine that asks `model` (`route/id`).

    Args:
        model: see `judges.jev_wire.WAYS` for those that are pinned.
        environment: of the settings; where keys and addresses come from.
        clock: when a judgment was given.
        abstain_below: which certainty is too low for a value.
        purse: who is asked before each request.
        redactor: what keeps secrets out of the texts of errors.
        policy: how often a request is sent again.
        allow_moving: whether an id will do that leads to another model tomorrow.

    Raises:
        ConfigurationError: see `bind_jev`.
    """
    binding = bind_jev(model, environment, allow_moving=allow_moving)
    sending = Resending(policy=policy, purse=purse or NoPurse(), clock=clock)
    return Jev(JevWire(binding, redactor), sending, abstain_below)


@dataclass(slots=True)
class _Told:
    """What came of the requests for one episode so far."""

    entries: dict[str, Value | NoValue]
    asked: list[Asked] = field(default_factory=list)
    cut_by: str = ""


class Jev:
    """Implements `JudgeEngine`. All dimensions go in one request; equal requests are sent as often as they are asked.

    Args:
        wire: sends a request once.
        sending: sends it again where that helps; each episode has a budget of retries of its own.
        abstain_below: which certainty is too low for a value.
    """

    def __init__(self, wire: JevWire, sending: Resending, abstain_below: AbstainBelow = _ANYTHING) -> None:
        self._wire, self._sending, self._abstain_below = wire, sending, abstain_below

    @property
    def name(self) -> str:
        """See `JudgeEngine.name`."""
        return NAME

    @property
    def engine_id(self) -> str:
        """See `JudgeEngine.engine_id`."""
        return content_hash([NAME, _VERSION, self._wire.model, self._abstain_below.model_dump()])[:12]

    @property
    def models(self) -> tuple[str, ...]:
        """See `JudgeEngine.models`."""
        return (self._wire.model,)

    def question_set(self, rubric: Rubric) -> str:
        """See `JudgeEngine.question_set`."""
        return question_set(questions_of(rubric))

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """See `JudgeEngine.judge`."""
        questions, state = questions_of(rubric), state_of(view)
        planned = plan(state, questions)
        told = _Told({name: no_value(Unscored.TOO_LONG, _TOO_LONG) for name in planned.too_long})
        sending = replace(self._sending, budget=replace(self._sending.budget))
        for names in planned.requests:
            await self._ask(sending, state, {name: questions[name] for name in names}, rubric, told)
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=NAME,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=question_set(questions),
            repetition=repetition,
            dimensions={d.name: told.entries[d.name] for d in rubric.dimensions},
            asked=tuple(told.asked),
            notes=_notes(planned),
            cut_by=told.cut_by,
            at=rfc3339(self._sending.clock.now()),
        )

    async def _ask(
        self,
        sending: Resending,
        state: Mapping[str, JsonValue],
        questions: Mapping[str, Question],
        rubric: Rubric,
        told: _Told,
    ) -> None:
        """Send one request, and tell what came of it."""
        request = self._wire.request(state, questions)
        send = partial(self._wire.decide, request)
        try:
            decision, failed = await sending.answered(self._wire.model, self._wire.cost_usd_max(request), send)
        except BudgetReached as refusal:
            told.asked += map(self._attempted, refusal.attempts)
            if not told.asked:
                raise
            told.cut_by = str(refusal)
            told.entries |= dict.fromkeys(questions, no_value(Unscored.INFRASTRUCTURE, told.cut_by))
        except ProviderError as error:
            told.asked += [*map(self._attempted, error.attempts), self._failed(error)]
            told.entries |= dict.fromkeys(questions, no_value(_reason(error), str(error)))
        else:
            told.asked += [*map(self._attempted, failed), self._answered(decision)]
            for name, question in questions.items():
                entry = entry_of_answer(rubric.dimension(name), question, decision.answers, self._abstain_below)
                told.entries[name] = entry

    def _answered(self, decision: Decision) -> Asked:
        return self._asked(
            decision.usage,
            served_model=decision.served_model,
            request_id=decision.request_id,
            latency_ms=decision.latency_ms,
            reply=decision.reply,
        )

    def _attempted(self, attempt: Attempt) -> Asked:
        return self._asked(
            attempt.usage, request_id=attempt.request_id, latency_ms=attempt.elapsed_ms, failed=attempt.error
        )

    def _failed(self, error: ProviderError) -> Asked:
        return self._asked(
            billed_for(error),
            request_id=error.facts.request_id,
            failed=f"{type(error).__name__}: {error}",
            reply=error.facts.body,
        )

    def _asked(self, usage: Usage | None, **more: object) -> Asked:
        used = usage or Usage()
        return Asked.model_validate(
            {
                "engine": NAME,
                "model": self._wire.model,
                "input_tokens": used.input_tokens,
                "output_tokens": used.output_tokens,
                "cost_usd": used.cost_usd,
                "cost_origin": used.cost_origin,
                **more,
            }
        )


def _reason(error: ProviderError) -> Unscored:
    if isinstance(error, ContextTooLarge):
        return Unscored.TOO_LONG
    if {error.facts.type, error.facts.code} & DIALECTS[Route.OPENROUTER].refusals:
        return Unscored.REFUSED
    return Unscored.INFRASTRUCTURE


def _notes(planned: Plan) -> tuple[str, ...]:
    if len(planned.requests) < 2:
        return ()
    return (f"asked in {len(planned.requests)} requests: the questions are too long for one",)
