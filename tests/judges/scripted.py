"""An engine that says what a test wants, and remembers what it was asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from geode.llm.errors import BudgetReached
from judges.engine import RubricRefused
from judges.judgment import Asked, Judgment, NoValue, Unscored, Value, entry_of, no_value
from judges.rubric import Rubric
from judges.view import EpisodeView


def sure(value: float, certainty: float | None = None) -> tuple[float, float | None]:
    """A value with a certainty."""
    return value, certainty


Said = float | tuple[float, float | None] | Unscored


@dataclass
class Scripted:
    """Implements `JudgeEngine`. What it says of a dimension is a value, one with a certainty, or why it has none.

    Each request costs `cost_usd`; without a model it asks nobody.
    """

    says: Mapping[str, Said]
    name: str = "scripted"
    model: str = ""
    cost_usd: float | None = 0.01
    out_of_money: bool = False
    cut_by: str = ""
    refuses: str = ""
    notes: tuple[str, ...] = ()
    asked_for: list[tuple[str, ...]] = field(default_factory=list)
    views: list[EpisodeView] = field(default_factory=list)

    @property
    def engine_id(self) -> str:
        return f"id-{self.name}"

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model,) if self.model else ()

    def question_set(self, rubric: Rubric) -> str:
        return f"{self.name}-{rubric.rubric_id}"

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        names = tuple(dimension.name for dimension in rubric.dimensions)
        if self.out_of_money:
            raise BudgetReached("no money is left")
        if self.refuses and self.refuses not in names:
            raise RubricRefused(f"it speaks for {self.refuses} alone")
        self.asked_for.append(names)
        self.views.append(view)
        asked = (Asked(engine=self.name, model=self.model, cost_usd=self.cost_usd),) if self.model else ()
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=self.name,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions={d.name: self._entry(rubric, d.name) for d in rubric.dimensions},
            asked=asked,
            notes=self.notes,
            cut_by=self.cut_by,
        )

    def _entry(self, rubric: Rubric, name: str) -> Value | NoValue:
        said = self.says.get(name, Unscored.ABSTAINED)
        if isinstance(said, Unscored):
            return no_value(said)
        value, certainty = said if isinstance(said, tuple) else (said, None)
        return entry_of(rubric.dimension(name), value, certainty=certainty, reason=f"{self.name} says so")
