"""The smallest true difference that the gate `paired_fixed` keeps with a probability of 80 %, and what one would need.

Sweeps are drawn by a fixed seed, each as the numbers of won and lost pairs of every task, and judged by the formulas of
`experiments.stats`: its variance with pseudo-pairs, Satterthwaite's degrees of freedom, and its critical values. Three
things are taken for granted: every pair is measured, all candidates share the baseline and little else, which makes
their differences correlate by one half, and the gain is the same number of points in each task that has room for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.stats import FAMILIES_NEEDED, PSEUDO_PAIRS, critical_values

Floats = NDArray[np.float64]

POWER = 0.8
REPEATS_MAX = 100_000

_SWEEPS = 2_000  # the standard error of a power of 80 % is then 0.9 points
_SEED = 20_260
_STEP = 0.0005  # a difference is found to half a tenth of a point
_CORRELATION = 0.5
_DF = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 60.0, 1e6)  # between these, critical values are straight in 1 / df


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOdds:
    """What is taken for true of a task: how often the baseline passes, and which share of the pairs ends differently.

    Without a share, the two outcomes of a pair are taken for independent.
    """

    family: str
    rate: float
    discordant: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A comparison of `candidates` with a baseline on `pairs` blocks of each task."""

    tasks: tuple[TaskOdds, ...]
    pairs: int
    candidates: int
    confidence: float

    @property
    def families(self) -> tuple[str, ...]:
        """The families of the tasks, each once."""
        return tuple(dict.fromkeys(task.family for task in self.tasks))


def smallest_difference(design: Design) -> float | None:
    """Return the smallest difference on these tasks that is kept with `POWER`; None if no difference is."""
    return _smallest(partial(power, design), largest_difference(design))


def smallest_general_difference(design: Design, spread: float) -> float | None:
    """Return the smallest difference over families of which `generalises` says so with `POWER`; None if there is none.

    Args:
        design: with at least `FAMILIES_NEEDED` families.
        spread: the standard deviation of the true differences of families; 0 is the best case.
    """
    return _smallest(partial(general_power, design, spread=spread), _largest(design, _family_weights(design)))


def repeats_needed(design: Design, difference: float, seeds: int) -> int | None:
    """Return how many repeats with each of `seeds` keep a difference with `POWER`; None if `REPEATS_MAX` do not."""
    if difference > largest_difference(design):
        return None

    def enough(repeats: int) -> bool:
        return power(replace(design, pairs=seeds * repeats), difference) >= POWER

    high = 1
    while not enough(high):
        high *= 2
        if high > REPEATS_MAX:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def largest_difference(design: Design) -> float:
    """Return the difference of a candidate that always passes."""
    return _largest(design, _task_weights(design))


def power(design: Design, difference: float) -> float:
    """Return the probability that `paired_fixed` keeps a candidate with this true difference on these tasks."""
    if design.pairs < 2:
        return 0.0
    wins, losses = _drawn(design, _shifts(design, _task_weights(design), difference))
    variances = variances_of_means(wins, losses, design.pairs, PSEUDO_PAIRS / len(design.tasks))
    summed = variances.sum(axis=1)
    df = summed**2 / (variances**2 / (design.pairs - 1)).sum(axis=1)
    estimates = ((wins - losses) / design.pairs).mean(axis=1)
    reach = _critical(df, design.candidates, design.confidence) * np.sqrt(summed) / len(design.tasks)
    return float((estimates > reach).mean())


