"""Whether a judge's probabilities can be believed: of what it expects with 70 %, do 70 % come true?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import config_context
from sklearn.metrics import brier_score_loss

from judges.forecasts import Basis, Forecasts
from judges.resampling import Estimate, Figure, Floats, NotEstimated, Resampling, Rows, estimate

_BINS_MAX = 10
_BIN_MIN = 10

Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Forecasts of about one probability, from `low` to `high`: what they expect on average, and what came true."""

    low: float
    high: float
    count: int
    families: int
    expected: float
    came_true: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A judge's calibration on one dimension.

    `brier` is the mean square of forecast minus truth. `ece`, the expected calibration error, is the mean over bins of
    equal mass, weighted by their counts, of the distance between what is expected and what came true: Naeini, Cooper
    and Hauskrecht (AAAI 2015), with the bins of Nguyen and O'Connor (EMNLP 2015); there are as many bins as hold ten
    forecasts each, at most ten, and equal forecasts share one. It is above 0 even for a perfect judge, because bins
    are small: `ece_by_chance` is what these forecasts would have on average if each came true as often as it says
    (Broecker and Smith, Weather and Forecasting 22, 2007).
    """

    forecasts: Forecasts
    families: int
    base_rate: Figure
    brier: Figure
    ece: Figure
    ece_by_chance: float | None
    bins: tuple[Bin, ...]
    how: Resampling

    @property
    def count(self) -> int:
        """How many forecasts it rests on."""
        return len(self.forecasts.forecasts)


class NoProbabilities(ValueError):  # noqa: N818  (named by what is missing)
    """The judge gives neither probabilities nor a certainty, so that there is nothing to calibrate."""


def calibrate(found: Forecasts, how: Resampling) -> Calibration:
    """Measure the calibration of forecasts.

    Raises:
        NoProbabilities: if they are values, and no probabilities.
    """
    if found.basis is Basis.VALUE:
        raise NoProbabilities(
            f"{found.judge} gives neither probabilities nor a certainty for {found.dimension!r}: its values can be"
            " compared (geode judge agreement), but there is no calibration of them"
        )
    expected = np.array([forecast.expected for forecast in found.forecasts], dtype=np.float64)
    good = np.array([forecast.good for forecast in found.forecasts], dtype=np.intp)
    families = [forecast.family for forecast in found.forecasts]
    bins_max = max(1, min(_BINS_MAX, len(expected) // _BIN_MIN))
    with config_context(assume_finite=True, skip_parameter_validation=True):
        brier = estimate(lambda rows: _brier(expected[rows], good[rows]), families, how, undefined="")
    return Calibration(
        forecasts=found,
        families=len(set(families)),
        base_rate=estimate(lambda rows: float(good[rows].mean()), families, how, undefined=""),
        brier=brier,
        ece=_ece_figure(expected, good, families, bins_max, how),
        ece_by_chance=_ece_by_chance(expected, bins_max, how) if bins_max > 1 else None,
        bins=tuple(_bins(expected, good, families, bins_max, how)) if families else (),
        how=how,
    )


def _brier(expected: Floats, good: Numbers) -> float:
    return float(brier_score_loss(good, expected, labels=[0, 1], pos_label=1))


def _ece_figure(expected: Floats, good: Numbers, families: Sequence[str], bins_max: int, how: Resampling) -> Figure:
    if bins_max < 2:
        return NotEstimated(reason=f"{len(expected)} forecasts, and {2 * _BIN_MIN} are needed")
    return estimate(lambda rows: _ece(expected[rows], good[rows], bins_max), families, how, undefined="")


def _ece(expected: Floats, good: Numbers, bins_max: int) -> float:
    places = bin_places(expected, bins_max)
    return float(np.abs(np.bincount(places, weights=expected - good)).sum() / len(expected))


def _ece_by_chance(expected: Floats, bins_max: int, how: Resampling) -> float:
    generator = np.random.default_rng(how.seed)
    drawn = (generator.random((how.draws, len(expected))) < expected).astype(np.intp)
    return float(np.mean([_ece(expected, good, bins_max) for good in drawn]))


def bin_places(expected: Floats, bins_max: int) -> Rows:
    """Return the bin of each forecast: bins of equal mass in the order of the forecasts; equal ones share theirs."""
    middles = stats.rankdata(expected) - 0.5
    return np.asarray(middles * bins_max // len(expected), dtype=np.intp)


def _bins(expected: Floats, good: Numbers, families: Sequence[str], bins_max: int, how: Resampling) -> list[Bin]:
    places = bin_places(expected, bins_max)
    made = []
    for place in np.unique(places):
        rows = np.flatnonzero(places == place)
        of_bin = [families[int(row)] for row in rows]
        made.append(
            Bin(
                low=float(expected[rows].min()),
                high=float(expected[rows].max()),
                count=len(rows),
                families=len(set(of_bin)),
                expected=float(expected[rows].mean()),
                came_true=_rate(good[rows], of_bin, how),
            )
        )
    return made


def _rate(good: Numbers, families: Sequence[str], how: Resampling) -> Figure:
    found = estimate(partial(_mean, good), families, how, undefined="")
    if isinstance(found, Estimate) and found.value in {0.0, 1.0}:
        # Resampled, they are all alike again: an interval without width would claim to be certain.
        return Estimate(value=found.value, interval=None, no_interval="all ended alike")
    return found


def _mean(values: Numbers, rows: Rows) -> float:
    return float(values[rows].mean())
