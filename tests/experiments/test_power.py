"""What a design is said to detect is what the real gate keeps, by the gate's own formulas."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.detectable import DESIGNS, kept_share
from experiments.power import (
    Design,
    TaskOdds,
    general_power,
    largest_difference,
    power,
    repeats_needed,
    smallest_difference,
    smallest_general_difference,
    variances_of_means,
)
from experiments.stats import PSEUDO_PAIRS, simultaneous_intervals


def design(rates: Sequence[float], *, pairs: int = 30, candidates: int = 6, discordant: float | None = None) -> Design:
    """A task a rate, each of a family of its own."""
    tasks = tuple(TaskOdds(family=f"f{n}", rate=rate, discordant=discordant) for n, rate in enumerate(rates))
    return Design(tasks=tasks, pairs=pairs, candidates=candidates, confidence=0.95)


SIX = design([0.5] * 6)


@given(st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=7, max_size=7), min_size=1, max_size=5))
def test_the_variance_from_counts_is_the_one_of_the_gate(outcomes: list[list[float]]) -> None:
    """The formula stands twice, from arrays and from counts; this keeps the two the same."""
    tasks = [np.array(pairs).reshape(-1, 1) for pairs in outcomes]
    (interval,) = simultaneous_intervals(tasks, confidence=0.95)
    assert interval is not None
    wins = np.array([[(task == 1).sum() for task in tasks]], dtype=float)
    losses = np.array([[(task == -1).sum() for task in tasks]], dtype=float)
    variances = variances_of_means(wins, losses, 7, PSEUDO_PAIRS / len(tasks))
    assert np.sqrt(variances.sum()) / len(tasks) == pytest.approx(interval.standard_error)
    assert variances.sum() ** 2 / (variances**2 / 6).sum() == pytest.approx(interval.df)


def test_the_power_of_the_demo_is_the_one_that_was_measured() -> None:
    """LOG.md: 91 % for 20 points from one half at 6 tasks x 30 repeats and six candidates, 14 % at 6 x 5."""
    assert power(SIX, 0.2) == pytest.approx(0.91, abs=0.015)
    assert power(replace(SIX, pairs=5), 0.2) == pytest.approx(0.14, abs=0.015)


SIMULATED = [name for name in DESIGNS if "6 x 30" in name or "6 x 5" in name or "spread" in name]


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_the_real_gate_keeps_the_smallest_detectable_difference_in_four_of_five_sweeps(name: str) -> None:
    """300 sweeps have a standard error of 2.3 points; three of them are allowed."""
    assert kept_share(DESIGNS[name], sweeps=300, seed=3) == pytest.approx(0.8, abs=0.07)


def test_more_pairs_and_fewer_candidates_detect_less() -> None:
    least = smallest_difference(SIX)
    more, fewer = smallest_difference(replace(SIX, pairs=120)), smallest_difference(replace(SIX, candidates=1))
    assert least is not None
    assert more is not None
    assert fewer is not None
    assert more == pytest.approx(least / 2, rel=0.05)
    assert fewer < least


def test_the_repeats_that_a_difference_needs_make_it_the_smallest() -> None:
    """Asked the other way round, the answer is the same. Two seeds need half the repeats."""
    needed = repeats_needed(SIX, 0.1, 1)
    assert needed is not None
    assert smallest_difference(replace(SIX, pairs=needed)) == pytest.approx(0.1, abs=0.002)
    assert repeats_needed(SIX, 0.1, 2) == -(-needed // 2)


def test_what_there_is_no_room_for_is_not_detected() -> None:
    """Tasks that pass in 97 of 100 cases cannot gain five points, however often they are run."""
    easy = design([0.97] * 6)
    assert largest_difference(easy) == pytest.approx(0.03)
    assert repeats_needed(easy, 0.05, 1) is None
    assert smallest_difference(replace(easy, pairs=5)) is None


def test_one_pair_a_task_detects_nothing() -> None:
    """The gate gives no interval then."""
    assert power(replace(SIX, pairs=1), 0.5) == 0.0
    assert smallest_difference(replace(SIX, pairs=1)) is None


def test_pairs_that_often_end_alike_detect_more() -> None:
    """What a block shares, it shares for both; independent outcomes from one half differ in half of the pairs."""
    alike, independent = smallest_difference(design([0.5] * 6, discordant=0.2)), smallest_difference(SIX)
    assert alike is not None
    assert independent is not None
    assert alike < 0.75 * independent


def test_families_that_differ_hide_what_they_have_in_common() -> None:
    """Eleven families are eleven observations, whatever the repeats."""
    eleven = design([0.5] * 11, candidates=1)
    same, apart = smallest_general_difference(eleven, 0.0), smallest_general_difference(eleven, 0.2)
    assert same is not None
    assert apart is not None
    assert apart > 1.5 * same
    more_pairs = smallest_general_difference(replace(eleven, pairs=3_000), 0.2)
    assert more_pairs is not None
    assert more_pairs > same


def test_fewer_than_ten_families_have_no_general_power() -> None:
    with pytest.raises(ValueError, match="6 families, 10 needed"):
        general_power(SIX, 0.1, spread=0.0)
