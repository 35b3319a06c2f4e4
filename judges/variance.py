"""Where the spread of a judged value comes from: the scenario, the run, or the judge itself.

Judge noise is what differs when the same transcript is judged again, run noise what differs between episodes of one
scenario, scenario noise what differs between scenarios.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judges.judgment import Value
from judges.ratings import Judge
from judges.resampling import Estimate, Figure, Floats, NotEstimated, Range, Resampling, Rows, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an episode comes from. Episodes of one scenario differ only by chance; a family has several scenarios."""

    scenario: str
    family: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """The components of the variance of one judge's values on one dimension, in squared units of it.

    What no repetition tells apart is not given a figure of its own: it is inside the next component above it, and the
    reason says so. An estimate below 0, which chance gives where a component is small, is shown as 0; so is the end of
    an interval.
    """

    judge: str
    dimension: str
    scenarios: int
    episodes: int
    judgments: int
    families: int
    scenario: Figure
    run: Figure
    repetition: Figure


def variance_components(
    judge: Judge, dimension: str, origins: Mapping[str, Origin], how: Resampling
) -> Variance | NotEstimated:
    """Estimate the components from all scored judgments of a judge, repetitions among them.

    The method is that of nested analysis of variance for unbalanced data (Henderson's method I, which equates mean
    squares to what is expected of them): Searle, Casella and McCulloch, "Variance Components" (1992), chapters 3 and
    5. It assumes no distribution. Intervals draw families.

    Args:
        judge: with its judgments.
        dimension: which values are meant.
        origins: the scenario and family of each episode; what is not in it is left out.
        how: confidence, number of draws and seed of the intervals.
    """
    values: dict[str, dict[str, list[float]]] = {}
    for judgment in judge.judgments:
        entry = judgment.dimensions.get(dimension)
        if isinstance(entry, Value) and (origin := origins.get(judgment.episode)) is not None:
            values.setdefault(origin.scenario, {}).setdefault(judgment.episode, []).append(entry.value)
    if len(values) < 2:
        return NotEstimated(reason=f"{len(values)} scenarios with a value, and two are needed")
    of_scenario = {origin.scenario: origin.family for origin in origins.values()}
    families = [of_scenario[scenario] for scenario in values]
    sums = np.array([_sums(list(runs.values())) for runs in values.values()])
    parts = [_figure(sums, families, how, place, missing) for place, missing in enumerate(_not_told_apart(sums))]
    return Variance(
        judge=judge.name,
        dimension=dimension,
        scenarios=len(values),
        episodes=int(sums[:, _RUNS].sum()),
        judgments=int(sums[:, _COUNT].sum()),
        families=len(set(families)),
        scenario=parts[0],
        run=parts[1],
        repetition=parts[2],
    )


_COUNT, _MEAN, _RUNS, _SQUARED_COUNTS, _BETWEEN_RUNS, _WITHIN_RUNS = range(6)


def _sums(runs: Sequence[Sequence[float]]) -> list[float]:
    """Return what the estimators need of one scenario: counts, its mean, and its two sums of squares."""
    counts = np.array([len(run) for run in runs], dtype=np.float64)
    means = np.array([np.mean(run) for run in runs])
    mean = float((counts * means).sum() / counts.sum())
    return [
        float(counts.sum()),
        mean,
        float(len(runs)),
        float((counts**2).sum()),
        float((counts * (means - mean) ** 2).sum()),
        float(sum(((np.array(run) - np.mean(run)) ** 2).sum() for run in runs)),
    ]


def _not_told_apart(sums: Floats) -> Iterator[str]:
    """Yield for scenario, run and repetition why it has no figure of its own; empty if it has."""
    yield ""
    yield "" if (sums[:, _RUNS] > 1).any() else "no scenario ran twice: its noise is inside the scenario's"
    yield "" if (sums[:, _COUNT] > sums[:, _RUNS]).any() else "nothing was judged twice: its noise is inside the run's"


def _figure(sums: Floats, families: Sequence[str], how: Resampling, place: int, missing: str) -> Figure:
    if missing:
        return NotEstimated(reason=missing)
    found = estimate(lambda rows: _components(sums, rows)[place], families, how, undefined="too few repetitions")
    if isinstance(found, NotEstimated):
        return found
    interval = found.interval and Range(low=max(0.0, found.interval.low), high=max(0.0, found.interval.high))
    return Estimate(value=max(0.0, found.value), interval=interval, no_interval=found.no_interval)


def _components(sums: Floats, rows: Rows) -> tuple[float, float, float]:
    """Return the components of scenario, run and repetition; NaN where a level has no degrees of freedom.

    A level without repetition counts as nothing: its variance is then inside the component above it.
    """
    count, mean, runs, squared, between_runs, within_runs = sums[rows].T
    total, episodes, scenarios = count.sum(), runs.sum(), len(rows)
    grand = (count * mean).sum() / total
    repetition = _divided(float(within_runs.sum()), total - episodes)
    run_weight = _divided(float(total - (squared / count).sum()), episodes - scenarios)
    run = _divided(_divided(float(between_runs.sum()), episodes - scenarios) - _or_zero(repetition), run_weight)
    between = _divided(float((count * (mean - grand) ** 2).sum()), scenarios - 1)
    runs_in_scenario = _divided(float((squared / count).sum() - squared.sum() / total), scenarios - 1)
    scenario_weight = _divided(float(total - (count**2).sum() / total), scenarios - 1)
    inside = _or_zero(repetition) + runs_in_scenario * _or_zero(run)
    return _divided(between - inside, scenario_weight), run, repetition


def _divided(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else float("nan")


def _or_zero(component: float) -> float:
    return 0.0 if np.isnan(component) else component
