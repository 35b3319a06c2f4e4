"""Where finished cells go beside the episode folders. Sinks are derived: each can be deleted and rebuilt."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

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
    exit code tells, but no episode is lost, and `geode archive rebuild` calls it again. When it returns, all is stored:
    the next to write may be another process, and a sink is then closed, and opened anew before it is called again.
    """

    def write(self, cell: Cell) -> None:
        """Store one cell and its episodes."""
        ...

    def close(self) -> None:
        """Let go of what is open. Called once, also after an error."""
        ...


@runtime_checkable
class EarlySink(CellSink, Protocol):
    """A sink that can take traces of finished episodes before their cell is complete, while others still run.

    `write_traces` is called any number of times for one cell, from the process that calls `write`. It may raise like
    `write`, which is called later in any case and must then find, or store, the same traces.
    """

    def write_traces(self, experiment: ExperimentRecord, variant: Variant, episodes: Sequence[StoredEpisode]) -> None:
        """Store the traces of these episodes."""
        ...
