"""Runs the blocks of a plan on one event loop, stores each episode as it ends, and never loses one that has ended."""

import asyncio
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.manifest import EpisodeStatus, Manifest
from experiments.mirror import SinkMirror
from experiments.plan import Block, Plan, PlannedEpisode
from experiments.progress import Progress
from experiments.run_episode import EpisodeParts, run_episode
from experiments.store import EpisodeStore
from experiments.suite import OutcomeKind, Task
from geode.llm.errors import ConfigurationError


class RunStopped(Exception):  # noqa: N818  (named by what happened)
    """The run cannot go on. What has finished is stored; the text says what to do before it is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecutor:
    """Runs blocks in this process. `concurrency` episodes wait for their models side by side."""

    parts: EpisodeParts
    store: EpisodeStore
    tasks: Mapping[str, Task]
    manifest: Manifest
    mirror: SinkMirror | None
    progress: Progress
    concurrency: int = 1

    def run(self, plan: Plan, cells: Sequence[str]) -> bool:
        """Run every block, then have `cells` written by the sinks. Return whether it came to the end.

        An interrupt (SIGINT, SIGTERM) cancels the running episodes and returns False; they are run afresh next time.

        Raises:
            RunStopped: if the disk fails or the model cannot be used.
        """
        try:
            asyncio.run(self._run(plan, cells))
        except (KeyboardInterrupt, asyncio.CancelledError):
            return False
        return True

    async def _run(self, plan: Plan, cells: Sequence[str]) -> None:
        this = asyncio.current_task()
        assert this is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
        if self.mirror is not None and cells:
            self.mirror.start()
        try:
            await self._run_blocks(plan)
            if self.mirror is not None and cells:
                self.progress.say(f"writing {len(cells)} cells to the sinks")
                await self.mirror.finish(cells)
        finally:
            if self.mirror is not None:
                await self.mirror.stop()

    async def _run_blocks(self, plan: Plan) -> None:
        blocks = iter(plan.blocks)  # shared: a worker that is free takes the next block
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.concurrency):
                    workers.create_task(self._work(blocks))
        except* (OSError, ConfigurationError) as failures:
            first: BaseException = failures
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise RunStopped(_what_stopped(first, self.store.root.path)) from first

    async def _work(self, blocks: Iterator[Block]) -> None:
        for block in blocks:
            for episode in block.episodes:
                await self._run_one(episode)

    async def _run_one(self, episode: PlannedEpisode) -> None:
        spec = episode.spec
        self.manifest.note(episode, EpisodeStatus.STARTED)
        folder = self.store.begin(spec.episode_key, spec.model_dump(mode="json", by_alias=True))
        try:
            record = await run_episode(self.parts, spec, self.tasks[spec.task_id], folder)
            self.store.finish(record)
        except BaseException:
            # Interrupted or out of disk: half an episode is none. It is moved away; a failure to do so does no harm,
            # because an unfinished folder is set aside before its episode runs again.
            self._set_aside(episode)
            raise
        invalid = record.outcome.kind is OutcomeKind.INVALID
        self.manifest.note(episode, EpisodeStatus.FAILED if invalid else EpisodeStatus.DONE)
        self.progress.episode_done(episode.variant, record.outcome)
        if self.mirror is not None:
            self.mirror.episode_done(episode.variant, spec.episode_key)

    def _set_aside(self, episode: PlannedEpisode) -> None:
        try:
            self.store.set_aside(episode.spec.episode_key)
            self.manifest.note(episode, EpisodeStatus.LOST)
        except OSError as error:
            self.progress.say(f"an unfinished episode stays where it is: {error}")


def _what_stopped(error: BaseException, root: Path) -> str:
    if isinstance(error, OSError):
        where = error.filename or root  # a write to an open file does not say which
        return (
            f"the disk failed at {where}: {error.strerror or error}; make room or repair it, then run the same command"
        )
    return f"the model cannot be used: {error}"