def general_power(design: Design, difference: float, *, spread: float) -> float:
    """Return the probability that a gain of this size, averaged over all families, is found to generalise.

    Raises:
        ValueError: for fewer than `FAMILIES_NEEDED` families.
    """
    count = len(design.families)
    if count < FAMILIES_NEEDED:
        raise ValueError(f"{count} families, {FAMILIES_NEEDED} needed")
    weights = _family_weights(design)
    wins, losses = _drawn(design, _shifts(design, weights, difference))
    member = np.array([[task.family == family for family in design.families] for task in design.tasks], dtype=float)
    means = (wins - losses) / design.pairs @ (member / member.sum(axis=0))
    means += spread * np.random.default_rng(_SEED + 1).standard_normal(means.shape)
    reach = stats.t.ppf(1 - (1 - design.confidence) / (2 * design.candidates), count - 1) / np.sqrt(count)
    return float((means.mean(axis=1) > reach * means.std(axis=1, ddof=1)).mean())


def variances_of_means(wins: Floats, losses: Floats, pairs: int, pseudo_pairs: float) -> Floats:
    """Return what the gate takes for the variance of a task's mean difference, from the numbers of discordant pairs."""
    sums, squares = wins - losses, wins + losses
    counted = pairs + pseudo_pairs
    smoothed = (squares + pseudo_pairs / 2) / counted - (sums / counted) ** 2
    sample = (squares - sums**2 / pairs) / (pairs - 1)
    return np.asarray(np.maximum(sample, smoothed) / pairs)


def _smallest(power_of: Callable[[float], float], largest: float) -> float | None:
    if power_of(largest) < POWER:
        return None
    low, high = 0.0, largest
    while high - low > _STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(middle) >= POWER else (middle, high)
    return high


def _drawn(design: Design, shifts: Floats) -> tuple[Floats, Floats]:
    """Draw the numbers of won and lost pairs: a row a sweep, a column a task."""
    random = np.random.default_rng(_SEED)
    rates = np.array([task.rate for task in design.tasks])
    better = rates + shifts
    apart = np.array([np.nan if task.discordant is None else task.discordant for task in design.tasks])
    win = np.where(np.isnan(apart), better * (1 - rates), (np.maximum(apart, shifts) + shifts) / 2)
    loss = np.where(np.isnan(apart), rates * (1 - better), (np.maximum(apart, shifts) - shifts) / 2)
    wins = random.binomial(design.pairs, np.clip(win, 0, 1), size=(_SWEEPS, len(rates)))
    not_won = np.where(win < 1, loss / np.maximum(1 - win, 1e-12), 0.0)
    losses = random.binomial(design.pairs - wins, np.clip(not_won, 0, 1))
    return wins.astype(np.float64), losses.astype(np.float64)


def _shifts(design: Design, weights: Floats, difference: float) -> Floats:
    """Return the gain of each task: the same in all that have room for it, `difference` in the weighted mean."""
    room = np.array([1 - task.rate for task in design.tasks])
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if weights @ np.minimum(middle, room) < difference else (low, middle)
    return np.asarray(np.minimum(high, room))


def _largest(design: Design, weights: Floats) -> float:
    return float(weights @ np.array([1 - task.rate for task in design.tasks]))


def _task_weights(design: Design) -> Floats:
    return np.full(len(design.tasks), 1 / len(design.tasks))


def _family_weights(design: Design) -> Floats:
    sizes = {name: sum(task.family == name for task in design.tasks) for name in design.families}
    return np.array([1 / sizes[task.family] / len(sizes) for task in design.tasks])


def _critical(df: Floats, candidates: int, confidence: float) -> Floats:
    known = _critical_at(candidates, confidence)
    inverse = [1 / freedom for freedom in _DF]
    return np.asarray(np.interp(1 / df, inverse[::-1], known[::-1]))


@cache
def _critical_at(candidates: int, confidence: float) -> tuple[float, ...]:
    """Return the gate's critical values at `_DF`. It takes one of these for each candidate, so they go in turn."""
    correlation = np.full((candidates, candidates), _CORRELATION)
    np.fill_diagonal(correlation, 1.0)
    found: list[float] = []
    while len(found) < len(_DF):
        df = np.resize(np.array(_DF[len(found) :]), candidates)
        found += critical_values(correlation, np.ones(candidates), df, confidence).tolist()
    return tuple(found[: len(_DF)])
