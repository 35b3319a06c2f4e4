"""Runs the studies of a calibration on all cores, keeps each sweep as it ends, and lets the gate judge them."""

import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from experiments.calibration.ledger import Ledger
from experiments.calibration.study import CalibrationSpec, Study, studies
from experiments.calibration.sweeps import Arrangement, Sweep, SweepJob, run_sweep
from experiments.calibration.tally import Tally, judge, tally
from experiments.gate import gate_spec
from geode.clock import Clock
from geode.config.paths import StateRoot

_EPISODE_S_MAX = 5.0  # on the average of a sweep: without a sweep for so long a worker was lost, or the machine is
_SAY_EVERY_S = 10.0


class CalibrationStopped(Exception):  # noqa: N818  (named by what happened)
    """It cannot go on. What was measured is kept; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A study and what its sweeps say; fewer than were asked for if it was interrupted."""

    study: Study
    tally: Tally
    sweeps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All studies of one command."""

    spec: CalibrationSpec
    measured: tuple[Measured, ...]
    interrupted: bool


def calibrate(
    spec: CalibrationSpec, root: StateRoot, clock: Clock, *, workers: int, say: Callable[[str], None]
) -> Calibration:
    """Run what is missing of the sweeps that are asked for, and judge all of them.

    An interrupt ends the work; what was measured until then is judged and said to be partial.

    Raises:
        ConfigError, SuiteError, NoPlacebo: if it is refused before anything ran; see `studies`.
        CalibrationStopped: if another process measures on this root, or no sweep ends any more.
        LedgerDamaged: if what is on record cannot be read.
        OSError: if the disk fails.
    """
    asked = studies(spec)
    sweeps: dict[str, list[Sweep]] = {study.name: [] for study in asked}
    interrupted = False
    with _scratch(root) as scratch:
        try:
            for study in asked:
                for sweep in _measure(study, root.calibrations, scratch, clock, workers=workers, say=say):
                    sweeps[study.name].append(sweep)
        except KeyboardInterrupt:
            interrupted = True
    measured = tuple(
        Measured(study=study, tally=_judged(study, sweeps[study.name]), sweeps=len(sweeps[study.name]))
        for study in asked
    )
    return Calibration(spec=spec, measured=measured, interrupted=interrupted)


@contextmanager
def _scratch(root: StateRoot) -> Iterator[Path]:
    """Give a folder for episodes, empty at the start and gone at the end, to one process at a time."""
    root.calibrations.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = root.calibrations / "scratch"
    try:
        with filelock.FileLock(root.calibrations / "lock", timeout=0):
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(mode=0o700)
            try:
                yield scratch
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except filelock.Timeout:
        raise CalibrationStopped(
            f"another calibration runs on {root.path}; wait for it, or name another root: --root PATH"
        ) from None


def _measure(
    study: Study, folder: Path, scratch: Path, clock: Clock, *, workers: int, say: Callable[[str], None]
) -> Iterator[Sweep]:
    """Yield the sweeps of a study, those on record first."""
    with closing(Ledger(folder, study)) as ledger:
        known = {sweep.number: sweep for sweep in ledger.sweeps() if sweep.number < study.sweeps}
        yield from known.values()
        jobs = list(study.jobs(set(known), scratch))
        if not jobs:
            return
        say(f"{study.name}: {len(jobs)} sweeps to run, {len(known)} on record")
        started_s = said_s = clock.monotonic_s()
        for count, sweep in enumerate(_run(study, jobs, workers), start=1):
            ledger.add(sweep)
            yield sweep
            if (now_s := clock.monotonic_s()) - said_s >= _SAY_EVERY_S:
                said_s, each_s = now_s, (now_s - started_s) / count
                left_s = each_s * (len(jobs) - count)
                say(f"{study.name}: {count} of {len(jobs)} sweeps, {each_s:.1f} s each, about {left_s:.0f} s left")


def _run(study: Study, jobs: Sequence[SweepJob], workers: int) -> Iterator[Sweep]:
    """Yield the sweep of each job as it ends: run here for one worker, else side by side in other processes."""
    if workers == 1:
        yield from map(run_sweep, jobs)
        return
    limit_s = _EPISODE_S_MAX * _episodes(study)
    with multiprocessing.get_context("spawn").Pool(min(workers, len(jobs)), _begin_worker) as pool:
        ended = pool.imap_unordered(run_sweep, jobs)
        for _ in jobs:
            try:
                yield ended.next(timeout=limit_s)
            except multiprocessing.TimeoutError:
                raise CalibrationStopped(
                    f"{study.name}: no sweep ended for {limit_s:.0f} s; a worker may have been killed. Run the same"
                    " command again: it goes on from what is kept"
                ) from None


def _episodes(study: Study) -> int:
    return len(study.experiment.variants) * len(study.experiment.ruler.tasks) * study.experiment.repeats


def _begin_worker() -> None:
    """Leave interrupts to the parent, which ends its workers, and end with the parent however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _judged(study: Study, sweeps: list[Sweep]) -> Tally:
    spec = gate_spec(study.experiment.ruler)
    interleaved = study.arrangement is Arrangement.INTERLEAVED
    judged = (judge(one, improvements=study.improvements, spec=spec, drift=interleaved) for one in sweeps)
    return tally(judged, study.improvements)
