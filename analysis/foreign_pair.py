"""One foreign log beside another, paired by task and attempt: each score's difference, its interval, and the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from analysis.foreign import ForeignRun, Unit
from experiments.stats import (
    FAMILIES_NEEDED,
    Floats,
    Interval,
    family_intervals,
    mean_differences,
    sample_intervals,
    sign_test_p,
    simultaneous_intervals,
)

_SPREAD_MIN = 1e-9


class Level(StrEnum):
    """What the intervals speak of. Which one is a matter of the data: one pair a task has no error of its own."""

    ON_THESE_TASKS = "on these tasks"
    OVER_TASKS = "over tasks like these"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """An interval. Without a standard error it is the whole range of a difference, all that one pair leaves."""

    low: float
    high: float
    standard_error: float | None

    @property
    def side(self) -> int:
        """Return 1 above zero, -1 below, 0 if it holds zero."""
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMoved:
    """One task's means over its pairs in both logs."""

    task: str
    first: float
    second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """How pairs of passes and failures fell; `p` is of this score alone."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One score: second minus first, over the pairs that have a value in both.

    The means are over tasks, which weigh equally. `unscored` are paired attempts without a value that no error ended.
    `over_families` is the interval with each family as one observation.
    """

    score: str
    pairs: int
    tasks: int
    unscored_first: int
    unscored_second: int
    first: float | None
    second: float | None
    difference: float | None
    interval: Bounds | None
    over_families: Bounds | None
    mcnemar: McNemar | None
    better: tuple[TaskMoved, ...]
    worse: tuple[TaskMoved, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Which scores lie in [0, 1] whatever is measured, and which of them can only be 0 or 1."""

    shares: frozenset[str]
    passes_and_failures: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Two logs beside each other. What is in one only could not be paired, and is in no figure.

    `measured` pairs were ended by an error in neither log. `not_over_families` says why families tell nothing.
    """

    paired: int
    measured: int
    invalid_first: int
    invalid_second: int
    only_first: tuple[Unit, ...]
    only_second: tuple[Unit, ...]
    scores_only_first: tuple[str, ...]
    scores_only_second: tuple[str, ...]
    level: Level
    families: int
    not_over_families: str
    rows: tuple[ScoreRow, ...]


def pair_logs(first: ForeignRun, second: ForeignRun, scale: Scale, *, confidence: float) -> Paired:
    """Compare two logs that have a task and a score in common. The intervals hold for all scores together.

    Where every task has two pairs or more, and all values lie in [0, 1], the intervals are those of
    `simultaneous_intervals` and speak of these tasks. Otherwise a task is one observation, by its mean.
    """
    units = [unit for unit in first.attempts if unit in second.attempts]
    scores = [name for name in first.values if name in second.values]
    tasks = _by_task(first, second, units, scores)
    bounded = np.array([name in scale.shares for name in scores])
    level, intervals = _intervals(list(tasks.values()), bounded, confidence)
    families, over_families, why_not = _over_families(first, tasks, len(scores), confidence)
    ended = [{unit for unit in units if run.attempts[unit].invalid is not None} for run in (first, second)]
    return Paired(
        paired=len(units),
        measured=len(set(units) - ended[0] - ended[1]),
        invalid_first=len(ended[0]),
        invalid_second=len(ended[1]),
        only_first=tuple(sorted(first.attempts.keys() - second.attempts.keys())),
        only_second=tuple(sorted(second.attempts.keys() - first.attempts.keys())),
        scores_only_first=tuple(name for name in first.values if name not in second.values),
        scores_only_second=tuple(name for name in second.values if name not in first.values),
        level=level,
        families=families,
        not_over_families=why_not,
        rows=tuple(
            _row(
                name,
                first,
                second,
                units,
                binary=name in scale.passes_and_failures,
                interval=intervals[place],
                over_families=over_families[place],
            )
            for place, name in enumerate(scores)
        ),
    )


def _by_task(first: ForeignRun, second: ForeignRun, units: list[Unit], scores: list[str]) -> dict[str, Floats]:
    """Return second minus first: an array a task, a row a pair, a column a score, NaN where a value lacks."""
    rows: dict[str, list[list[float]]] = {}
    for unit in units:
        ends = [[run.values[name][unit] for name in scores] for run in (first, second)]
        values = np.array(ends, dtype=np.float64)  # None becomes NaN
        rows.setdefault(unit.task, []).append(list(values[1] - values[0]))
    return {task: np.array(found) for task, found in rows.items()}


def _intervals(
    tasks: list[Floats], bounded: NDArray[np.bool_], confidence: float
) -> tuple[Level, tuple[Bounds | None, ...]]:
    if bounded.all() and all((~np.isnan(task)).sum(axis=0).min() >= 2 for task in tasks):
        return Level.ON_THESE_TASKS, tuple(map(_bounds, simultaneous_intervals(tasks, confidence=confidence)))
    sample = np.stack([mean_differences([task]) for task in tasks])
    found: list[Bounds | None] = [None] * len(bounded)
    for kind in (True, False):
        columns = np.flatnonzero(bounded == kind)
        if len(columns):
            # Bonferroni's share of these columns, so that splitting by kind changes no interval.
            share = 1 - (1 - confidence) * len(columns) / len(bounded)
            intervals = sample_intervals(sample[:, columns], confidence=share, bounded=kind)
            for column, interval in zip(columns, intervals, strict=True):
                found[column] = _bounds(interval)
    for column in np.flatnonzero(bounded & ((~np.isnan(sample)).sum(axis=0) == 1)):
        found[column] = Bounds(low=-1.0, high=1.0, standard_error=None)
    return Level.OVER_TASKS, tuple(found)


def _bounds(interval: Interval | None) -> Bounds | None:
    if interval is None:
        return None
    return Bounds(low=interval.low, high=interval.high, standard_error=interval.standard_error)


def _over_families(
    first: ForeignRun, tasks: Mapping[str, Floats], scores: int, confidence: float
) -> tuple[int, tuple[Bounds | None, ...], str]:
    """Return how many families have pairs, each score's interval over them, and why there is none."""
    nothing: tuple[Bounds | None, ...] = (None,) * scores
    if not first.families:
        return 0, nothing, "the logs name no families"
    by_family: dict[str, list[Floats]] = {}
    for task, array in tasks.items():
        by_family.setdefault(first.families[task], []).append(array)
    if len(by_family) < FAMILIES_NEEDED:
        return len(by_family), nothing, f"{len(by_family)} families, {FAMILIES_NEEDED} needed"
    means = np.stack([mean_differences(arrays) for arrays in by_family.values()])
    if np.isnan(means).any():
        why = "a task has no measured pair, and leaving out its family would choose the sample by its result"
        return len(by_family), nothing, why
    if np.ptp(means, axis=0).max() < _SPREAD_MIN:
        return len(by_family), nothing, "all families differ by the same amount, which leaves no spread to judge by"
    return len(by_family), tuple(map(_bounds, family_intervals(means, confidence=confidence))), ""


def _row(
    name: str,
    first: ForeignRun,
    second: ForeignRun,
    units: Sequence[Unit],
    *,
    binary: bool,
    interval: Bounds | None,
    over_families: Bounds | None,
) -> ScoreRow:
    by_task: dict[str, list[tuple[float, float]]] = {}
    for unit in units:
        ends = first.values[name][unit], second.values[name][unit]
        if ends[0] is not None and ends[1] is not None:
            by_task.setdefault(unit.task, []).append((ends[0], ends[1]))
    means = [TaskMoved(task=task, first=_mean(p, 0), second=_mean(p, 1)) for task, p in sorted(by_task.items())]
    pairs = [pair for found in by_task.values() for pair in found]
    before = float(np.mean([task.first for task in means])) if means else None
    after = float(np.mean([task.second for task in means])) if means else None
    moved = sorted(means, key=lambda task: (-abs(task.second - task.first), task.task))
    return ScoreRow(
        score=name,
        pairs=len(pairs),
        tasks=len(means),
        unscored_first=_unscored(name, first, units),
        unscored_second=_unscored(name, second, units),
        first=before,
        second=after,
        difference=None if before is None or after is None else after - before,
        interval=interval,
        over_families=over_families,
        mcnemar=_mcnemar(pairs) if binary and pairs else None,
        better=tuple(task for task in moved if task.second > task.first),
        worse=tuple(task for task in moved if task.second < task.first),
    )


def _unscored(name: str, run: ForeignRun, units: Sequence[Unit]) -> int:
    return sum(run.values[name][unit] is None and run.attempts[unit].invalid is None for unit in units)


def _mean(pairs: list[tuple[float, float]], end: int) -> float:
    return float(np.mean([pair[end] for pair in pairs]))


def _mcnemar(pairs: list[tuple[float, float]]) -> McNemar:
    first, second = pairs.count((1.0, 0.0)), pairs.count((0.0, 1.0))
    return McNemar(
        both=pairs.count((1.0, 1.0)),
        only_first=first,
        only_second=second,
        neither=pairs.count((0.0, 0.0)),
        p=sign_test_p(second, first),
    )
