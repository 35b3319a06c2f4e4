"""A drift is looked for where times and repeats allow it, and nowhere else."""

from datetime import timedelta

import pytest

from analysis.foreign_drift import LOGS_MIN, drift_told, find_log_drift
from experiments.drift import DriftKind
from tests.doubles.foreign_logs import START, make_log

STEADY = [0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0]


def test_a_step_within_a_log_is_found_in_its_repeats() -> None:
    """A judge that changes half-way changes every task at the same time."""
    stepped = make_log("a", {"calm": {task: [0] * 6 + [1] * 6 for task in "xyz"}})
    steady = make_log("b", {"calm": dict.fromkeys("xyz", STEADY)})
    first, second = find_log_drift("AB", (stepped, steady))
    assert (first.log, first.score, first.values, first.found.kind) == ("A", "calm", 36, DriftKind.STEP)
    assert (first.found.size, first.found.place) == (pytest.approx(1.0), 18)
    assert first.p <= 0.01
    assert second.p > 0.05
    assert drift_told(first).startswith("drift: calm stepped by +1.00 after 18 of 36 while A ran (p = 0.0010)")


def test_every_series_that_was_tested_is_paid_for() -> None:
    """Looking at twenty scores finds something in one of them."""
    values = {task: [0] * 3 + [1] * 3 for task in "xy"}
    alone = find_log_drift("A", (make_log("a", {"calm": values}),))[0]
    among = find_log_drift("A", (make_log("a", {"calm": values, "odd": values, "even": values}),))[0]
    assert among.p == pytest.approx(3 * alone.p)


def test_one_attempt_a_task_is_no_series_nor_are_attempts_without_times() -> None:
    """A hard task that came late looks like a drift."""
    single = make_log("a", {"calm": {f"t{n}": [n] for n in range(12)}})
    timeless = make_log("b", {"calm": {"x": [0] * 6 + [1] * 6}}, start=None)
    at_once = make_log("c", {"calm": {"x": [0] * 6 + [1] * 6}}, minutes=0)
    assert find_log_drift("ABC", (single, timeless, at_once)) == ()


def test_a_trend_over_many_logs_is_found_with_each_log_as_one_observation() -> None:
    """Logs of one month that grow better by the day are no eight independent candidates. Given in any order."""
    logs = [
        make_log(f"l{n}", {"calm": {"x": [n], "y": [n + 1]}}, start=START + timedelta(days=n)) for n in range(LOGS_MIN)
    ]
    (found,) = find_log_drift("ABCDEFGH", [*logs[4:], *logs[:4]])
    assert (found.log, found.values, found.found.kind) == (None, LOGS_MIN, DriftKind.TREND)
    assert found.found.size == pytest.approx(LOGS_MIN - 1)
    assert "over the logs in the order of time" in drift_told(found)
    assert find_log_drift("ABCDEFG", logs[1:]) == ()
