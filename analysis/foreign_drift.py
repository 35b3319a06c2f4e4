"""Whether the scores of foreign logs stood still over time, as far as their attempts repeat and their times tell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.foreign import ForeignRun, Unit
from experiments.drift import DriftFound, DriftKind, find_drift

LOGS_MIN = 8
"""With fewer logs, no order of them is surprising enough to speak of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDrift:
    """One series that was tested: the attempts of `log`, or, without one, the means of all logs.

    `p` counts all series that were tested (Bonferroni), so that it may be 1.
    """

    log: str | None
    score: str
    values: int
    found: DriftFound
    p: float


def find_log_drift(letters: Sequence[str], runs: Sequence[ForeignRun]) -> tuple[LogDrift, ...]:
    """Test every series that can be tested, the most surprising first; empty if none can.

    Within a log those tasks count that were attempted more than once: else a hard task that came late is a drift. Over
    logs each log is one observation, its mean over the tasks that all have, so that one log's luck is no drift either.
    """
    series = list(_series(letters, runs))
    tested = [
        LogDrift(log=log, score=score, values=found[1], found=found[0], p=min(1.0, found[0].p * len(series)))
        for log, score, found in series
    ]
    return tuple(sorted(tested, key=lambda drift: drift.p))


def drift_told(drift: LogDrift) -> str:
    """Say in one sentence what drifted, and what that means for a comparison."""
    found = drift.found
    change = f"trended by {found.size:+.2f} from start to end"
    if found.kind is DriftKind.STEP:
        change = f"stepped by {found.size:+.2f} after {found.place} of {drift.values}"
    where = "over the logs in the order of time" if drift.log is None else f"while {drift.log} ran"
    meaning = "a difference between logs may be this and nothing else"
    return f"drift: {drift.score} {change} {where} (p = {drift.p:.4f}); {meaning}"


def _series(
    letters: Sequence[str], runs: Sequence[ForeignRun]
) -> Iterator[tuple[str | None, str, tuple[DriftFound, int]]]:
    for letter, run in zip(letters, runs, strict=True):
        for score, values in run.values.items():
            if found := _within(run, values):
                yield letter, score, found
    if len(runs) >= LOGS_MIN:
        for score in runs[0].values:
            if all(score in run.values for run in runs) and (found := _over_logs(score, runs)):
                yield None, score, found


def _within(run: ForeignRun, values: Mapping[Unit, float | None]) -> tuple[DriftFound, int] | None:
    timed = [
        (at, unit.task, value)
        for unit, value in values.items()
        if value is not None and (at := run.attempts[unit].started_at) is not None
    ]
    if len({at for at, _, _ in timed}) < 2:
        return None
    timed.sort(key=lambda attempt: attempt[0])
    tasks = {task: number for number, task in enumerate(dict.fromkeys(task for _, task, _ in timed))}
    strata = np.array([tasks[task] for _, task, _ in timed], dtype=np.int64)
    found = find_drift(np.array([value for _, _, value in timed]), strata)
    return None if found is None else (found, len(timed))


def _over_logs(score: str, runs: Sequence[ForeignRun]) -> tuple[DriftFound, int] | None:
    starts = [min((a.started_at for a in run.attempts.values() if a.started_at), default=None) for run in runs]
    timed = [(at, run.values[score]) for at, run in zip(starts, runs, strict=True) if at is not None]
    if len(timed) < len(runs) or len({at for at, _ in timed}) < 2:
        return None
    shared = set.intersection(*({unit for unit, value in values.items() if value is not None} for _, values in timed))
    if not shared:
        return None
    timed.sort(key=lambda log: log[0])
    means = np.array([np.mean([values[unit] for unit in shared]) for _, values in timed], dtype=np.float64)
    found = find_drift(means, np.zeros(len(means), dtype=np.int64))
    return None if found is None else (found, len(means))
