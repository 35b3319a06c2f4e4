"""Worker processes: episodes run side by side on all cores, and one that takes its process with it costs only itself.

Each slot has a pool of its own with one process in it, because a pool that loses a process ends the others, too. What a
worker has done is read from the folder of the episode, whether it could say so or not.
"""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import assert_never

from loky import ProcessPoolExecutor, cpu_count

from experiments.engine import Attempted, Ending, EngineFailed, EpisodeBench
from experiments.plan import PlannedEpisode
from experiments.worker import (
    Cancelled,
    Changed,
    DiskFailed,
    Ended,
    ModelRefused,
    Opened,
    Reply,
    WorkerSpec,
    open_worker,
    run_here,
)
from geode.llm.errors import ConfigurationError

_STARTS_MAX = 10  # in a row: one that is killed while it starts is no reason to give up
_START_S = 120.0
_STOP_S = 10.0  # for a worker to end its episode or itself; then it is killed
_EXIT = re.compile(r"exit codes of the workers are \{(.*)\}")


def cores() -> int:
    """Return how many cores this process may use."""
    return int(cpu_count())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    pool: ProcessPoolExecutor
    pid: int

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


class WorkerEngine:
    """An `EpisodeEngine` whose slots are processes. They start when they are first needed."""

    def __init__(self, bench: EpisodeBench, spec: WorkerSpec, count: int) -> None:
        self._bench, self._spec = bench, spec
        self._workers: list[_Worker | None] = [None] * count
        self._in_vain = 0  # workers that died, one after the other, before they had begun anything

    @property
    def slots(self) -> int:
        """See `EpisodeEngine`."""
        return len(self._workers)

    async def run(self, slot: int, episode: PlannedEpisode) -> Attempted:
        """See `EpisodeEngine`."""
        worker = self._workers[slot]
        if worker is None:
            worker = self._workers[slot] = await _start(self._spec)
        try:
            replied = asyncio.wrap_future(worker.pool.submit(run_here, episode))
            try:
                await asyncio.wait({replied})
            except asyncio.CancelledError:
                await _stop(worker, replied)
                self._bench.recover(episode)
                raise
            reply = replied.result()
        except BrokenProcessPool as error:
            self._workers[slot] = None
            return self._after_death(episode, _cause(error))
        self._in_vain = 0
        return self._attempted(episode, reply)

    async def close(self) -> None:
        """See `EpisodeEngine`."""
        workers = [worker for worker in self._workers if worker is not None]
        ends = [asyncio.create_task(asyncio.to_thread(worker.pool.shutdown)) for worker in workers]
        try:
            if ends:
                await asyncio.wait(ends, timeout=_STOP_S)
        finally:
            for worker, end in zip(workers, ends, strict=True):
                if not end.done():
                    worker.signal(signal.SIGKILL)

    def _attempted(self, episode: PlannedEpisode, reply: Reply) -> Attempted:
        match reply:
            case Ended(ending=Ending.RAN):
                return self._after_end(episode, "its record is gone")
            case Ended(ending=ending, cause=cause):
                return Attempted(ending=ending, record=self._bench.find(episode), cause=cause)
            case Cancelled():
                return self._after_end(episode, "SIGTERM")
            case DiskFailed(code=code, text=text, place=place):
                raise OSError(code, text, place)
            case ModelRefused(text=text):
                raise ConfigurationError(text)
            case Changed(text=text):
                raise EngineFailed(f"{text}; run the same command again, for it to be planned as it is")
            case _:
                assert_never(reply)

    def _after_death(self, episode: PlannedEpisode, cause: str) -> Attempted:
        begun = self._bench.recover(episode)
        attempted = self._after_end(episode, cause)
        if begun or attempted.record is not None:
            return attempted
        self._in_vain += 1
        if self._in_vain >= _STARTS_MAX:
            raise EngineFailed(f"workers die before they begin an episode ({cause}); see what ends them")
        return Attempted(ending=Ending.UNBEGUN)

    def _after_end(self, episode: PlannedEpisode, cause: str) -> Attempted:
        # A worker can die between its record and its reply, so the record decides.
        record = self._bench.find(episode)
        return Attempted(ending=Ending.LOST if record is None else Ending.RAN, record=record, cause=cause)


async def _start(spec: WorkerSpec) -> _Worker:
    cause = ""
    for _ in range(_STARTS_MAX):
        pool = ProcessPoolExecutor(max_workers=1)
        try:
            with _interrupts_held():
                opening = asyncio.wrap_future(pool.submit(open_worker, spec))
            opened: Opened = await asyncio.wait_for(opening, _START_S)
        except BrokenProcessPool as error:
            cause = _cause(error)
        except OSError as error:  # a TimeoutError, too
            cause = str(error) or f"it took more than {_START_S:.0f} s"
            pool.shutdown(wait=False, kill_workers=True)
        except asyncio.CancelledError:
            pool.shutdown(wait=False, kill_workers=True)
            raise
        else:
            if not opened.problem:
                return _Worker(pool=pool, pid=opened.pid)
            pool.shutdown(wait=False)
            raise EngineFailed(opened.problem)
    raise EngineFailed(f"no worker process can be started ({cause}); make room for it, or use executor=local")


async def _stop(worker: _Worker, replied: "asyncio.Future[Reply]") -> None:
    """Have a worker end its episode, and wait until it has, for a limited time. Nothing of the episode runs on."""
    replied.add_done_callback(asyncio.Future.exception)  # asked for, so that the event loop does not tell of it
    worker.signal(signal.SIGTERM)
    try:
        await asyncio.wait({replied}, timeout=_STOP_S)
    finally:  # also when a second interrupt ends the wait
        if not replied.done():
            worker.signal(signal.SIGKILL)
            await asyncio.wait({replied}, timeout=_STOP_S)


def _cause(error: BrokenProcessPool) -> str:
    found = _EXIT.search(str(error))
    return found[1] if found else str(error).strip().partition("\n")[0]


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let a process start that does not see Ctrl-C, which goes to the whole process group, before it has a handler."""
    # It inherits the blocked signal. The tracker of multiprocessing would unblock it, were it started in between.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
