"""The engine `panel`: several engines judge the same, and the middle of what they say counts. Disagreement is told."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from geode.canonical import content_hash
from geode.clock import Clock, rfc3339
from geode.llm.errors import BudgetReached
from judges.engine import JudgeEngine
from judges.judgment import Asked, Judgment, NoValue, Unscored, Value, entry_of, no_value
from judges.rubric import Dimension, Rubric, Scale
from judges.view import EpisodeView

NAME: Final = "panel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How opinions become one.

    Attributes:
        quorum: a dimension that fewer members have a value for has none; None is a majority of the members.
        spread_max: opinions that lie further apart, as a share of the dimension's range, are noted as a disagreement;
            of a flag or a choice it is the share of the members that were outvoted.
    """

    quorum: int | None = None
    spread_max: float = 0.25


class Panel:
    """Implements `JudgeEngine`. Scores have the median of the members, flags and choices the value of the majority.

    A tie of the most frequent values is no value. `Asked.engine` names the member.

    Raises:
        ValueError: if there are fewer than two members, or the quorum is none of their numbers.
    """

    def __init__(self, members: Mapping[str, JudgeEngine], clock: Clock, rule: Rule | None = None) -> None:
        rule = rule or Rule()
        if len(members) < 2:
            raise ValueError("a panel has at least two members")
        quorum = len(members) // 2 + 1 if rule.quorum is None else rule.quorum
        if not 1 <= quorum <= len(members):
            raise ValueError(f"the quorum {quorum} is not between 1 and the {len(members)} members")
        self._members, self._clock, self._quorum, self._spread_max = dict(members), clock, quorum, rule.spread_max

    @property
    def name(self) -> str:
        """See `JudgeEngine.name`."""
        return NAME

    @property
    def engine_id(self) -> str:
        """See `JudgeEngine.engine_id`."""
        members = [[name, member.engine_id] for name, member in self._members.items()]
        return content_hash([NAME, members, self._quorum, self._spread_max])[:12]

    @property
    def models(self) -> tuple[str, ...]:
        """See `JudgeEngine.models`."""
        return tuple(dict.fromkeys(model for member in self._members.values() for model in member.models))

    def question_set(self, rubric: Rubric) -> str:
        """See `JudgeEngine.question_set`."""
        return content_hash([[name, member.question_set(rubric)] for name, member in self._members.items()])[:12]

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """See `JudgeEngine.judge`. Members are asked one after the other: episodes are what is judged side by side."""
        given: dict[str, Judgment] = {}
        broke = ""
        for name, member in self._members.items():
            try:
                given[name] = await member.judge(view, rubric, repetition=repetition)
            except BudgetReached as reached:
                if not any(judgment.asked for judgment in given.values()):
                    raise
                broke = str(reached)
                break
            if broke := given[name].cut_by:
                break
        notes = [f"{name}: {note}" for name, judgment in given.items() for note in judgment.notes]
        entries: dict[str, Value | NoValue] = {}
        for dimension in rubric.dimensions:
            if broke:
                # A panel that lacks members for want of money would say another thing when there is some.
                entries[dimension.name] = no_value(Unscored.INFRASTRUCTURE, broke)
                continue
            opinions = {name: judgment.dimensions[dimension.name] for name, judgment in given.items()}
            entries[dimension.name] = self._joined(dimension, opinions)
            notes += self._told(dimension, opinions)
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=NAME,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions=entries,
            asked=tuple(_asked(given)),
            notes=tuple(notes),
            cut_by=broke,
            at=rfc3339(self._clock.now()),
        )

    def _joined(self, dimension: Dimension, opinions: Mapping[str, Value | NoValue]) -> Value | NoValue:
        values = _values(opinions)
        if len(values) < self._quorum:
            why = Counter(entry.reason for entry in opinions.values() if isinstance(entry, NoValue)).most_common(1)
            reason = why[0][0] if why else Unscored.ABSTAINED
            return no_value(reason, f"{len(values)} of {len(opinions)} members have a value: {_shown(opinions)}")
        if dimension.scale is Scale.SCORE:
            return entry_of(dimension, median(values.values()), reason=_shown(opinions))
        (most, votes), *others = Counter(values.values()).most_common()
        if others and others[0][1] == votes:
            return no_value(Unscored.ABSTAINED, f"the members are split: {_shown(opinions)}")
        return entry_of(dimension, most, reason=_shown(opinions))

    def _told(self, dimension: Dimension, opinions: Mapping[str, Value | NoValue]) -> Sequence[str]:
        values = list(_values(opinions).values())
        if len(values) < 2:
            return ()
        if dimension.scale is Scale.SCORE:
            spread = (max(values) - min(values)) / (dimension.highest - dimension.lowest)
        else:
            spread = 1 - Counter(values).most_common(1)[0][1] / len(values)
        if spread <= self._spread_max:
            return ()
        return (f"the members disagree on {dimension.name}: {_shown(opinions)}",)


def _values(opinions: Mapping[str, Value | NoValue]) -> dict[str, float]:
    return {name: entry.value for name, entry in opinions.items() if isinstance(entry, Value)}


def _shown(opinions: Mapping[str, Value | NoValue]) -> str:
    return ", ".join(
        f"{name} {f'{entry.value:g}' if isinstance(entry, Value) else entry.reason.value}"
        for name, entry in opinions.items()
    )


def _asked(given: Mapping[str, Judgment]) -> Sequence[Asked]:
    return [one.model_copy(update={"engine": name}) for name, judgment in given.items() for one in judgment.asked]
