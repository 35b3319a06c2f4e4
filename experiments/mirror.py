"""Finished episodes on their way to the sinks, in one other process, so that tracking never slows or breaks a run.

The other process reads the episode folders itself: what is sent are names. It ends when its pipe is closed, and so
also when this process is killed; a pool's worker would then live on, and hold the databases open. Other commands may
write to the same sinks: each job is done in a turn, and if another had one in between, the sinks are opened anew.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from experiments.catalogue import SINKS_GROUP
from experiments.comparison import ComparisonSink, comparison_table
from experiments.sink_turns import SinksBusy, SinkTurns
from experiments.sinks import Cell, CellSink, EarlySink
from experiments.store import load_cell, load_cells, load_episode, read_experiment
from experiments.written import WrittenCells
from geode.config.settings import Settings

_BATCH = 25  # episodes a message: a few seconds of work, which is what an interrupt waits for at the most
_CLOSE_WAIT_S = 30.0
_SHOWN_CHARS_MAX = 500
_FOR_THE_NEAR_END = frozenset({signal.SIGINT, signal.SIGTERM})


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSpec:
    """What the other process needs to know; `log` takes what its libraries print."""

    settings: Settings
    experiment: str
    sinks: tuple[str, ...]
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traces:
    """Take the traces of these finished episodes; only a sink that takes traces early is asked."""

    variant: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholeCell:
    """Write the cell of a variant, with every episode that is finished, to each sink that has not just that."""

    variant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compare:
    """Show what the gate says of the whole experiment; only a sink that shows verdicts is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Close:
    """Close the sinks: nothing comes after this."""


_Job = _Traces | _WholeCell | _Compare | _Close


@dataclass(frozen=True, slots=True)
class _Problem:
    """What a sink has not done, and why."""

    what: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """What failed, by sink. An empty reply is success."""

    problems: Mapping[str, _Problem]


