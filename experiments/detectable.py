"""What a planned comparison can detect, judged by the best that is known of its tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from experiments.episode import EpisodeRecord
from experiments.gate import differences, paired_evidence
from experiments.past import Past
from experiments.power import (
    Design,
    TaskOdds,
    largest_difference,
    repeats_needed,
    smallest_difference,
    smallest_general_difference,
)
from experiments.records import ExperimentRecord, TaskRef
from experiments.sinks import Cell
from experiments.stats import FAMILIES_NEEDED
from experiments.suite import OutcomeKind

Floats = NDArray[np.float64]

TARGETS = (0.10, 0.05)
"""The differences for which the repeats that they need are told."""

_ENOUGH = 5  # pairs or episodes of a task; fewer say less than the assumption


class Source(StrEnum):
    """Where the odds of a task come from."""

    PAIRS = "past pairs of its variants"
    RATES = "past pass rates in the same roles"
    GIVEN = "the pass rate that was given, with independent outcomes"
    ASSUMED = "the assumption that the baseline passes half of the time and pairs are independent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest true differences that are kept with a probability of 80 %, as shares; None where there is none.

    `on_tasks` is that on these tasks, `largest` the most that there is room for. `beyond` is that over families, if
    their true differences spread by `spread`, which is None where nothing is known of it: then `beyond` is for families
    that do not differ at all, the best case. `repeats` has for each of `TARGETS` how many it needs.
    """

    candidates: int
    pairs: int
    tasks: int
    families: int
    sources: Mapping[Source, int]
    on_tasks: float | None
    largest: float
    repeats: Mapping[float, int | None]
    beyond: float | None
    spread: float | None


def detectable(experiment: ExperimentRecord, past: Past) -> Detectable | None:
    """Say what the whole experiment can detect, once all its episodes have run; None if it compares nothing."""
    if len(experiment.variants) < 2:
        return None
    paired = _past_differences(past.cells, experiment.baseline)
    roles = experiment.variant(experiment.baseline).roles
    rates = _pass_rates(record for record in past.records if record.roles == roles)
    odds = [_odds(task, pairs, rates) for task, pairs in zip(experiment.ruler.tasks, paired, strict=True)]
    design = Design(
        tasks=tuple(task for task, _ in odds),
        pairs=len(experiment.ruler.seeds) * experiment.repeats,
        candidates=len(experiment.variants) - 1,
        confidence=experiment.ruler.confidence,
    )
    sources = [source for _, source in odds]
    spread = _spread(paired, [task.family for task in experiment.ruler.tasks])
    return detect(design, {s: sources.count(s) for s in Source if s in sources}, len(experiment.ruler.seeds), spread)


def detect(design: Design, sources: Mapping[Source, int], seeds: int = 1, spread: float | None = None) -> Detectable:
    """Say what a design can detect."""
    families = len(design.families)
    general = families >= FAMILIES_NEEDED
    return Detectable(
        candidates=design.candidates,
        pairs=design.pairs,
        tasks=len(design.tasks),
        families=families,
        sources=sources,
        on_tasks=smallest_difference(design),
        largest=largest_difference(design),
        repeats={target: repeats_needed(design, target, seeds) for target in TARGETS},
        beyond=smallest_general_difference(design, spread or 0.0) if general else None,
        spread=spread if general else None,
    )


def _past_differences(cells: Sequence[Cell], baseline: str) -> list[Floats]:
    return differences(paired_evidence(cells, baseline))


def _pass_rates(records: Iterable[EpisodeRecord]) -> Mapping[str, tuple[int, int]]:
    """Return (passes, episodes) by task hash. What is INVALID measured nothing."""
    found: dict[str, tuple[int, int]] = {}
    for record in records:
        if record.outcome.kind is not OutcomeKind.INVALID:
            passes, episodes = found.get(record.task_hash, (0, 0))
            found[record.task_hash] = (passes + (record.outcome.kind is OutcomeKind.PASS), episodes + 1)
    return found


def _odds(task: TaskRef, pairs: Floats, rates: Mapping[str, tuple[int, int]]) -> tuple[TaskOdds, Source]:
    """Half a success and half a failure are added, so that few observations make nothing certain."""
    passes, episodes = rates.get(task.task_hash, (0, 0))
    if episodes < _ENOUGH:
        return TaskOdds(family=task.family, rate=0.5), Source.ASSUMED
    rate = (passes + 0.5) / (episodes + 1)
    measured = pairs[~np.isnan(pairs)]
    if len(measured) < _ENOUGH:
        return TaskOdds(family=task.family, rate=rate), Source.RATES
    discordant = (float(np.abs(measured).sum()) + 0.5) / (len(measured) + 1)
    return TaskOdds(family=task.family, rate=rate, discordant=discordant), Source.PAIRS


def _spread(tasks: Sequence[Floats], families: Sequence[str]) -> float | None:
    """Return the standard deviation of the families' true differences, averaged over candidates; None if unknown.

    It is what the variance of the families' mean differences exceeds their sampling variance by (method of moments).
    """
    names = list(dict.fromkeys(families))
    if len(names) < FAMILIES_NEEDED or any((~np.isnan(task)).sum(axis=0).min() < 2 for task in tasks):
        return None
    means = np.stack([np.nanmean(task, axis=0) for task in tasks])
    errors = np.stack([np.nanvar(task, axis=0, ddof=1) / (~np.isnan(task)).sum(axis=0) for task in tasks])
    member = np.array([[family == name for family in families] for name in names], dtype=np.float64)
    member /= member.sum(axis=1, keepdims=True)
    observed = (member @ means).var(axis=0, ddof=1)
    sampling = (member**2 @ errors).mean(axis=0)
    return float(np.sqrt(max(0.0, float((observed - sampling).mean()))))
