"""How far judges agree on the same transcripts, dimension by dimension, and how sure that is.

Every figure comes from a library; what is decided here is which one fits a dimension, and when there is none.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import combinations

import numpy as np
from scipy import stats
from sklearn import config_context
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from judges.ratings import Judge, Ratings, Scored, rate, scored
from judges.resampling import Figure, Floats, NotEstimated, Resampling, Rows, estimate
from judges.rubric import Dimension, Rubric, Scale

try:
    import krippendorff
except ModuleNotFoundError:  # its licence is the GPL, so that it is an extra
    krippendorff = None  # type: ignore[assignment]

_Statistic = Callable[[Floats, Floats], float]

_LIMITS_SHARE = 0.95
_CORRELATED_MIN = 3
_ROUNDING = 1e-9
_ANCHORS_MIN = 3
_VALUES_MAX = 101
_ALPHA_VALUES_MAX = 25
"""The library's memory grows with the square of the number of different values."""


class Level(StrEnum):
    """How Krippendorff's alpha takes the distance of two values."""

    INTERVAL = "interval"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How often each value met each: a row a value of the first judge, a column one of the second.

    `binned` says what values were put to: the nearest "anchors" of the dimension (of two the lower) where it has three
    or more, else "integers", or "values" as they are.
    """

    binned: str
    labels: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]
    same: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Two judges on one dimension, over the episodes that both scored.

    `kappa` is Cohen's, with quadratic weights over the integers of a score, without weights for flags and choices; a
    value between is put to the nearest, of two the lower. `bias` is the mean of first minus second in the dimension's
    own units; between the limits lie 95 % of the differences, if they are normal (Bland and Altman, Lancet 327, 1986).
    """

    first: str
    second: str
    both: int
    families: int
    kappa: Figure
    pearson: Figure
    spearman: Figure
    bias: Figure
    limit_low: Figure
    limit_high: Figure
    confusion: Confusion


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionAgreement:
    """All judges on one dimension.

    `alphas` are Krippendorff's, over all judges at once; an episode that only one scored adds nothing. More than 25
    different values are first put to steps of the range, half points of 1 to 10. `all_scored` counts episodes that
    every judge scored.
    """

    dimension: str
    scale: Scale
    all_scored: int
    judges: tuple[Scored, ...]
    alphas: Mapping[Level, Figure]
    pairs: tuple[PairAgreement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The whole table: `episodes` were judged by every judge, in `families` families."""

    rubric: str
    rubric_id: str
    judges: tuple[str, ...]
    episodes: int
    families: int
    left_out: Mapping[str, int]
    how: Resampling
    dimensions: tuple[DimensionAgreement, ...]


def agreement(
    judges: Sequence[Judge],
    rubric: Rubric,
    families: Mapping[str, str],
    how: Resampling,
    *,
    only: Collection[str] = (),
) -> Agreement:
    """Compare two or more judges of the same episodes under one rubric.

    Args:
        judges: each with its judgments; names must differ.
        rubric: whose dimensions are compared.
        families: the family of each episode.
        how: confidence, number of draws and seed of the intervals.
        only: the names of dimensions; all if there is none.

    Raises:
        ValueError: for fewer than two judges, or what `rate` raises.
    """
    if len(judges) < 2:
        raise ValueError("agreement needs two judges")
    ratings = rate(judges, families)
    compared = [dimension for dimension in rubric.dimensions if not only or dimension.name in only]
    # Each draw of families asks for a figure anew: that the values are numbers was seen once.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        dimensions = tuple(_dimension(ratings, dimension, how) for dimension in compared)
    return Agreement(
        rubric=rubric.name,
        rubric_id=rubric.rubric_id,
        judges=ratings.judges,
        episodes=len(ratings.episodes),
        families=len(set(ratings.families)),
        left_out=ratings.left_out,
        how=how,
        dimensions=dimensions,
    )


def _dimension(ratings: Ratings, dimension: Dimension, how: Resampling) -> DimensionAgreement:
    values = ratings.values(dimension.name)
    levels = (Level.INTERVAL, Level.ORDINAL) if dimension.scale is Scale.SCORE else (Level.NOMINAL,)
    return DimensionAgreement(
        dimension=dimension.name,
        scale=dimension.scale,
        all_scored=int((~np.isnan(values)).all(axis=0).sum()),
        judges=scored(ratings, dimension.name, how),
        alphas={level: _alpha(ratings, _coarse(dimension, values), level, how) for level in levels},
        pairs=tuple(
            _pair(ratings, dimension, first, second, how) for first, second in combinations(range(len(values)), 2)
        ),
    )


def _coarse(dimension: Dimension, values: Floats) -> Floats:
    """Put values where alpha can take them.

    A flag or a choice is one of its values, though an engine may give a probability in its place. Very many different
    scores are put to equal steps of the range, each integer among them.
    """
    if dimension.scale is not Scale.SCORE:
        _, labels = _bins(dimension)
        return np.where(np.isnan(values), np.nan, labels[_nearest(labels, np.nan_to_num(values))])
    values = np.round(values, 9)
    if len(np.unique(values[~np.isnan(values)])) <= _ALPHA_VALUES_MAX:
        return values
    width = dimension.highest - dimension.lowest
    steps = (_ALPHA_VALUES_MAX - 1) // width * width or _ALPHA_VALUES_MAX - 1
    return np.asarray(dimension.lowest + np.rint((values - dimension.lowest) * steps / width) * width / steps)


def _alpha(ratings: Ratings, values: Floats, level: Level, how: Resampling) -> Figure:
    if krippendorff is None:
        return NotEstimated(reason="krippendorff is not installed; pip install 'geode-agent[agreement]'")
    pairable = np.flatnonzero((~np.isnan(values)).sum(axis=0) >= 2)
    if not len(pairable):
        return NotEstimated(reason="no episode that two judges scored")
    domain = np.unique(values[:, pairable][~np.isnan(values[:, pairable])])
    counts = (values[:, pairable].T[..., np.newaxis] == domain).sum(axis=1)

    def alpha(rows: Rows) -> float:
        drawn = counts[rows]
        # With a single value nobody can differ by chance, either: 0 / 0.
        if (drawn.sum(axis=0) > 0).sum() < 2:
            return float("nan")
        return float(krippendorff.alpha(value_counts=drawn, value_domain=domain, level_of_measurement=level.value))

    return estimate(alpha, _families(ratings, pairable), how, undefined=f"all always say {domain[0]:g}")


def _families(ratings: Ratings, rows: Rows) -> list[str]:
    return [ratings.families[row] for row in rows]


def _pair(ratings: Ratings, dimension: Dimension, one: int, other: int, how: Resampling) -> PairAgreement:
    values = ratings.values(dimension.name)[[one, other]]
    both = np.flatnonzero(~np.isnan(values).any(axis=0))
    first, second = values[:, both]
    families = _families(ratings, both)
    names = ratings.judges[one], ratings.judges[other]

    def figure(statistic: _Statistic, first: Floats = first, second: Floats = second) -> Figure:
        why = _why_undefined(names, first, second)
        return estimate(lambda rows: statistic(first[rows], second[rows]), families, how, undefined=why)

    low, high = (partial(_limit, side=side) for side in (-1, 1))
    return PairAgreement(
        first=names[0],
        second=names[1],
        both=len(both),
        families=len(set(families)),
        kappa=_kappa(dimension, first, second, figure),
        pearson=figure(partial(_correlation, measure=stats.pearsonr)),
        spearman=figure(partial(_correlation, measure=stats.spearmanr)),
        bias=figure(lambda a, b: float((a - b).mean())),
        limit_low=figure(low),
        limit_high=figure(high),
        confusion=_confusion(dimension, first, second, figure),
    )


def _why_undefined(names: tuple[str, str], first: Floats, second: Floats) -> str:
    """Say why a figure of two columns can be undefined: there are too few rows, or too few values."""
    if len(first) < _CORRELATED_MIN:
        return f"{len(first)} episodes that both scored, and {_CORRELATED_MIN} are needed"
    constant = [(name, column[0]) for name, column in zip(names, (first, second), strict=True) if not _varies(column)]
    if len(constant) == 2 and constant[0][1] == constant[1][1]:
        return f"both always say {constant[0][1]:g}"
    return " and ".join(f"{name} always says {value:g}" for name, value in constant)


def _varies(column: Floats) -> bool:
    """Whether values differ by more than floats do that were computed to be equal."""
    return bool(np.ptp(column) > _ROUNDING * max(1.0, np.abs(column).max()))


def _correlation(first: Floats, second: Floats, *, measure: Callable[[Floats, Floats], tuple[float, float]]) -> float:
    if len(first) < _CORRELATED_MIN or not _varies(first) or not _varies(second):
        return float("nan")
    return float(measure(first, second)[0])


def _limit(first: Floats, second: Floats, *, side: int) -> float:
    if len(first) < _CORRELATED_MIN:
        return float("nan")
    difference = first - second
    reach = stats.norm.ppf((1 + _LIMITS_SHARE) / 2) * difference.std(ddof=1)
    return float(difference.mean() + side * reach)


def _kappa(
    dimension: Dimension, first: Floats, second: Floats, figure: Callable[[_Statistic, Floats, Floats], Figure]
) -> Figure:
    if dimension.highest - dimension.lowest >= _VALUES_MAX:
        return NotEstimated(reason="too many values for a table of each against each")
    if dimension.scale is Scale.SCORE:
        # Weights rest on the places of the labels, so that each integer of the range needs one, used or not.
        labels, weights = _integers(dimension), "quadratic"
    else:
        (_, labels), weights = _bins(dimension), None

    def kappa(one: Floats, other: Floats) -> float:
        # Against a judge that says one thing alone it is 0, whatever the other says.
        if len(one) < _CORRELATED_MIN or not _varies(one) or not _varies(other):
            return float("nan")
        # Equal pairs are given once, with their number: the library is slow by the row.
        size = len(labels)
        cells = np.searchsorted(labels, one) * size + np.searchsorted(labels, other)
        cells, counts = np.unique(cells, return_counts=True)
        pairs = np.divmod(cells, size)
        return float(cohen_kappa_score(*pairs, labels=np.arange(size), weights=weights, sample_weight=counts))

    return figure(kappa, labels[_nearest(labels, first)], labels[_nearest(labels, second)])


def _confusion(
    dimension: Dimension,
    first: Floats,
    second: Floats,
    figure: Callable[[_Statistic], Figure],
) -> Confusion:
    binned, labels = _bins(dimension)
    codes = np.arange(len(labels))
    counts = (
        confusion_matrix(_nearest(labels, first), _nearest(labels, second), labels=codes)
        if len(first)
        else np.zeros((len(labels), len(labels)), dtype=int)
    )

    def same(one: Floats, other: Floats) -> float:
        return float((_nearest(labels, one) == _nearest(labels, other)).mean())

    return Confusion(
        binned=binned,
        labels=tuple(labels.tolist()),
        counts=tuple(tuple(row) for row in counts.tolist()),
        same=figure(same),
    )


def _bins(dimension: Dimension) -> tuple[str, Floats]:
    if dimension.scale is Scale.CHOICE:
        return "values", np.unique([label.value for label in dimension.labels.values() if label.value is not None])
    wide = dimension.highest - dimension.lowest >= _VALUES_MAX
    if len(dimension.anchors) >= _ANCHORS_MIN or (wide and dimension.anchors):
        return "anchors", np.array(sorted(dimension.anchors), dtype=np.float64)
    if wide:
        return "integers", np.linspace(dimension.lowest, dimension.highest, _ALPHA_VALUES_MAX).round()
    return "integers", _integers(dimension)


def _integers(dimension: Dimension) -> Floats:
    return np.arange(dimension.lowest, dimension.highest + 1, dtype=np.float64)


def _nearest(labels: Floats, values: Floats) -> Rows:
    return np.asarray(np.abs(values[..., np.newaxis] - labels).argmin(axis=-1))
