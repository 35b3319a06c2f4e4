"""Two foreign logs, paired by task and attempt: the difference of each dimension, and how much could not be paired."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from analysis.foreign import ForeignRun, LogsRefused, Unit
from experiments.stats import (
    Floats,
    Interval,
    mean_differences,
    sample_intervals,
    sign_test_p,
    simultaneous_intervals,
)

LOGS_SCHEMA = "geode.comparison_of_logs/1"
NOT_SIDE_BY_SIDE = "the two did not run side by side: what changed in between is in the difference"


class Level(StrEnum):
    """What the intervals speak of. Which one is a matter of the data: one pair a task has no error of its own."""

    ON_THESE_TASKS = "on these tasks"
    OVER_TASKS = "over tasks like these"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMoved:
    """One task's means over its pairs in both logs."""

    task: str
    first: float
    second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionRow:
    """One dimension: second minus first, over the pairs that have a value in both.

    The means are over tasks, which weigh equally. `unscored` are units of both logs that lack a value in one or both.
    `mcnemar` is there if every value of both logs, of any dimension, is 0 or 1: a 1 alone may be a grade.
    """

    dimension: str
    pairs: int
    tasks: int
    unscored_first: int
    unscored_second: int
    first: float | None
    second: float | None
    difference: float | None
    interval: Interval | None
    mcnemar: "McNemar | None"
    better: tuple[TaskMoved, ...]
    worse: tuple[TaskMoved, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """How pairs of passes and failures fell; `p` is of this dimension alone."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogComparison:
    """All of it. What is only in one log could not be paired, and is in no figure."""

    harness: str
    first: str
    second: str
    first_subject: str
    second_subject: str
    paired: int
    only_first: tuple[Unit, ...]
    only_second: tuple[Unit, ...]
    only_first_dimensions: tuple[str, ...]
    only_second_dimensions: tuple[str, ...]
    confidence: float
    level: Level
    rows: tuple[DimensionRow, ...]
    warnings: tuple[str, ...]


def compare_runs(first: ForeignRun, second: ForeignRun, *, confidence: float = 0.95) -> LogComparison:
    """Compare two logs of one harness. The intervals hold for all dimensions together.

    Where every task has two pairs or more, and all values in [0, 1], the intervals are those of
    `simultaneous_intervals` and speak of these tasks. Otherwise a task is one observation, by its mean.

    Raises:
        LogsRefused: if they have no task, or no dimension, in common, or are of two harnesses.
    """
    if first.harness != second.harness:
        raise LogsRefused(f"{first.name} is of {first.harness}, {second.name} of {second.harness}: nothing pairs them")
    paired = [unit for unit in first.units if unit in set(second.units)]
    if not paired:
        shown = [run.units[0].task if run.units else "nothing" for run in (first, second)]
        raise LogsRefused(f"no task is in both: {first.name} has {shown[0]!r}, {second.name} has {shown[1]!r}, ...")
    dimensions = [name for name in first.values if name in second.values]
    if not dimensions:
        names = [", ".join(run.values) or "no scores" for run in (first, second)]
        raise LogsRefused(f"no score is in both: {first.name} has {names[0]}, {second.name} has {names[1]}")
    seen = {value for run in (first, second) for by_unit in run.values.values() for value in by_unit.values()} - {None}
    bounded = all(value is not None and 0 <= value <= 1 for value in seen)
    level, intervals = _intervals(_by_task(first, second, paired, dimensions), confidence, bounded=bounded)
    return LogComparison(
        harness=first.harness,
        first=first.name,
        second=second.name,
        first_subject=first.subject,
        second_subject=second.subject,
        paired=len(paired),
        only_first=tuple(sorted(set(first.units) - set(second.units))),
        only_second=tuple(sorted(set(second.units) - set(first.units))),
        only_first_dimensions=tuple(name for name in first.values if name not in second.values),
        only_second_dimensions=tuple(name for name in second.values if name not in first.values),
        confidence=confidence,
        level=level,
        rows=tuple(
            _row(name, first.values[name], second.values[name], paired, interval, binary=seen <= {0.0, 1.0})
            for name, interval in zip(dimensions, intervals, strict=True)
        ),
        warnings=tuple(_warnings(first, second)),
    )


def log_comparison_to_json(comparison: LogComparison) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {"schema": LOGS_SCHEMA, **asdict(comparison)}


def _by_task(first: ForeignRun, second: ForeignRun, paired: list[Unit], dimensions: list[str]) -> list[Floats]:
    """Return second minus first: one array a task, a row a pair, a column a dimension, NaN where a value lacks."""
    rows: dict[str, list[list[float]]] = {}
    for unit in paired:
        ends = [[run.values[name][unit] for name in dimensions] for run in (first, second)]
        values = np.array(ends, dtype=np.float64)  # None becomes NaN
        rows.setdefault(unit.task, []).append(list(values[1] - values[0]))
    return [np.array(found) for found in rows.values()]


def _intervals(tasks: list[Floats], confidence: float, *, bounded: bool) -> tuple[Level, tuple[Interval | None, ...]]:
    if bounded and all((~np.isnan(task)).sum(axis=0).min() >= 2 for task in tasks):
        return Level.ON_THESE_TASKS, simultaneous_intervals(tasks, confidence=confidence)
    sample = np.stack([mean_differences([task]) for task in tasks])
    return Level.OVER_TASKS, sample_intervals(sample, confidence=confidence, bounded=bounded)


def _row(
    name: str,
    first: Mapping[Unit, float | None],
    second: Mapping[Unit, float | None],
    paired: list[Unit],
    interval: Interval | None,
    *,
    binary: bool,
) -> DimensionRow:
    by_task: dict[str, list[tuple[float, float]]] = {}
    for unit in paired:
        ends = first[unit], second[unit]
        if ends[0] is not None and ends[1] is not None:
            by_task.setdefault(unit.task, []).append((ends[0], ends[1]))
    means = [TaskMoved(task=task, first=_mean(p, 0), second=_mean(p, 1)) for task, p in sorted(by_task.items())]
    pairs = [pair for found in by_task.values() for pair in found]
    before = float(np.mean([task.first for task in means])) if means else None
    after = float(np.mean([task.second for task in means])) if means else None
    moved = sorted(means, key=lambda task: (-abs(task.second - task.first), task.task))
    return DimensionRow(
        dimension=name,
        pairs=len(pairs),
        tasks=len(means),
        unscored_first=sum(first[unit] is None for unit in paired),
        unscored_second=sum(second[unit] is None for unit in paired),
        first=before,
        second=after,
        difference=None if before is None or after is None else after - before,
        interval=interval,
        mcnemar=_mcnemar(pairs) if binary and pairs else None,
        better=tuple(task for task in moved if task.second > task.first),
        worse=tuple(task for task in moved if task.second < task.first),
    )


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


def _warnings(first: ForeignRun, second: ForeignRun) -> Iterator[str]:
    for name in dict.fromkeys((*first.ruler, *second.ruler)):
        values = [run.ruler.get(name, "unknown") for run in (first, second)]
        if values[0] != values[1]:
            yield f"the rulers differ in {name}: {values[0]} and {values[1]}"
    for letter, run in (("A", first), ("B", second)):
        for note in run.notes:
            yield f"{letter}: {note}"
    yield NOT_SIDE_BY_SIDE
