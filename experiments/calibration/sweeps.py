"""One sweep of real episodes, from an empty store that is removed with it: what is kept is what it showed."""

import asyncio
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from experiments.calibration.served import ServedByWeather
from experiments.calibration.weather import Weather, forecast
from experiments.gate import PairedEvidence, TaskPairs, paired_evidence
from experiments.plan import Plan, PlannedEpisode, make_plan
from experiments.records import ExperimentRecord
from experiments.run_episode import EpisodeParts, run_episode
from experiments.store import EpisodeStore, load_cells
from experiments.suite import OutcomeKind, Suite
from experiments.suites.loader import load_suite
from geode.clock import SystemClock
from geode.config.settings import read_settings
from geode.redaction import Redactor
from geode.serve.services import SharedServices

_KINDS = {kind.value[0]: kind for kind in OutcomeKind}


class Arrangement(StrEnum):
    """The order in which the episodes of a sweep run: as planned, or one variant after the other, which is no pair."""

    INTERLEAVED = "interleaved"
    ONE_AFTER_ANOTHER = "one_after_another"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepJob:
    """What a worker needs to run sweep `number`. The experiment's only seed is this sweep's own."""

    number: int
    experiment: ExperimentRecord
    arrangement: Arrangement
    weather: Weather
    scratch: Path


class SweptTask(BaseModel):
    """The outcomes of one task: a text for each block, with a letter for each arm, the baseline first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_id: str
    family: str
    blocks: tuple[str, ...]


class Sweep(BaseModel):
    """What one sweep showed. `order` names its blocks (place of the task, place in it) in the order of time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    arms: tuple[str, ...]
    tasks: tuple[SweptTask, ...]
    order: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, number: int, evidence: PairedEvidence, order: Sequence[tuple[int, int]]) -> Self:
        """Keep evidence in which nothing is missing."""
        tasks = tuple(
            SweptTask(
                task_id=task.task_id,
                family=task.family,
                blocks=tuple("".join(_letter(kind) for kind in row) for row in task.outcomes),
            )
            for task in evidence.tasks
        )
        return cls(number=number, arms=(evidence.baseline, *evidence.candidates), tasks=tasks, order=tuple(order))

    def evidence(self) -> PairedEvidence:
        """Return what the gate may look at."""
        return PairedEvidence(
            baseline=self.arms[0],
            candidates=self.arms[1:],
            tasks=tuple(
                TaskPairs(
                    task_id=task.task_id,
                    family=task.family,
                    outcomes=tuple(tuple(_KINDS[letter] for letter in block) for block in task.blocks),
                )
                for task in self.tasks
            ),
        )


def _letter(kind: OutcomeKind | None) -> str:
    assert kind is not None, "an episode of a whole sweep did not run"
    return kind.value[0]


def run_sweep(job: SweepJob) -> Sweep:
    """Run every episode of a sweep, through the production loop, and read it back from its store.

    Raises:
        OSError: if the disk fails.
    """
    experiment = job.experiment
    (seed,) = experiment.ruler.seeds
    with tempfile.TemporaryDirectory(dir=job.scratch, prefix=f"{job.number}-") as folder:
        settings, clock = read_settings(Path(folder)), SystemClock()
        store = EpisodeStore(settings.root, clock, Redactor())
        store.write_experiment(experiment)
        plan = make_plan(experiment, [variant.name for variant in experiment.variants], experiment.repeats, store)
        skies = forecast(job.weather, plan.to_run, np.random.default_rng(seed))
        opener = ServedByWeather(SharedServices(settings, clock), iter(skies))
        parts = EpisodeParts(root=settings.root, opener=opener, clock=clock)
        asyncio.run(_run(parts, store, _in_order(plan, job.arrangement, seed)))
        evidence = paired_evidence(load_cells(settings.root, experiment.name), experiment.baseline)
    places = {task.task_id: place for place, task in enumerate(experiment.ruler.tasks)}
    return Sweep.of(job.number, evidence, [(places[block.task_id], block.repetition) for block in plan.blocks])


def _in_order(plan: Plan, arrangement: Arrangement, seed: int) -> list[PlannedEpisode]:
    planned = [episode for block in plan.blocks for episode in block.episodes]
    if arrangement is Arrangement.INTERLEAVED:
        return planned
    names = sorted(plan.keys)
    turns = random.Random(seed).sample(names, len(names))  # noqa: S311  (the order of work, no secret)
    return sorted(planned, key=lambda episode: turns.index(episode.variant))


async def _run(parts: EpisodeParts, store: EpisodeStore, episodes: Sequence[PlannedEpisode]) -> None:
    for episode in episodes:
        spec = episode.spec
        folder = store.begin(spec.episode_key, spec.model_dump(mode="json", by_alias=True))
        task = next(task for task in _suite(spec.suite).tasks if task.task_id == spec.task_id)
        store.finish(await run_episode(parts, spec, task, folder))


@cache
def _suite(name: str) -> Suite:
    return load_suite(name)
