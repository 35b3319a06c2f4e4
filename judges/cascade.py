"""The engine `cascade`: cheap engines first; what they leave open, or are not certain of, goes on to the next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from geode.canonical import content_hash
from geode.clock import Clock, rfc3339
from geode.llm.errors import BudgetReached
from judges.engine import JudgeEngine, RubricRefused
from judges.judgment import Asked, Judgment, NoValue, Unscored, Value, no_value
from judges.rubric import Rubric
from judges.view import EpisodeView

NAME: Final = "cascade"
_Certainty = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Band(BaseModel):
    """Certainties, both ends included. A value without a certainty is in no band."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lowest: _Certainty = 0.0
    highest: _Certainty

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"the band {self.lowest:g} to {self.highest:g} is empty")
        return self

    def holds(self, entry: Value) -> bool:
        """Whether the certainty of `entry` is in it."""
        return entry.certainty is not None and self.lowest <= entry.certainty <= self.highest


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """An engine in a cascade. What it has no value for goes on, and what it values with a certainty in `escalate`."""

    name: str
    engine: JudgeEngine
    escalate: Band | None = None

    def decides(self, entry: Value | NoValue) -> bool:
        """Whether an entry of this stage stands, with others behind it."""
        return isinstance(entry, Value) and not (self.escalate is not None and self.escalate.holds(entry))


class Cascade:
    """Implements `JudgeEngine`. Each stage is asked only for the dimensions that those before it left open.

    The last stage decides what reaches it, with or without a value: no uncertain value of an earlier one stands.
    `Judgment.decided_by` names the stage of each dimension, `Asked.engine` that of each request.

    Raises:
        ValueError: if there is no stage, or a band for the last one, behind which there is nobody.
    """

    def __init__(self, stages: Sequence[Stage], clock: Clock) -> None:
        if not stages:
            raise ValueError("a cascade has at least one stage")
        if stages[-1].escalate is not None:
            raise ValueError(f"{stages[-1].name!r} is the last stage: there is nobody that it could escalate to")
        self._stages, self._clock = tuple(stages), clock

    @property
    def name(self) -> str:
        """See `JudgeEngine.name`."""
        return NAME

    @property
    def engine_id(self) -> str:
        """See `JudgeEngine.engine_id`."""
        bands = [stage.escalate and stage.escalate.model_dump() for stage in self._stages]
        parts = [[stage.name, stage.engine.engine_id] for stage in self._stages]
        return content_hash([NAME, parts, bands])[:12]

    @property
    def models(self) -> tuple[str, ...]:
        """See `JudgeEngine.models`."""
        return tuple(dict.fromkeys(model for stage in self._stages for model in stage.engine.models))

    def question_set(self, rubric: Rubric) -> str:
        """See `JudgeEngine.question_set`."""
        return content_hash([[stage.name, stage.engine.question_set(rubric)] for stage in self._stages])[:12]

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """See `JudgeEngine.judge`."""
        entries: dict[str, Value | NoValue] = {}
        decided_by: dict[str, str] = {}
        asked: list[Asked] = []
        notes: list[str] = []
        cut_by = ""
        for stage in self._stages:
            left = [dimension for dimension in rubric.dimensions if dimension.name not in decided_by]
            if cut_by:
                entries |= {d.name: no_value(Unscored.INFRASTRUCTURE, cut_by) for d in left}
            if not left or cut_by:
                break
            part = rubric.model_copy(update={"dimensions": tuple(left)})
            try:
                given: Judgment | None = await stage.engine.judge(view, part, repetition=repetition)
            except BudgetReached as reached:
                if not asked:
                    raise
                # What was paid for is kept on record; the whole episode is asked about again when there is money.
                cut_by = str(reached)
                entries |= {d.name: no_value(Unscored.INFRASTRUCTURE, cut_by) for d in left}
                break
            except RubricRefused as refused:
                # It speaks for the rubric as a whole, but for none of what is left of it.
                given = None
                entries |= {d.name: no_value(Unscored.ABSTAINED, str(refused)) for d in left}
            if given is not None:
                asked += [one.model_copy(update={"engine": stage.name}) for one in given.asked]
                entries |= given.dimensions
                cut_by = given.cut_by
                notes += [*(f"{stage.name}: {note}" for note in given.notes), *_failures(stage.name, given)]
            decided = left if stage is self._stages[-1] else [d for d in left if stage.decides(entries[d.name])]
            decided_by |= {dimension.name: stage.name for dimension in decided}
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=NAME,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions={d.name: entries[d.name] for d in rubric.dimensions},
            asked=tuple(asked),
            decided_by=decided_by,
            notes=tuple(notes),
            cut_by=cut_by,
            at=rfc3339(self._clock.now()),
        )


