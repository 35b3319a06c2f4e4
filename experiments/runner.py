"""Runs the blocks of a plan: who takes which, what another process has done, and when to stop. Engines run episodes.

Several commands can work on one state root. A block is taken by claiming it; one that another process has claimed waits
at the end of the list, and is taken over if that process dies. In the end each of them has the whole result.
"""

import asyncio
import signal
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.budget import Budget
from experiments.claims import Name, block_name
from experiments.engine import Attempted, Ending, EngineFailed, EpisodeBench, EpisodeEngine
from experiments.episode import EpisodeRecord
from experiments.mirror import SinkMirror
from experiments.plan import Block, Plan, PlannedEpisode
from experiments.progress import Progress
from geode.llm.errors import ConfigurationError

_ATTEMPTS_MAX = 3  # at an episode whose process dies: a task that eats all memory would do so for ever
_STUCK_S = 86_400.0  # without an end of any of the episodes that other processes run


class RunStopped(Exception):  # noqa: N818  (named by what happened)
    """The run cannot go on. What has finished is stored; the text says what to do before it is resumed."""


class OverBudget(RunStopped):
    """The budget of this command allows no more."""


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs one plan, once."""

    bench: EpisodeBench
    engine: EpisodeEngine
    budget: Budget
    mirror: SinkMirror | None
    progress: Progress
    poll_s: float = 0.5
    _open: deque[Block] = field(default_factory=deque, init=False)
    _elsewhere: list[Block] = field(default_factory=list, init=False)
    _at_work: int = field(default=0, init=False)
    _moved_s: float = field(default=0.0, init=False)
    _settled: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _refused: str = field(default="", init=False)

    def run(self, plan: Plan, cells: Sequence[str]) -> bool:
        """Run every block, then have `cells` written by the sinks. Return whether it came to the end.

        An interrupt (SIGINT, SIGTERM) cancels the running episodes and returns False; they are run afresh next time.

        Raises:
            RunStopped: if the disk fails, the model cannot be used, or the budget does not allow more.
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
            try:
                await self._run_in_time(plan)
            finally:
                await self.engine.close()
            if self.mirror is not None and cells:
                self.progress.say(f"writing {len(cells)} cells to the sinks")
                await self.mirror.finish(cells)
        finally:
            if self.mirror is not None:
                await self.mirror.stop()

    async def _run_in_time(self, plan: Plan) -> None:
        clock, deadline_s = self.bench.parts.clock, self.budget.deadline_s
        try:
            async with asyncio.timeout(None if deadline_s is None else deadline_s - clock.monotonic_s()):
                await self._run_blocks(plan)
        except TimeoutError:
            raise OverBudget(self.budget.out_of_time) from None

    async def _run_blocks(self, plan: Plan) -> None:
        self._open.extend(plan.blocks)
        self._moved_s = self.bench.parts.clock.monotonic_s()
        try:
            async with asyncio.TaskGroup() as slots:
                for slot in range(self.engine.slots):
                    slots.create_task(self._work(plan.experiment.name, slot))
        except* (OSError, ConfigurationError, EngineFailed) as failures:
            first: BaseException = failures
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise RunStopped(_what_stopped(first, self.bench.parts.root.path)) from first
        if self._refused:
            raise OverBudget(self._refused)
        assert self.progress.run + self.progress.found == plan.to_run, "a slot ended before its work did"

    async def _work(self, experiment: str, slot: int) -> None:
        while (block := await self._next_block(experiment)) is not None:
            self._at_work += 1
            try:
                left = [episode for episode in block.episodes if not await self._run_one(slot, episode)]
            finally:
                self._at_work -= 1
                self.bench.claims.release(_name(experiment, block))
            if left:
                self._elsewhere.append(replace(block, episodes=tuple(left)))

    async def _next_block(self, experiment: str) -> Block | None:
        """Claim and return a block. Wait while all that are left are in the hands of other processes."""
        while (self._open or self._elsewhere) and not self._refused:
            while self._open:
                block = self._open.popleft()
                if self.bench.claims.take(_name(experiment, block)):
                    return block
                self._elsewhere.append(block)
            waiting = sum(len(block.episodes) for block in self._elsewhere)
            if self.bench.parts.clock.monotonic_s() - self._moved_s > _STUCK_S:
                raise EngineFailed(f"other processes hold {waiting} episodes and end none; see whether they hang")
            if not self._at_work:
                self.progress.waiting(waiting)
            await asyncio.sleep(self.poll_s)
            self._open.extend(self._elsewhere)
            self._elsewhere.clear()
        return None

    async def _run_one(self, slot: int, episode: PlannedEpisode) -> bool:
        """Return whether there is nothing left to do for an episode; False if another process is running it."""
        causes: list[str] = []
        while len(causes) < _ATTEMPTS_MAX:
            if self.bench.is_busy(episode):
                return False
            if (found := self.bench.find(episode)) is not None:
                self._moved_s = self.bench.parts.clock.monotonic_s()
                self.progress.episode_found(episode.variant, found.outcome)
                return True
            if not await self._admit(episode):
                return True
            attempted = await self._attempt(slot, episode)
            match attempted:
                case Attempted(ending=Ending.RAN, record=EpisodeRecord() as record):
                    self._note_run(episode, record)
                    return True
                case Attempted(ending=Ending.LOST, cause=cause):
                    causes.append(cause)
                    self.progress.say(
                        f"the process of an episode died ({cause}), {len(causes)} of {_ATTEMPTS_MAX} times"
                    )
                case Attempted(ending=Ending.OUT_OF_MONEY, cause=cause):
                    self._refused = self._refused or cause
                    return True
                case _:
                    pass  # it was not begun: look again, who has it
        reason = f"the process that ran it died {len(causes)} times ({', '.join(causes)})"
        given_up = self.bench.give_up(episode, reason)
        if given_up is not None:
            self._note_run(episode, given_up)
        return given_up is not None

    async def _attempt(self, slot: int, episode: PlannedEpisode) -> Attempted:
        key = episode.spec.episode_key
        attempted = None
        try:
            attempted = await self.engine.run(slot, episode)
        finally:
            if attempted is None or attempted.ending in {Ending.RAN, Ending.LOST}:
                self.budget.settle(key, attempted.record if attempted is not None else None)
            else:
                self.budget.release(key)
            self._settled.set()
        return attempted

    async def _admit(self, episode: PlannedEpisode) -> bool:
        """Return whether the budget lets an episode start. If not, the run ends when the running ones have."""
        while not self._refused and (refusal := self.budget.admit(episode.spec)) is not None:
            if not self.budget.worth_waiting(episode.spec):
                self._refused = refusal
                break
            self._settled.clear()
            await self._settled.wait()
        return not self._refused

    def _note_run(self, episode: PlannedEpisode, record: EpisodeRecord) -> None:
        self._moved_s = self.bench.parts.clock.monotonic_s()
        self.progress.episode_done(episode.variant, record.outcome)
        if self.mirror is not None:
            self.mirror.episode_done(episode.variant, episode.spec.episode_key)


def _name(experiment: str, block: Block) -> Name:
    return block_name(experiment, block.task_id, block.seed, block.repetition)


def _what_stopped(error: BaseException, root: Path) -> str:
    match error:
        case OSError():
            where = error.filename or root  # a write to an open file does not say which
            why = error.strerror or error
            return f"the disk failed at {where}: {why}; make room or repair it, then run the same command"
        case ConfigurationError():
            return f"the model cannot be used: {error}"
        case _:
            return str(error)
