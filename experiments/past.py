"""What a plan can learn from: finished episodes, read within bounds. A damaged record is passed over.

The experiment's own come first, block by block, so that what a bound cuts off leaves whole pairs; then the newest of
the rest of the store.
"""

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.episode import EpisodeRecord
from experiments.records import ExperimentRecord, Variant, episode_key
from experiments.sinks import Cell, StoredEpisode
from experiments.store import EPISODE_FILE, look_at
from geode.clock import Clock
from geode.config.paths import StateRoot

OWN_MAX = 10_000
OTHERS_MAX = 3_000
_SECONDS_MAX = 2.0  # for each of the two; a plan is looked at by somebody who waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Finished episodes: the experiment's own as cells, and others, the newest first."""

    cells: tuple[Cell, ...]
    others: tuple[EpisodeRecord, ...]

    @property
    def records(self) -> tuple[EpisodeRecord, ...]:
        """All of them."""
        return (*(stored.record for cell in self.cells for stored in cell.episodes), *self.others)


def look_back(
    root: StateRoot,
    experiment: ExperimentRecord,
    clock: Clock,
    *,
    own_max: int = OWN_MAX,
    others_max: int = OTHERS_MAX,
) -> Past:
    """Read what has run under `root`, as far as the bounds allow. It only reads."""
    own: dict[str, list[StoredEpisode]] = {variant.name: [] for variant in experiment.variants}
    keys: set[str] = set()
    until_s = clock.monotonic_s() + _SECONDS_MAX
    for variant, key in _blocks(experiment):
        keys.add(key)
        if len(keys) <= own_max and clock.monotonic_s() < until_s and (stored := _read(root.episode(key))):
            own[variant.name].append(stored)
    until_s = clock.monotonic_s() + _SECONDS_MAX
    others = []
    finished = _finished(root, keys, clock, until_s)
    for folder in (Path(path) for _, path in heapq.nlargest(others_max, finished)):
        if clock.monotonic_s() >= until_s:
            break
        if stored := _read(folder):
            others.append(stored.record)
    cells = (Cell(experiment=experiment, variant=v, episodes=tuple(own[v.name])) for v in experiment.variants)
    return Past(cells=tuple(cells), others=tuple(others))


def _blocks(experiment: ExperimentRecord) -> Iterator[tuple[Variant, str]]:
    ruler = experiment.ruler
    for repetition in range(experiment.repeats):
        for seed in ruler.seeds:
            for task in ruler.tasks:
                for variant in experiment.variants:
                    yield variant, episode_key(variant, task, seed, repetition, ruler.caps)


def _read(folder: Path) -> StoredEpisode | None:
    record = look_at(folder).record
    return StoredEpisode(record=record, folder=folder) if record is not None else None


def _finished(root: StateRoot, known: set[str], clock: Clock, until_s: float) -> Iterator[tuple[float, str]]:
    """Yield when an episode was finished, and its folder."""
    for shelf in root.episodes.iterdir() if root.episodes.is_dir() else ():
        if clock.monotonic_s() >= until_s:
            return
        for folder in os.scandir(shelf):
            if folder.name not in known:
                try:
                    yield os.stat(os.path.join(folder.path, EPISODE_FILE)).st_mtime, folder.path
                except OSError:
                    continue  # not finished, or gone since