def _failures(stage: str, given: Judgment) -> Iterable[str]:
    """Tell of what a stage could not judge for a reason that is not the episode's: others judged it in its place."""
    failed = [
        entry.reason.value
        for entry in given.dimensions.values()
        if isinstance(entry, NoValue) and entry.reason is not Unscored.ABSTAINED
    ]
    return [f"{stage} had no value for {failed.count(reason)} dimensions: {reason}" for reason in dict.fromkeys(failed)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAccount:
    """What one stage did: how many items (a dimension of an episode) it decided, how many with a value, what it cost.

    `episodes` are those about which a model was asked. The cost is None if that of any request is unknown.
    """

    stage: str
    decided: int
    scored: int
    episodes: int
    requests: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeAccount:
    """What a cascade did and cost, and what its last stage alone would have cost for the same episodes.

    That is an estimate: the mean cost of an episode over those `rests_on` that the last stage was asked about, times
    all episodes; None where it was asked about none, or a cost is not known. Those that reached it were the hard ones,
    and it was asked for fewer dimensions of them than it would have been alone.
    """

    episodes: int
    stages: tuple[StageAccount, ...]
    cost_usd: float | None
    last_alone_usd: float | None
    rests_on: int

    def to_json(self) -> JsonValue:
        """Return it as JSON."""
        stages: list[JsonValue] = [
            {
                "stage": stage.stage,
                "decided": stage.decided,
                "scored": stage.scored,
                "episodes": stage.episodes,
                "requests": stage.requests,
                "cost_usd": stage.cost_usd,
            }
            for stage in self.stages
        ]
        return {
            "episodes": self.episodes,
            "stages": stages,
            "cost_usd": self.cost_usd,
            "last_alone_usd": self.last_alone_usd,
            "rests_on": self.rests_on,
        }


def account_of(judgments: Sequence[Judgment], stages: Sequence[str]) -> CascadeAccount:
    """Return the account of judgments of one cascade, whose stages are named in their order."""
    accounts = tuple(_of_stage(judgments, stage) for stage in stages)
    last = accounts[-1]
    mean = last.cost_usd / last.episodes if last.episodes and last.cost_usd is not None else None
    return CascadeAccount(
        episodes=len(judgments),
        stages=accounts,
        cost_usd=_sum([stage.cost_usd for stage in accounts]),
        last_alone_usd=None if mean is None else mean * len(judgments),
        rests_on=last.episodes,
    )


def _of_stage(judgments: Sequence[Judgment], stage: str) -> StageAccount:
    asked = [[one for one in judgment.asked if one.engine == stage and one.model] for judgment in judgments]
    decided = [
        judgment.dimensions[name] for judgment in judgments for name, by in judgment.decided_by.items() if by == stage
    ]
    return StageAccount(
        stage=stage,
        decided=len(decided),
        scored=sum(isinstance(entry, Value) for entry in decided),
        episodes=sum(bool(requests) for requests in asked),
        requests=sum(map(len, asked)),
        cost_usd=_sum([one.cost_usd for requests in asked for one in requests]),
    )


def _sum(costs: Sequence[float | None]) -> float | None:
    return None if None in costs else sum(cost for cost in costs if cost is not None)
