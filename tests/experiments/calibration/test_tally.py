"""Counts are of the right sweeps, and their intervals are the textbook's."""

from datetime import timedelta

import numpy as np
import pytest

from benchmarks.error_rates import APPRENTICE, BOTH, Line
from experiments.calibration.sweeps import Sweep, SweptTask
from experiments.calibration.tally import Count, judge, tally
from experiments.cell_drift import drift
from experiments.gate import GateSpec, VerdictKind
from experiments.sinks import Cell, StoredEpisode
from tests.doubles.cells import AT, make_cells


def sweep(*arms: str) -> Sweep:
    """One task; a text an arm, the baseline first, a letter a block; blocks ran in the order of the letters."""
    blocks = tuple("".join(letters) for letters in zip(*arms, strict=True))
    names = ("baseline", *(f"c{number}" for number in range(1, len(arms))))
    task = SweptTask(task_id="t", family="f", blocks=blocks)
    return Sweep(number=0, arms=names, tasks=(task,), order=tuple((0, block) for block in range(len(blocks))))


LOW, HIGH, EVEN = "F" * 38 + "PP", "P" * 38 + "FF", "PF" * 20


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(0, 200, 0.0, 0.01828), (10, 200, 0.02423, 0.09003), (200, 200, 0.98172, 1.0), (0, 0, 0.0, 1.0)],
)
def test_intervals_are_those_of_clopper_and_pearson(count: int, of: int, low: float, high: float) -> None:
    """0 of n has the upper end 1 - 0.025 ** (1 / n); of nothing nothing is known."""
    assert Count(count=count, of=of).interval == pytest.approx((low, high), abs=1e-5)


def test_a_sweep_is_counted_once_for_whatever_its_placebos_got() -> None:
    """The limit is for the whole sweep, not for a candidate."""
    judged = [
        judge(one, improvements=(), spec=GateSpec())
        for one in (sweep(LOW, HIGH, HIGH), sweep(HIGH, LOW, HIGH), sweep(EVEN, EVEN, LOW), sweep(EVEN, EVEN, EVEN))
    ]
    found = tally(judged, ())
    assert (found.some_keep.count, found.some_reject.count, found.decided.count) == (1, 2, 3)
    assert (found.naive.count, found.large_gain.count) == (1, 1)
    assert (found.some_invalid.count, found.drift.of) == (0, 4)


def test_a_gain_of_ten_points_is_ten_points() -> None:
    """Four of forty, although binary fractions make it 0.0999..."""
    found = judge(sweep("P" * 20 + "F" * 20, "P" * 24 + "F" * 16), improvements=(), spec=GateSpec())
    assert (found.naive, found.large_gain) == (True, True)
    found = judge(sweep("P" * 20 + "F" * 20, "P" * 23 + "F" * 17), improvements=(), spec=GateSpec())
    assert (found.naive, found.large_gain) == (True, False)


def test_improvements_are_no_placebos() -> None:
    """A gate that keeps what helps is right, and one that keeps nothing has no power."""
    found = tally([judge(sweep(LOW, HIGH, LOW), improvements=("c1",), spec=GateSpec())], ("c1",))
    assert found.improvements["c1"].count == 1
    assert (found.some_keep.count, found.naive.count, found.large_gain.count) == (0, 0, 0)


def test_invalid_verdicts_are_counted_apart() -> None:
    """A gate that refuses to judge decides nothing, and that must not look like care."""
    found = tally([judge(sweep(EVEN, "I" * 10 + EVEN[10:]), improvements=(), spec=GateSpec())], ())
    assert (found.some_invalid.count, found.decided.count) == (1, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_drift_is_reported_as_geode_compare_reports_it(seed: int) -> None:
    """From the letters in their order, what the comparison finds in records with times."""
    line = Line(rates=[APPRENTICE] * 3, repeats=6, sweeps=1, seed=seed, weather=BOTH if seed % 2 else BOTH.__class__())
    drawn = line.draw(0, np.random.default_rng(seed))
    spec = GateSpec(confidence=0.6)  # where some of these are reported and some are not
    letters = {
        arm: {task.task_id: "".join(block[place] for block in task.blocks) for task in drawn.tasks}
        for place, arm in enumerate(drawn.arms)
    }
    found = drift([_in_time(cell, drawn) for cell in make_cells(letters)])
    assert found is not None
    assert judge(drawn, improvements=(), spec=spec).drift == (found.found.p <= 0.4)


def _in_time(cell: Cell, drawn: Sweep) -> Cell:
    place = {(drawn.tasks[task].task_id, block): at for at, (task, block) in enumerate(drawn.order)}
    episodes = tuple(
        StoredEpisode(
            folder=one.folder,
            record=one.record.model_copy(
                update={"started_at": AT + timedelta(seconds=place[one.record.task_id, one.record.repetition])}
            ),
        )
        for one in cell.episodes
    )
    return Cell(experiment=cell.experiment, variant=cell.variant, episodes=episodes)


def test_without_pairs_no_drift_is_looked_for() -> None:
    """A block whose episodes lie hours apart has no place in time."""
    found = judge(sweep(LOW, HIGH), improvements=(), spec=GateSpec(), drift=False)
    assert found.drift is None
    assert found.verdicts == {"c1": VerdictKind.KEEP}
    assert tally([found], ()).drift.of == 0
