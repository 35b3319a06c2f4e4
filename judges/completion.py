"""Any judge engine as the judge of the completion check: may this turn end? What has no value is never a pass."""

from collections.abc import Iterator, Sequence

from geode.llm.errors import BudgetReached
from geode.llm.messages import Message, Origin, TextBlock, ToolUse
from geode.loop.verify import CheckOutcome, CompletionResult, CompletionView
from judges.engine import JudgeEngine
from judges.judgment import Asked, Judgment, NoValue, Unscored, Value
from judges.rubric import Dimension, Rubric
from judges.session_view import steps_of
from judges.view import EpisodeView, Spent


class EngineCompletion:
    """Implements `geode.loop.verify.CompletionJudge`.

    An answer passes if every dimension has a value of at least the share `pass_at` of its range, 1 being the good end.
    One with less is repairable, and the agent reads the judge's reasons. One without a value fails: the judge could not
    be asked, or could not tell, and no repair would change that.

    Args:
        engine: who judges.
        rubric: by what.
        pass_at: the share that passes.
        target: `route/id` of whom it judges.

    Attributes:
        asked: every request so far, with its cost.
        down: why the judge could last not be asked, empty if it always could.
        out_of_money: the refusal of a request that a cap on spending did not allow, empty if there was none.
    """

    def __init__(self, engine: JudgeEngine, rubric: Rubric, *, pass_at: float, target: str) -> None:
        engine.question_set(rubric)  # what it refuses, it refuses before anything is asked
        self._engine, self._rubric, self._pass_at, self._target = engine, rubric, pass_at, target
        self.asked: list[Asked] = []
        self.down, self.out_of_money = "", ""

    @property
    def name(self) -> str:
        """See `CompletionJudge.name`."""
        return self._engine.name

    async def judge_completion(self, view: CompletionView) -> CompletionResult:
        """See `CompletionJudge.judge_completion`."""
        try:
            judgment = await self._engine.judge(shown_turn(view, self._target), self._rubric)
        except BudgetReached as refusal:
            self.out_of_money = str(refusal)
            raise
        self.asked += judgment.asked
        self.down = next(_infrastructure(judgment), self.down)
        unscored = [
            f"{self.name} gave no value for {name} ({entry.reason.value})."
            for name, entry in judgment.dimensions.items()
            if isinstance(entry, NoValue)
        ]
        if unscored:
            return CompletionResult(outcome=CheckOutcome.FAILED, reasons=tuple(unscored), by=self.name)
        low = [d for d in self._rubric.dimensions if judgment.scored[d.name].normalised < self._pass_at]
        if low:
            reasons = tuple(_reason(dimension, judgment.scored[dimension.name]) for dimension in low)
            return CompletionResult(outcome=CheckOutcome.REPAIRABLE, reasons=reasons, by=self.name)
        return CompletionResult(outcome=CheckOutcome.PASS, by=self.name)


def _infrastructure(judgment: Judgment) -> Iterator[str]:
    for entry in judgment.dimensions.values():
        if isinstance(entry, NoValue) and entry.reason is Unscored.INFRASTRUCTURE:
            yield entry.raw or "it did not say why"


def _reason(dimension: Dimension, value: Value) -> str:
    asked = f"{dimension.question} Judged {value.value:g} on {dimension.lowest} to {dimension.highest}"
    return f"{asked}: {value.reason}" if value.reason else f"{asked}."


def shown_turn(view: CompletionView, target: str) -> EpisodeView:
    """Return a turn as a judge sees it: from the user's last words on."""
    messages = view.messages[_begin(view.messages) :]
    prompt = next(
        (
            block.text
            for message in messages
            for block in message.blocks
            if isinstance(block, TextBlock) and block.origin is Origin.USER
        ),
        view.prompt,
    )
    return EpisodeView(
        episode="turn",
        task="",
        family="",
        target=target,
        system="",
        prompt=prompt,
        answer=view.answer,
        steps=tuple(steps_of(messages, {})),
        spent=Spent(rounds=sum(any(isinstance(b, TextBlock | ToolUse) for b in m.blocks) for m in messages[1::2])),
    )


def _begin(messages: Sequence[Message]) -> int:
    from_user = (
        at
        for at in range(len(messages) - 1, -1, -1)
        if any(isinstance(block, TextBlock) and block.origin is Origin.USER for block in messages[at].blocks)
    )
    return next(from_user, 0)
