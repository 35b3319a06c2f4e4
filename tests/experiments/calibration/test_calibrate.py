"""A calibration goes on where it was stopped, and says what it has until then."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import filelock
import pytest

from experiments.calibration.calibrate import CalibrationStopped, calibrate
from experiments.calibration.ledger import LedgerDamaged
from experiments.calibration.study import CalibrationSpec
from experiments.suites.loader import SuiteError
from geode.clock import SystemClock
from geode.config.paths import StateRoot
from tests.done.command import TIME_LIMIT_S, start

ASKED = ("--placebos", "2", "--repeats", "2", "--tasks", "config_port,csv_totals")


class Measuring:
    """Calibrates under a folder, and keeps what was said."""

    def __init__(self, folder: Path) -> None:
        self.root, self.said = StateRoot(folder), list[str]()

    def __call__(self, spec: CalibrationSpec) -> dict[str, int]:
        self.said = []
        found = calibrate(spec, self.root, SystemClock(), workers=1, say=self.said.append)
        return {one.study.name: one.sweeps for one in found.measured}

    @property
    def ledger(self) -> Path:
        (path,) = self.root.calibrations.glob("placebos-*.jsonl")
        return path


@pytest.mark.slow
def test_what_is_on_record_is_not_run_again(small: CalibrationSpec, tmp_path: Path) -> None:
    """Half a night's work is worth keeping; a cut line was never a sweep, and more sweeps are only added."""
    measure = Measuring(tmp_path)
    assert measure(small) == {"placebos": 2, "control": 1, "no_pairs": 1}
    kept = measure.ledger.read_text()
    assert measure(small) == {"placebos": 2, "control": 1, "no_pairs": 1}
    assert (measure.said, measure.ledger.read_text()) == ([], kept)
    measure.ledger.write_text(kept[:-9])
    assert measure(replace(small, sweeps=3)) == {"placebos": 3, "control": 1, "no_pairs": 1}
    assert measure.said == ["placebos: 2 sweeps to run, 1 on record"]
    assert sorted(path.suffix for path in measure.root.calibrations.iterdir()) == ["", ".jsonl", ".jsonl", ".jsonl"]
    measure.ledger.write_text(kept.replace('"order"', '"odder"'))
    with pytest.raises(LedgerDamaged, match=r"line 2 is no sweep .* move the file away"):
        measure(small)


def test_two_do_not_measure_on_one_root(small: CalibrationSpec, tmp_path: Path) -> None:
    """The second would empty the folder in which the first runs its episodes."""
    measure = Measuring(tmp_path)
    measure.root.calibrations.mkdir()
    with (
        filelock.FileLock(measure.root.calibrations / "lock"),
        pytest.raises(CalibrationStopped, match="another calibration runs on"),
    ):
        measure(small)


def test_an_unknown_task_is_refused_before_anything_runs(small: CalibrationSpec, tmp_path: Path) -> None:
    """With the nearest name that there is."""
    measure = Measuring(tmp_path / "root")
    with pytest.raises(SuiteError, match="config_port"):
        measure(replace(small, tasks=("config_prot",)))
    assert not (tmp_path / "root").exists()


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_stopped_it_leaves_no_process_and_goes_on(tmp_path: Path, sent: signal.Signals) -> None:
    """An interrupt gives the figures so far. A kill gives nothing, and still no worker may go on without its parent."""
    process = start(tmp_path, "gate", "calibrate", *ASKED, "--sweeps", "400", "--root", str(tmp_path))
    _wait(lambda: any(tmp_path.glob("calibrations/scratch/4-*")) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    process.send_signal(sent)
    out, _ = process.communicate(timeout=TIME_LIMIT_S)
    _wait(lambda: not _alive(process.pid))
    if sent is signal.SIGINT:
        assert process.returncode == 130
        assert "of 400 sweeps: partial)" in out
        assert out.endswith("interrupted: the same command goes on from here\n")
        assert not (tmp_path / "calibrations" / "scratch").exists()
    else:
        assert process.returncode == -sent


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
