"""Whether the pass rate stood still while an experiment ran. A provider that changes half-way is no one's hook.

Blocks interleave all variants, so that what changes for all of them alike is not in their differences. Rates are not
protected, nor are differences to variants that ran at another time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from experiments.drift import DriftFound, DriftKind, find_drift
from experiments.episode import EpisodeRecord
from experiments.sinks import Cell
from experiments.suite import OutcomeKind

_APART_MAX = 0.1
_SCORES = {OutcomeKind.PASS: 1.0, OutcomeKind.FAIL: 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The pass rate over the run: sizes as shares, `blocks` all that were tested, `stepped_at` absent for a trend.

    `interleaved` says that the variants' episodes lie at the same times on the average.
    """

    found: DriftFound
    blocks: int
    stepped_at: datetime | None
    interleaved: bool


@dataclass(frozen=True, slots=True)
class _Measured:
    record: EpisodeRecord
    arm: int
    residual: float


def drift(cells: Sequence[Cell]) -> Drift | None:
    """Test the blocks in the order in which they ran. None if nothing varies, or all ran at one moment.

    A block's value is the mean over its measured episodes of outcome minus the mean of that variant on that task.
    """
    measured = [episode for arm, cell in enumerate(cells) for episode in _residuals(cell, arm)]
    if len({episode.record.started_at for episode in measured}) < 2:
        return None
    blocks: dict[tuple[str, int, int], list[_Measured]] = {}
    for episode in measured:
        record = episode.record
        blocks.setdefault((record.task_id, record.seed, record.repetition), []).append(episode)
    ordered = sorted(blocks.values(), key=_mean_time)
    tasks = {name: number for number, name in enumerate({block[0].record.task_id: None for block in ordered})}
    values = np.array([np.mean([episode.residual for episode in block]) for block in ordered])
    strata = np.array([tasks[block[0].record.task_id] for block in ordered], dtype=np.int64)
    found = find_drift(values, strata)
    if found is None:
        return None
    return Drift(
        found=found,
        blocks=len(ordered),
        stepped_at=_first_start(ordered[found.place]) if found.kind is DriftKind.STEP else None,
        interleaved=_interleaved(measured),
    )


def drift_warning(seen: Drift | None, confidence: float) -> str | None:
    """Return what to tell of a drift that is surprising at this confidence."""
    if seen is None or seen.found.p > 1 - confidence:
        return None
    points = f"{100 * seen.found.size:+.1f} points"
    change = f"trended by {points} from start to end"
    if seen.stepped_at is not None:
        when = seen.stepped_at.strftime("%Y-%m-%d %H:%M:%S")
        change = f"stepped by {points} after {seen.found.place} of {seen.blocks} blocks, {when}"
    meaning = "the variants ran interleaved: what changed for all alike is in their rates, not in their differences"
    if not seen.interleaved:
        meaning = "the variants did not run side by side, so their differences may be this and nothing else"
    return f"drift: the pass rate of all variants {change} (p = {seen.found.p:.4f}); {meaning}"


def _residuals(cell: Cell, arm: int) -> list[_Measured]:
    records = [stored.record for stored in cell.episodes if stored.record.outcome.kind in _SCORES]
    by_task: dict[str, list[EpisodeRecord]] = {}
    for record in records:
        by_task.setdefault(record.task_id, []).append(record)
    means = {task: np.mean([_SCORES[r.outcome.kind] for r in found]) for task, found in by_task.items()}
    return [_Measured(r, arm, _SCORES[r.outcome.kind] - float(means[r.task_id])) for r in records]


def _mean_time(block: Sequence[_Measured]) -> float:
    return float(np.mean([episode.record.started_at.timestamp() for episode in block]))


def _first_start(block: Sequence[_Measured]) -> datetime:
    return min(episode.record.started_at for episode in block)


def _interleaved(measured: Sequence[_Measured]) -> bool:
    """Compare the arms' mean places in time: side by side they are alike, whatever the order within blocks."""
    ordered = sorted(measured, key=lambda episode: episode.record.started_at)
    places: dict[int, list[float]] = {}
    for place, episode in enumerate(ordered):
        places.setdefault(episode.arm, []).append(place / len(ordered))
    means = [float(np.mean(found)) for found in places.values()]
    return max(means) - min(means) <= _APART_MAX
