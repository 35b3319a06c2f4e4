"""Where finished cells go beside the episode folders. Sinks are derived: each can be deleted and rebuilt."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from experiments.episode import EpisodeRecord
from experiments.records import ExperimentRecord, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEpisode:
    """A finished episode and its folder."""

    record: EpisodeRecord
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A variant on a suite with its seeds and repeats: a view over episodes."""

    experiment: ExperimentRecord
    variant: Variant
    episodes: Sequence[StoredEpisode]


class CellSink(Protocol):
    """Takes cells. Entry points of the group `geode.sinks` name a factory `(Settings) -> CellSink`.

    `write` is called once a cell, from one process at a time, after its episodes are done; calling it again with the
    same or a grown cell must leave the same state as calling it once. It may raise: the error is shown and the run's
    exit code tells, but no episode is lost, and `geode archive rebuild` calls it again.
    """

    def write(self, cell: Cell) -> None:
        """Store one cell and its episodes."""
        ...

    def close(self) -> None:
        """Flush. Called once, also after an error."""
        ...
