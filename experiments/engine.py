"""What runs an episode, wherever it does: claimed by the process that runs it, looked up once more, begun, stored."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from experiments.claims import Claims, Name, episode_name
from experiments.episode import EpisodeRecord
from experiments.manifest import EpisodeStatus, Manifest, ended
from experiments.plan import PlannedEpisode
from experiments.run_episode import EpisodeParts, OutOfMoney, run_episode, unrun_record
from experiments.store import EpisodeStore, clear_workspaces
from experiments.suite import Task


class Ending(StrEnum):
    """How an attempt at an episode ended."""

    RAN = "ran"
    FOUND = "found"  # another process had finished it
    BUSY = "busy"  # another process is running it
    LOST = "lost"  # the process that ran it died
    OUT_OF_MONEY = "out_of_money"  # it met a cap on spending, and is set aside
    UNBEGUN = "unbegun"  # the process that was to run it died before


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """What came of an attempt. RAN and FOUND have a record, LOST and OUT_OF_MONEY have a cause."""

    ending: Ending
    record: EpisodeRecord | None = None
    cause: str = ""


class EngineFailed(Exception):  # noqa: N818  (named by what happened)
    """No episode can be run any more; the text says why, and what to do."""


class EpisodeEngine(Protocol):
    """Runs episodes, `slots` of them side by side. Each slot is used for one episode at a time."""

    @property
    def slots(self) -> int:
        """How many episodes run side by side."""
        ...

    async def run(self, slot: int, episode: PlannedEpisode) -> Attempted:
        """Attempt an episode. When it is cancelled, nothing of the episode runs on, and half of it is set aside.

        Raises:
            OSError: if the disk fails.
            ConfigurationError: if the model cannot be used.
            EngineFailed: if there is another reason why no episode can be run.
        """
        ...

    async def close(self) -> None:
        """End what the engine has started. Called once, also after an error."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeBench:
    """All that a process needs to run episodes of one experiment, and the way in which it does."""

    parts: EpisodeParts
    store: EpisodeStore
    tasks: Mapping[str, Task]
    claims: Claims
    manifest: Manifest

    def is_busy(self, episode: PlannedEpisode) -> bool:
        """Whether a process is running the episode."""
        return not self.claims.is_free(_name(episode))

    def find(self, episode: PlannedEpisode) -> EpisodeRecord | None:
        """Return the record of an episode that was finished since it was planned."""
        record = self.store.look(episode.spec.episode_key).record
        return record if record != episode.state.record else None

    async def attempt(self, episode: PlannedEpisode) -> Attempted:
        """Run an episode, unless another process runs it or has run it.

        Raises:
            OSError: if the disk fails.
            ConfigurationError: if the model cannot be used.
        """
        with self.claims.held(_name(episode)) as granted:
            if not granted:
                return Attempted(ending=Ending.BUSY)
            if (found := self.find(episode)) is not None:
                return Attempted(ending=Ending.FOUND, record=found)
            try:
                return Attempted(ending=Ending.RAN, record=await self._run(episode))
            except OutOfMoney as stop:
                return Attempted(ending=Ending.OUT_OF_MONEY, cause=str(stop))

    async def _run(self, episode: PlannedEpisode) -> EpisodeRecord:
        spec = episode.spec
        self.manifest.note(episode, EpisodeStatus.STARTED)
        folder = self._begin(episode)
        try:
            record = await run_episode(self.parts, spec, self.tasks[spec.task_id], folder)
            self.store.finish(record)
        except BaseException:
            # Interrupted, out of disk or of money: half an episode is none.
            self._set_aside(episode)
            raise
        self.manifest.note(episode, ended(record))
        return record

    def recover(self, episode: PlannedEpisode) -> bool:
        """Clear away what a process that died left of an episode, unless another has already taken it over.

        Return whether there was anything.
        """
        with self.claims.held(_name(episode)) as granted:
            left = granted and self._clear(episode)
            if left:
                self._set_aside(episode)
            return left

    def give_up(self, episode: PlannedEpisode, reason: str) -> EpisodeRecord | None:
        """Store an episode that cannot be run as INVALID; None if another process has taken it over."""
        with self.claims.held(_name(episode)) as granted:
            if not granted or self.find(episode) is not None:
                return None
            self._begin(episode)
            record = unrun_record(episode.spec, reason, self.parts.clock)
            self.store.finish(record)
            self.manifest.note(episode, ended(record))
            return record

    def _begin(self, episode: PlannedEpisode) -> Path:
        self._clear(episode)
        spec = episode.spec
        return self.store.begin(spec.episode_key, spec.model_dump(mode="json", by_alias=True))

    def _clear(self, episode: PlannedEpisode) -> bool:
        """Return whether somebody died over the episode; nothing of that runs on, then."""
        key = episode.spec.episode_key
        unfinished = self.store.look(key).kind == "unfinished"
        if unfinished:
            clear_workspaces(self.parts.root, key)
        return unfinished

    def _set_aside(self, episode: PlannedEpisode) -> None:
        # A failure to do so does no harm: an unfinished folder is set aside before its episode runs again.
        with suppress(OSError):
            self.store.set_aside(episode.spec.episode_key)
            self.manifest.note(episode, EpisodeStatus.LOST)


def _name(episode: PlannedEpisode) -> Name:
    return episode_name(episode.spec.episode_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Runs episodes on the event loop of this process."""

    bench: EpisodeBench
    slots: int

    async def run(self, slot: int, episode: PlannedEpisode) -> Attempted:
        """See `EpisodeEngine`."""
        del slot
        return await self.bench.attempt(episode)

    async def close(self) -> None:
        """See `EpisodeEngine`: nothing was started."""
