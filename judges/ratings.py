"""What several judges said of the same transcripts, put side by side: what is missing is counted and stays missing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from judges.judgment import Judgment, NoValue, Unscored, Value
from judges.resampling import Figure, Floats, Resampling, Rows, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """One judge and all that it said, under one rubric and one set of questions. The name is what people call it."""

    name: str
    judgments: tuple[Judgment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Episodes that every judge was shown alike, with what each said: a row an episode, a column a judge.

    Where a judge was asked several times, the first answer counts: an average would make it look more reliable than
    it is. `left_out` counts episodes that cannot be compared, by the reason.
    """

    judges: tuple[str, ...]
    episodes: tuple[str, ...]
    families: tuple[str, ...]
    said: tuple[tuple[Judgment, ...], ...]
    left_out: Mapping[str, int]

    def values(self, dimension: str) -> Floats:
        """Return a row a judge, a column an episode; NaN where there is no value."""
        rows = [[_value(judgment, dimension) for judgment in row] for row in self.said]
        return np.array(rows, dtype=np.float64).reshape(len(self.episodes), len(self.judges)).T


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """How a judge used a dimension: the mean is over scored episodes alone, and says beside it how many are not."""

    judge: str
    scored: int
    unscored: Mapping[Unscored, int]
    mean: Figure


def rate(judges: Sequence[Judge], families: Mapping[str, str]) -> Ratings:
    """Put judges side by side, by episode.

    Args:
        judges: two or more, each with judgments of one kind.
        families: the family of each episode; what is not in it is left out.

    Raises:
        ValueError: if two judges have one name, or one of them gave an answer twice for the same repetition.
    """
    names = tuple(judge.name for judge in judges)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]!r} is named twice; agreement is between different judges")
    first = [first_answers(judge) for judge in judges]
    left_out: Counter[str] = Counter()
    kept: dict[str, tuple[Judgment, ...]] = {}
    for episode in sorted({episode for answers in first for episode in answers}):
        row = [answers[episode] for answers in first if episode in answers]
        if why := _why_left_out(episode, row, len(judges), families):
            left_out[why] += 1
        else:
            kept[episode] = tuple(row)
    return Ratings(
        judges=names,
        episodes=tuple(kept),
        families=tuple(families[episode] for episode in kept),
        said=tuple(kept.values()),
        left_out=dict(left_out),
    )


def scored(ratings: Ratings, dimension: str, how: Resampling) -> tuple[Scored, ...]:
    """Say for each judge how many episodes it scored, why others are not, and the mean over those that are."""
    return tuple(_scored(ratings, place, dimension, how) for place in range(len(ratings.judges)))


def _scored(ratings: Ratings, place: int, dimension: str, how: Resampling) -> Scored:
    values = ratings.values(dimension)[place]
    given = np.flatnonzero(~np.isnan(values))
    return Scored(
        judge=ratings.judges[place],
        scored=len(given),
        unscored=dict(Counter(_unscored(ratings, place, dimension))),
        mean=estimate(
            partial(_mean, values[given]),
            [ratings.families[row] for row in given],
            how,
            undefined="nothing is scored",
        ),
    )


def _mean(values: Floats, rows: Rows) -> float:
    return float(values[rows].mean())


def _unscored(ratings: Ratings, place: int, dimension: str) -> Iterator[Unscored]:
    for row in ratings.said:
        entry = row[place].dimensions.get(dimension)
        if not isinstance(entry, Value):
            yield entry.reason if isinstance(entry, NoValue) else Unscored.MISSING


def first_answers(judge: Judge) -> Mapping[str, Judgment]:
    """Return what a judge said of each episode, of several repetitions the first.

    Raises:
        ValueError: if it gave an answer twice for one repetition.
    """
    by_place: dict[tuple[str, int], Judgment] = {}
    for judgment in judge.judgments:
        place = judgment.episode, judgment.repetition
        if place in by_place:
            raise ValueError(f"{judge.name!r} has two judgments of {judgment.episode!r} for one repetition: which one?")
        by_place[place] = judgment
    firsts: dict[str, Judgment] = {}
    for episode, repetition in sorted(by_place):
        firsts.setdefault(episode, by_place[episode, repetition])
    return firsts


def _why_left_out(episode: str, row: Sequence[Judgment], judges: int, families: Mapping[str, str]) -> str:
    if len(row) < judges:
        return "not judged by all"
    if len({judgment.view_digest for judgment in row}) > 1:
        return "shown to the judges in different forms"
    if len({judgment.rubric_id for judgment in row}) > 1:
        return "judged under different rubrics"
    return "" if episode in families else "of no known family"


def _value(judgment: Judgment, dimension: str) -> float:
    entry = judgment.dimensions.get(dimension)
    return entry.value if isinstance(entry, Value) else float("nan")
