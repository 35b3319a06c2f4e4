"""Figures with bootstrap intervals that draw whole families: episodes of one family are no independent observations.

A figure that cannot be computed is a reason, never a number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

DRAWS = 1_000
SEED = 20_260
"""Fixed, so that equal judgments give equal intervals."""

FAMILIES_FEW = 10
"""With fewer families, an interval from drawing them is rough, and whoever prints it says so."""

_UNDEFINED_SHARE_MAX = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An interval, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure, and its interval or why it has none."""

    value: float
    interval: Range | None
    no_interval: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEstimated:
    """Why there is no figure."""

    reason: str


Figure = Estimate | NotEstimated


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """How intervals are drawn."""

    confidence: float = 0.95
    draws: int = DRAWS
    seed: int = SEED


def estimate(statistic: Callable[[Rows], float], families: Sequence[str], how: Resampling, undefined: str) -> Figure:
    """Compute a statistic of all rows, with an interval from drawing families.

    Families are drawn with replacement, as many as there are, and each brings all its rows: Davison and Hinkley,
    "Bootstrap Methods and their Application" (1997), section 3.8. The interval is the expanded percentile interval of
    Hesterberg, The American Statistician 69 (2015), since the plain one is too narrow for few families. There is none
    with fewer than two families, nor if the statistic is undefined in more than 5 % of the draws: what is left would be
    chosen by its result. Measured on two simulated judges of three episodes a family, intervals of 95 % held the true
    alpha, bias and limit in 83 to 91 % of cases with five families, in 89 to 96 % with thirteen, in 90 to 95 % with
    forty.

    Args:
        statistic: takes the numbers of rows, repeated as they were drawn; NaN where it is undefined for them.
        families: the family of each row.
        how: confidence, number of draws and seed.
        undefined: what is said if the statistic is undefined for all rows.
    """
    if not families:
        return NotEstimated(reason="no episode")
    value = statistic(np.arange(len(families)))
    if math.isnan(value):
        return NotEstimated(reason=undefined)
    groups = _groups(families)
    if len(groups) < 2:
        return Estimate(value=value, interval=None, no_interval="one family, and two are needed")
    generator = np.random.default_rng(how.seed)
    drawn = generator.integers(len(groups), size=(how.draws, len(groups)))
    values = np.array([statistic(np.concatenate([groups[number] for number in draw])) for draw in drawn])
    undefined_count = int(np.isnan(values).sum())
    if undefined_count > _UNDEFINED_SHARE_MAX * how.draws:
        why = f"undefined in {undefined_count} of {how.draws} draws of families"
        return Estimate(value=value, interval=None, no_interval=why)
    tail = _tail(how.confidence, len(groups))
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return Estimate(value=value, interval=Range(low=float(low), high=float(high)))


def _tail(confidence: float, families: int) -> float:
    """Return the share of draws beyond each end: that of the normal tail which is as far out as Student's."""
    reach = stats.t.ppf((1 + confidence) / 2, families - 1) * np.sqrt(families / (families - 1))
    return float(stats.norm.sf(reach))


def _groups(families: Sequence[str]) -> list[Rows]:
    _, numbers = np.unique(np.asarray(families), return_inverse=True)
    return [np.flatnonzero(numbers == number) for number in range(int(numbers.max()) + 1)]
