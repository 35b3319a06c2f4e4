"""What the episodes of a plan will use, judged by past ones in the same roles: money, model calls, tokens and time.

A task is forecast from its own past; one without is taken to be like one of the others, nobody knows which. The sum is
drawn, by a fixed seed: the mean and the spread of a task from what its past episodes leave open (the posterior of a
normal distribution under the reference prior: Student's t), then the sum of as many episodes as are to run. No sum is
drawn that would need episodes beyond the cheapest and the dearest seen.

Time is the larger of two: what the episodes take by the clock, shared among as many as run side by side, and what they
take of the processor, which they queue for. Start, sinks and the work between episodes are not in it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from experiments.budget import Amount, unpriced_models, worst_case
from experiments.episode import EpisodeRecord
from experiments.plan import EpisodeSpec
from experiments.suite import OutcomeKind

Floats = NDArray[np.float64]

_DRAWS = 1_000
_SEED = 20_260
_ENOUGH = 3  # past episodes of a task; fewer show no spread
_RANGE = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A forecast: as likely above the median as below, and between `low` and `high` with a probability of 90 %."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is forecast for `episodes`, with what it rests on. A range is None where nothing is known.

    `same_task` of the episodes are judged by the past of their own task, `other_tasks` by that of others; the rest is
    in no range. `most` is what no run can pass, `most_of_one` what no episode can. `unpriced` names models with a past
    whose price is not known.
    """

    episodes: int
    same_task: int
    other_tasks: int
    past: int
    cost_usd: Range | None
    calls: Range | None
    tokens: Range | None
    seconds: Range | None
    most: Amount
    most_of_one: Amount
    unpriced: tuple[str, ...]
    simulated: bool

    @property
    def unknown(self) -> int:
        """Episodes of whose roles nothing has run."""
        return self.episodes - self.same_task - self.other_tasks


_Roles = tuple[tuple[str, str], ...]
_Needed = Mapping[tuple[_Roles, str], int]
_Samples = Mapping[_Roles, Mapping[str, Floats]]
"""roles -> task_hash -> one value a past episode."""


def forecast(
    specs: Sequence[EpisodeSpec], past: Iterable[EpisodeRecord], *, side_by_side: int = 1, processes: int = 1
) -> Forecast:
    """Forecast what `specs` will use.

    Args:
        specs: the episodes that are to run.
        past: finished episodes. INVALID ones say nothing about those that work, and are left out.
        side_by_side: how many run at a time, over all processes.
        processes: how many of them can compute at a time.
    """
    needed = Counter((_roles(spec.roles), spec.task_hash) for spec in specs)
    played = {roles for roles, _ in needed}
    worst = [worst_case(spec) for spec in specs]
    used = [r for r in past if r.outcome.kind is not OutcomeKind.INVALID and _roles(r.roles) in played]
    tokens = _samples(used, _tokens)
    wall = _drawn_sum(needed, _samples(used, lambda record: record.wall_s))
    cpu = _drawn_sum(needed, _samples(used, lambda record: record.cpu_s))
    shared = min(side_by_side, max(1, len(specs)))
    queued = cpu / min(processes, shared) / _side_by_side(used) if cpu is not None else None
    unpriced = tuple(sorted({model for record in used for model in unpriced_models(record)}))
    same_task = sum(count for (roles, task), count in needed.items() if _own(tokens, roles, task) is not None)
    known = sum(count for (roles, _), count in needed.items() if roles in tokens)
    return Forecast(
        episodes=len(specs),
        same_task=same_task,
        other_tasks=known - same_task,
        past=len(used),
        cost_usd=None if unpriced else _range(_drawn_sum(needed, _samples(used, lambda record: record.cost_usd))),
        calls=_range(_drawn_sum(needed, _samples(used, _calls))),
        tokens=_range(_drawn_sum(needed, tokens)),
        seconds=_range(np.maximum(wall / shared, queued) if wall is not None and queued is not None else None),
        most=sum(worst, Amount()),
        most_of_one=Amount(
            cost_usd=max((amount.cost_usd for amount in worst), default=Decimal(0)),
            calls=max((amount.calls for amount in worst), default=0),
        ),
        unpriced=unpriced,
        simulated=all(model.startswith("simulated/") for spec in specs for model in spec.roles.values()),
    )


def _drawn_sum(needed: _Needed, samples: _Samples) -> Floats | None:
    """Draw what all episodes together take; None if nothing is known of any of them."""
    random = np.random.default_rng(_SEED)
    total = np.zeros(_DRAWS)
    for (roles, task), count in sorted(needed.items()):
        if roles in samples:
            own = _own(samples, roles, task)
            alike = [own] if own is not None else list(samples[roles].values())
            which = random.integers(len(alike), size=_DRAWS)
            sums = np.stack([_drawn_sums(values, count, random) for values in alike])
            total += sums[which, np.arange(_DRAWS)]
    return total if any(roles in samples for roles, _ in needed) else None


def _drawn_sums(values: Floats, count: int, random: np.random.Generator) -> Floats:
    known = len(values)
    spread = np.sqrt(values.var() * known / random.chisquare(max(1, known - 1), _DRAWS))
    means = values.mean() + spread / np.sqrt(known) * random.standard_normal(_DRAWS)
    sums = count * means + spread * np.sqrt(count) * random.standard_normal(_DRAWS)
    return np.asarray(np.clip(sums, count * values.min(), count * values.max()))


def _own(samples: _Samples, roles: _Roles, task: str) -> Floats | None:
    values = samples.get(roles, {}).get(task)
    return values if values is not None and len(values) >= _ENOUGH else None


def _samples(records: Iterable[EpisodeRecord], value: Callable[[EpisodeRecord], float]) -> _Samples:
    """Sort a value of each episode by roles and task. Roles of which hardly anything has run are not in it."""
    found: dict[_Roles, dict[str, list[float]]] = {}
    for record in records:
        found.setdefault(_roles(record.roles), {}).setdefault(record.task_hash, []).append(value(record))
    return {
        roles: {task: np.array(values) for task, values in tasks.items()}
        for roles, tasks in found.items()
        if sum(map(len, tasks.values())) >= _ENOUGH
    }


def _roles(roles: Mapping[str, str]) -> _Roles:
    return tuple(sorted(roles.items()))


def _calls(record: EpisodeRecord) -> float:
    return float(sum(usage.calls for usage in record.usage.values()))


def _tokens(record: EpisodeRecord) -> float:
    return float(
        sum(
            usage.uncached_input_tokens + usage.cache_write_tokens + usage.cache_read_tokens + usage.output_tokens
            for usage in record.usage.values()
        )
    )


def _side_by_side(records: Sequence[EpisodeRecord]) -> float:
    """Return how many of these ran at a time, on average: each of them then counts the processor time of all."""
    busy_s, until = 0.0, None
    for record in sorted(records, key=lambda record: record.started_at):
        begin = record.started_at if until is None else max(until, record.started_at)
        busy_s += max(0.0, (record.ended_at - begin).total_seconds())
        until = record.ended_at if until is None else max(until, record.ended_at)
    return max(1.0, sum(record.wall_s for record in records) / busy_s) if busy_s else 1.0


def _range(draws: Floats | None) -> Range | None:
    if draws is None:
        return None
    low, median, high = np.quantile(draws, _RANGE)
    return Range(low=float(low), median=float(median), high=float(high))
