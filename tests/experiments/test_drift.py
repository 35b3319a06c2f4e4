"""A drift is found at the size it has, chance is not, and hard tasks that come late are no drift."""

import numpy as np
import pytest

from experiments.drift import DriftKind, find_drift
from experiments.gate import GateSpec, PairedEvidence, TaskPairs, VerdictKind, paired_fixed
from experiments.stats import Floats
from experiments.suite import OutcomeKind

TASKS, REPEATS, ARMS = 6, 20, 4
STRATA = np.tile(np.arange(TASKS), REPEATS)
"""In the order of time: every task once a round."""


def outcomes(random: np.random.Generator, drift_sd: float) -> Floats:
    """Draw one sweep in which no arm differs: a row a block, a column an arm.

    A block passes if its skill, the task's level plus Student's t with 3 degrees of freedom (failures come in heavy
    tails) and a part that its arms share, lies above zero. From half-way on skill is lower by `drift_sd`.
    """
    level = np.linspace(-0.5, 1.5, TASKS)[STRATA]
    late = np.arange(len(STRATA)) >= len(STRATA) / 2
    shared = 0.5 * random.standard_normal(len(STRATA))
    noise = random.standard_t(3, (len(STRATA), ARMS)) / np.sqrt(3)
    return np.asarray((level + shared - drift_sd * late)[:, None] + noise > 0, dtype=np.float64)


def p_value(scores: Floats) -> float:
    found = find_drift(scores.mean(axis=1), STRATA)
    assert found is not None
    return found.p


def test_a_drift_of_one_sd_half_way_is_found_where_and_as_large_as_it_is() -> None:
    """Size and place are what a person goes and looks for: an update of a provider, a full disk."""
    scores = outcomes(np.random.default_rng(1), drift_sd=1.0)
    found = find_drift(scores.mean(axis=1), STRATA)
    assert found is not None
    assert found.kind is DriftKind.STEP
    assert found.p == pytest.approx(0.0005)
    assert abs(found.place - len(STRATA) / 2) <= 6
    half = len(STRATA) // 2
    assert found.size == pytest.approx(scores[half:].mean() - scores[:half].mean(), abs=0.08)


def test_a_drift_of_one_sd_is_nearly_always_found() -> None:
    """A test that misses what it is there for is a stub."""
    random = np.random.default_rng(2)
    assert sum(p_value(outcomes(random, 1.0)) <= 0.05 for _ in range(30)) >= 28


def test_a_run_that_stands_still_is_called_a_drift_in_one_of_twenty() -> None:
    """At a true rate of 5 %, more than 24 of 240 happen with a probability below 0.1 %; none would be below 0.01 %."""
    random = np.random.default_rng(3)
    called = sum(p_value(outcomes(random, 0.0)) <= 0.05 for _ in range(240))
    assert 1 <= called <= 24


def test_a_drift_decides_nothing_between_interleaved_arms() -> None:
    """All arms of a block meet the same provider, so that it is in none of their differences."""
    random = np.random.default_rng(4)
    decided = sum(
        any(verdict.kind is not VerdictKind.UNDECIDED for verdict in paired_fixed(evidence(scores), GateSpec()))
        for scores in (outcomes(random, 1.0) for _ in range(60))
    )
    assert decided <= 8  # of 60; exceeded with a probability below 0.3 % at a true rate of 5 %


def evidence(scores: Floats) -> PairedEvidence:
    kinds = [OutcomeKind.FAIL, OutcomeKind.PASS]
    return PairedEvidence(
        baseline="b",
        candidates=tuple(f"c{number}" for number in range(1, ARMS)),
        tasks=tuple(
            TaskPairs(
                task_id=f"t{task}",
                family="f",
                outcomes=tuple(tuple(kinds[int(score)] for score in row) for row in scores[task == STRATA]),
            )
            for task in range(TASKS)
        ),
    )


def test_a_slow_change_is_a_trend_with_its_whole_size() -> None:
    """From start to end, not from block to block."""
    values = np.linspace(0.0, 0.4, len(STRATA)) + np.random.default_rng(5).normal(0, 0.1, len(STRATA))
    found = find_drift(values, STRATA)
    assert found is not None
    assert (found.kind, found.place) == (DriftKind.TREND, 0)
    assert found.size == pytest.approx(0.4, abs=0.1)


def test_a_hard_task_that_comes_late_is_no_drift() -> None:
    """Its blocks are compared with themselves alone."""
    noise = np.random.default_rng(6).normal(0, 0.1, 40)
    late = np.repeat([0.9, 0.1], 20)
    within, across = find_drift(late + noise, np.repeat([0, 1], 20)), find_drift(late + noise, np.zeros(40, dtype=int))
    assert within is not None
    assert across is not None
    assert within.p > 0.05
    assert across.p == pytest.approx(0.0005)


@pytest.mark.parametrize("values", [[0.5] * 9, [], [0.0, 1.0]])
def test_what_does_not_vary_or_is_too_short_is_not_tested(values: list[float]) -> None:
    """No spread, no order to speak of: no p."""
    assert find_drift(np.array(values), np.zeros(len(values), dtype=np.int64)) is None
