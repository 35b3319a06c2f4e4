"""Whether a series of measurements in the order of time stands still: arithmetic that knows no record and no clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from experiments.stats import Floats

_DRAWS = 1_999  # p is then a multiple of 1 / 2,000
_DRAWS_AT_ONCE = 100  # bounds the memory of a long run
_DRAW_SEED = 20_261  # fixed, so that equal outcomes give an equal p
_EDGE = 10  # a step is looked for between the first and the last tenth: beyond, a few outcomes would make it


class DriftKind(StrEnum):
    """The form of change that fits better."""

    TREND = "trend"
    STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFound:
    """What changes over the series, and how surprising that is.

    `size` is the change from start to end of a trend, or over the step; `place` is how many values came before the
    step, 0 for a trend. `p` is for both forms together.
    """

    kind: DriftKind
    size: float
    place: int
    p: float


def find_drift(values: Floats, strata: NDArray[np.int64]) -> DriftFound | None:
    """Test whether `values`, in the order of time, trend or step. None if they have no spread within any stratum.

    The statistic is the largest of the standardised slope and of the standardised CUSUM over all places of a step, of
    values centred within their stratum. Its distribution is that under permutation of time within the strata: exact,
    whatever the values' distribution, as long as they are exchangeable within a stratum.

    Args:
        values: one a block, finite.
        strata: a number of the block's task, so that a hard task that happens to come late is no drift.
    """
    groups = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    centred = values.astype(np.float64)
    for group in groups:
        centred[group] -= centred[group].mean()
    if len(centred) < 3 or np.abs(centred).max() < 1e-9:
        return None
    slope, steps = _standardised(centred[None, :])
    largest = max(abs(slope[0]), np.abs(steps[0]).max())
    exceeded = sum(int((_largest(draws) >= largest - 1e-9).sum()) for draws in _permutations(centred, groups))
    p = (1 + exceeded) / (1 + _DRAWS)
    count = len(centred)
    if abs(slope[0]) >= np.abs(steps[0]).max():
        position = _positions(count)
        size = float(position @ centred / (position @ position)) * (count - 1)
        return DriftFound(kind=DriftKind.TREND, size=size, place=0, p=p)
    place = int(np.abs(steps[0]).argmax()) + _first_place(count)
    size = float(centred[place:].mean() - centred[:place].mean())
    return DriftFound(kind=DriftKind.STEP, size=size, place=place, p=p)


def _standardised(rows: Floats) -> tuple[Floats, Floats]:
    """Return of each row the slope, and the change over a step at each place, up to one factor that all rows share."""
    count = rows.shape[1]
    position = _positions(count)
    first = _first_place(count)
    before = np.arange(first, count - first + 1)
    sums = rows.cumsum(axis=1)[:, before - 1]
    return rows @ position / np.sqrt(position @ position), -sums / np.sqrt(before * (count - before) / count)


def _largest(rows: Floats) -> Floats:
    slope, steps = _standardised(rows)
    return np.asarray(np.maximum(np.abs(slope), np.abs(steps).max(axis=1)))


def _permutations(centred: Floats, groups: list[NDArray[np.intp]]) -> Iterator[Floats]:
    random = np.random.default_rng(_DRAW_SEED)
    for start in range(0, _DRAWS, _DRAWS_AT_ONCE):
        draws = np.tile(centred, (min(_DRAWS_AT_ONCE, _DRAWS - start), 1))
        for group in groups:
            draws[:, group] = random.permuted(draws[:, group], axis=1)
        yield draws


def _positions(count: int) -> Floats:
    return np.arange(count, dtype=np.float64) - (count - 1) / 2


def _first_place(count: int) -> int:
    return max(1, count // _EDGE)
