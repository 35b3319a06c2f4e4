"""The inside of a worker process: runs the episodes that it is handed, one at a time. `workers` is the other side.

The parent decides when to stop: an interrupt of the terminal is left to it, and its SIGTERM cancels the running
episode. When the parent is gone, the worker does the same by itself, and ends.
"""

import asyncio
import os
import signal
import threading
import time
from dataclasses import dataclass

from experiments.claims import Claims
from experiments.completion import CompletionJudges
from experiments.engine import Ending, EpisodeBench
from experiments.manifest import Manifest
from experiments.plan import EpisodeSpec, PlannedEpisode
from experiments.run_episode import EpisodeParts
from experiments.run_spec import SuiteChoice
from experiments.store import EpisodeStore
from experiments.suites.chosen import chosen_suite
from experiments.suites.loader import SuiteError
from geode.clock import SystemClock
from geode.config.settings import Settings
from geode.llm.errors import ConfigurationError
from geode.records.purse import Account
from geode.redaction import Redactor
from geode.serve.catalogues import hook_code
from geode.serve.services import SharedServices
from geode.serve.session_spec import NO_ACCOUNT

_LOOK_FOR_PARENT_S = 0.5
_END_S = 5.0  # what cancelling an episode takes at the most, once the parent is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """What a worker needs to know. It crosses in memory only: the settings hold the environment."""

    settings: Settings
    experiment: str
    suite: SuiteChoice
    targets: tuple[str, ...]
    parent: int
    account: Account = NO_ACCOUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A worker is ready, or cannot be used: then `problem` says why."""

    pid: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt came to its end. What it gave is in the folder of the episode; `cause` is why it gave nothing."""

    ending: Ending
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The worker was told to stop; the episode is set aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFailed:
    """An `OSError`, in its parts."""

    code: int
    text: str
    place: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRefused:
    """The model cannot be used."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What is to be run is no longer what was planned."""

    text: str


Reply = Ended | Cancelled | DiskFailed | ModelRefused | Changed
"""Small, because a worker that is killed inside a long message leaves its reader waiting for the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    bench: EpisodeBench
    parent: int
    runner: asyncio.Runner  # one loop for all episodes: what they share may be bound to it

    async def attempt(self, episode: PlannedEpisode) -> Ended:
        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        assert this is not None
        loop.add_signal_handler(signal.SIGTERM, this.cancel)
        try:
            attempted = await self.bench.attempt(episode)
            return Ended(ending=attempted.ending, cause=attempted.cause)
        finally:
            loop.remove_signal_handler(signal.SIGTERM)  # between episodes it ends the process


_OPENED: list[_Worker] = []  # the one of this process: what is called here has nothing else to keep it in


def open_worker(spec: WorkerSpec) -> Opened:
    """Make a worker of this process. Called first, and once."""
    # A handler, and not SIG_IGN, which the programs that the tools start would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.dup2(2, 1)  # what a hook prints is no part of the report
    threading.Thread(target=_end_with, args=(spec.parent,), daemon=True).start()
    settings, clock = spec.settings, SystemClock()
    try:
        suite = chosen_suite(spec.suite, spec.targets)
    except SuiteError as error:
        return Opened(pid=os.getpid(), problem=str(error))
    bench = EpisodeBench(
        parts=EpisodeParts(
            root=settings.root,
            opener=SharedServices(settings, clock),
            clock=clock,
            account=spec.account,
            completion=CompletionJudges(settings, clock),
        ),
        store=EpisodeStore(settings.root, clock, Redactor.of_environment(dict(settings.environment))),
        tasks={task.task_id: task for task in suite.tasks},
        claims=Claims(settings.root),
        manifest=Manifest(settings.root.experiment(spec.experiment), clock),
    )
    _OPENED.append(_Worker(bench=bench, parent=spec.parent, runner=asyncio.Runner()))
    return Opened(pid=os.getpid())


def run_here(episode: PlannedEpisode) -> Reply:
    """Attempt an episode in this process."""
    (worker,) = _OPENED
    try:
        return Changed(text=changed) if (changed := _changed(worker, episode.spec)) else _run(worker, episode)
    finally:
        if os.getppid() != worker.parent:
            os._exit(1)  # nobody is there to read the reply


def _run(worker: _Worker, episode: PlannedEpisode) -> Reply:
    try:
        return worker.runner.run(worker.attempt(episode))
    except asyncio.CancelledError:
        return Cancelled()
    except OSError as error:
        place = None if error.filename is None else os.fsdecode(error.filename)
        return DiskFailed(code=error.errno or 0, text=error.strerror or str(error), place=place)
    except ConfigurationError as error:
        return ModelRefused(text=str(error))


def _changed(worker: _Worker, spec: EpisodeSpec) -> str:
    """Say what is not what it was when the parent read it. An episode is named by what ran, so nothing else may run."""
    task = worker.bench.tasks.get(spec.task_id)
    if task is None or task.task_hash != spec.task_hash:
        return f"the task {spec.task_id!r} was changed while its sweep ran"
    for hook in spec.scaffold.hooks:
        if hook_code(hook.name) != hook.code:
            return f"the code of the hook {hook.name!r} was changed while its sweep ran"
    return ""


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_END_S)
    os._exit(1)