class SinkMirror:
    """The near end: takes keys of finished episodes, and gives the other process one job at a time.

    Use it on one event loop: `start`, any number of `episode_done`, then `finish`; `stop` in any case.
    """

    def __init__(self, spec: MirrorSpec) -> None:
        self._spec = spec
        self._pending: dict[str, list[str]] = {}
        self._last: list[_Job] = []
        self._at_work: _Job | None = None
        self._ready = False
        self._all_done = asyncio.Event()
        self._problems: dict[tuple[str, str], list[str]] = {}
        self._connection: Connection | None = None
        self._process: SpawnProcess | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What the sinks refused or failed at, each cause once, with the first thing that it prevented."""
        return tuple(
            f"{sink}: {what[0]}{f', and so {len(what) - 1} more' if len(what) > 1 else ''}: {cause}"
            for (sink, cause), what in self._problems.items()
        )

    def start(self) -> None:
        """Start the other process; its sinks open while the first episodes run."""
        # A launcher that runs jobs in processes of its own has another default, which the new process is told of.
        multiprocessing.set_start_method("spawn", force=True)
        context = multiprocessing.get_context("spawn")
        near, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, self._spec), daemon=True)
        # Ctrl-C goes to the whole process group, and so does what `timeout` or a job scheduler sends. Only this process
        # decides what it means, so the other never sees it: it inherits the blocked signals. The tracker of
        # multiprocessing would unblock them, were it started in between.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_NEAR_END)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOR_THE_NEAR_END)
        far.close()
        self._connection = near
        asyncio.get_running_loop().add_reader(near.fileno(), self._on_reply)

    def episode_done(self, variant: str, key: str) -> None:
        """Offer a finished episode."""
        self._pending.setdefault(variant, []).append(key)
        self._send_next()

    async def finish(self, variants: Sequence[str]) -> None:
        """Have the cells of these variants written, and wait until they are."""
        self._pending.clear()
        self._last = [*(_WholeCell(variant=name) for name in variants), _Compare(), _Close()]
        self._send_next()
        if self._connection is not None:
            await self._all_done.wait()

    async def stop(self) -> None:
        """Let the other process end its job and close its sinks. Unwritten cells are written another time."""
        if self._process is None:
            return
        self._disconnect()
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._process.sentinel, ended.set)
        try:
            await asyncio.wait_for(ended.wait(), _CLOSE_WAIT_S)
        except TimeoutError:
            self._note("sinks", _Problem("they are not closed", f"it took more than {_CLOSE_WAIT_S:.0f} s"))
            self._process.kill()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        self._process = None

    def _send_next(self) -> None:
        if not self._ready or self._at_work or self._connection is None:
            return
        self._at_work = self._next_job()
        if self._at_work is not None:
            self._connection.send(self._at_work)

    def _next_job(self) -> _Job | None:
        if self._last:
            return self._last.pop(0)
        variant = max(self._pending, key=lambda name: len(self._pending[name]), default="")
        waiting = self._pending.get(variant, [])
        if len(waiting) < _BATCH:
            return None
        self._pending[variant] = waiting[_BATCH:]
        return _Traces(variant=variant, keys=tuple(waiting[:_BATCH]))

    def _on_reply(self) -> None:
        assert self._connection is not None
        try:
            reply: _Reply = self._connection.recv()
        except (EOFError, OSError):
            self._note("sinks", _Problem("their process died", f"it left {self._spec.log}"))
            self._disconnect()
            self._all_done.set()
            return
        for sink, problem in reply.problems.items():
            self._note(sink, problem)
        match self._at_work:
            case None:
                self._ready = True
            case _Close():
                self._all_done.set()
            case _Traces() | _WholeCell() | _Compare():
                pass
        self._at_work = None
        self._send_next()

    def _note(self, sink: str, problem: _Problem) -> None:
        self._problems.setdefault((sink, problem.cause), []).append(problem.what)

    def _disconnect(self) -> None:
        if self._connection is not None:
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._connection.close()
            self._connection = None


def _serve(connection: Connection, spec: MirrorSpec) -> None:
    """The far end: opens the sinks, does jobs until the pipe is closed, closes the sinks."""
    _log_to(spec.log)
    sinks: dict[str, CellSink] = {}
    turns = SinkTurns(spec.settings.root)

    def in_turn(job: _Job | None) -> _Reply:
        try:
            # Nothing is sent while a job is done: what can be read then is the end of the pipe.
            with turns.turn(give_up=connection.poll) as taken_over:
                problems = _open(spec, sinks) if taken_over else {}
                if job is not None:
                    found = {name: _do(job, spec, name, sink) for name, sink in sinks.items()}
                    problems |= {name: problem for name, problem in found.items() if problem is not None}
                return _Reply(problems=problems)
        except SinksBusy as busy:
            return _Reply(problems=dict.fromkeys(spec.sinks, _Problem("nothing is written", str(busy))))

    try:
        connection.send(in_turn(None))
        while True:
            job = connection.recv()
            connection.send(in_turn(job))
            if isinstance(job, _Close):
                return
    except (EOFError, OSError):
        pass  # the near end has closed the pipe, or is no more
    for sink in sinks.values():
        sink.close()


def _open(spec: MirrorSpec, sinks: dict[str, CellSink]) -> dict[str, _Problem]:
    """Open the sinks, those anew that are open, and return what went wrong."""
    problems = {}
    for name in spec.sinks:
        try:
            if (old := sinks.pop(name, None)) is not None:
                old.close()
            (entry,) = entry_points(group=SINKS_GROUP, name=name)
            sinks[name] = entry.load()(spec.settings)
        except Exception as error:  # noqa: BLE001  (a sink is foreign code; the reply carries whatever it raises)
            problems[name] = _problem("it does not open", error)
    return problems


def _do(job: _Job, spec: MirrorSpec, sink_name: str, sink: CellSink) -> _Problem | None:
    """Do one job on one sink, and return what went wrong."""
    root = spec.settings.root
    try:
        match job:
            case _Close():
                what = "it does not close"
                sink.close()
            case _WholeCell(variant=name):
                what = f"the cell {name!r} is not written"
                experiment = read_experiment(root, spec.experiment)
                _write([load_cell(root, experiment, experiment.variant(name))], spec, sink_name, sink)
            case _Traces(variant=name) if isinstance(sink, EarlySink):
                what = f"traces of {name!r} are not written"
                experiment = read_experiment(root, spec.experiment)
                found = (load_episode(root, key) for key in job.keys)
                sink.write_traces(experiment, experiment.variant(name), [e for e in found if e is not None])
            case _Compare() if isinstance(sink, ComparisonSink):
                what = "the verdicts are not written"
                cells = load_cells(root, spec.experiment)
                _write(cells, spec, sink_name, sink)  # what another command runs is compared, too
                sink.write_comparison(comparison_table(cells))
            case _Traces() | _Compare():
                pass
    except Exception as error:  # noqa: BLE001  (as above: no sink may break another, or the run)
        return _problem(what, error)
    return None


def _write(cells: Sequence[Cell], spec: MirrorSpec, sink_name: str, sink: CellSink) -> None:
    written = WrittenCells(spec.settings.root.experiment(spec.experiment))
    for cell in cells:
        if not written.has(sink_name, cell):
            sink.write(cell)
            written.add(sink_name, cell)


def _problem(what: str, error: Exception) -> _Problem:
    return _Problem(what, f"{type(error).__name__}: {str(error)[:_SHOWN_CHARS_MAX]}")


def _log_to(path: Path) -> None:
    """Send what libraries print to a file, not into the progress display."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
