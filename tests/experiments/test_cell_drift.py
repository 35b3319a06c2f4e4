"""A comparison tells when the pass rate moved while it ran, and whether its differences are safe from that."""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np

from analysis.compare import compare, comparison_to_json
from experiments.cell_drift import drift, drift_warning
from experiments.sinks import Cell, StoredEpisode
from tests.doubles.cells import AT, Letters, drawn, make_cells

REPEATS = 24
NAMES = ("baseline", "hook", "placebo")


def letters(before: float, after: float) -> Letters:
    """Both halves of the run, each at its own pass rate."""
    first, second = (drawn({n: {"a": rate, "b": rate} for n in NAMES}, REPEATS // 2, 7) for rate in (before, after))
    return {name: {task: first[name][task] + second[name][task] for task in "ab"} for name in NAMES}


def timed(cells: list[Cell], *, one_after_the_other: bool = False) -> list[Cell]:
    """Let repetitions run a minute apart, all variants within it, or each variant a day after the other."""

    def at(arm: int, stored: StoredEpisode) -> StoredEpisode:
        record = stored.record
        minutes = record.repetition + arm * (1_440 if one_after_the_other else 0.1)
        started = AT + timedelta(minutes=minutes, seconds=ord(record.task_id))
        return replace(stored, record=record.model_copy(update={"started_at": started}))

    return [replace(cell, episodes=[at(arm, e) for e in cell.episodes]) for arm, cell in enumerate(cells)]


def test_a_step_is_told_with_size_time_and_what_it_means() -> None:
    """The reader must know when, how much, and whether the table can still be believed."""
    comparison = compare(timed(make_cells(letters(0.9, 0.4))), "baseline")
    told = next(warning for warning in comparison.warnings if warning.startswith("drift"))
    assert "stepped by -" in told
    assert "of 48 blocks, 2030-01-01 00:1" in told
    assert "p = 0.0005" in told
    assert "interleaved" in told


def test_a_run_that_stands_still_is_not_told_but_its_p_is_json() -> None:
    """A warning that is always there is read by nobody."""
    comparison = compare(timed(make_cells(letters(0.6, 0.6))), "baseline")
    assert not any(warning.startswith("drift") for warning in comparison.warnings)
    body = json.loads(json.dumps(comparison_to_json(comparison)))
    assert body["drift"]["found"]["p"] > 0.05
    assert body["drift"]["blocks"] == 48


def test_variants_that_ran_on_other_days_are_not_called_safe() -> None:
    """Interleaving protects differences; what was not interleaved is not protected."""
    cells = timed(make_cells(letters(0.9, 0.4)), one_after_the_other=True)
    seen = drift(cells)
    assert seen is not None
    assert not seen.interleaved
    assert "side by side" in (drift_warning(seen, 0.95) or "")


def test_a_variant_that_is_worse_and_ran_later_is_no_drift() -> None:
    """Each variant is compared with itself: its own rate is its own."""
    rates = {"baseline": {"a": 0.9, "b": 0.9}, "hook": {"a": 0.2, "b": 0.2}}
    seen = drift(timed(make_cells(drawn(rates, REPEATS, 8)), one_after_the_other=True))
    assert seen is not None
    assert seen.found.p > 0.05


def test_a_worse_variant_that_joined_half_way_is_no_drift() -> None:
    """Blocks that lack it are not better blocks."""
    rates = {"baseline": {"a": 0.9, "b": 0.9}, "hook": {"a": 0.2, "b": 0.2}}
    found = drawn(rates, REPEATS, 9)
    found["hook"] = {task: "." * 12 + text[12:] for task, text in found["hook"].items()}
    seen = drift(timed(make_cells(found)))
    assert seen is not None
    assert seen.found.p > 0.05


def test_invalid_episodes_are_no_failures_here_either() -> None:
    """A night in which the infrastructure failed is not a night in which the agent did."""
    text = "PF" * 6
    holes = {name: {"a": text + "I" * 10 + "PF" * 2} for name in ("baseline", "hook")}
    seen = drift(timed(make_cells(holes)))
    assert seen is not None
    assert seen.blocks == 16
    assert seen.found.p > 0.05


def test_without_an_order_in_time_nothing_is_tested() -> None:
    """Equal times are no order; made-up ones would be a finding about nothing."""
    assert drift(make_cells(letters(0.9, 0.1))) is None
    assert drift_warning(None, 0.95) is None


def test_the_size_is_that_of_all_variants_together() -> None:
    """The mean of the later half minus that of the earlier."""
    seen = drift(timed(make_cells(letters(1.0, 0.5))))
    assert seen is not None
    halves = [text[REPEATS // 2 :] for tasks in letters(1.0, 0.5).values() for text in tasks.values()]
    assert np.isclose(seen.found.size, np.mean([half.count("P") / len(half) for half in halves]) - 1, atol=0.06)
