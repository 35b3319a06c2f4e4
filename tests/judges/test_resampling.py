"""Intervals from families: as wide as Student's where that is known, and absent where nothing was repeated."""

import numpy as np
import pytest
from scipy import stats

from judges.resampling import Estimate, NotEstimated, Range, Resampling, Rows, estimate


def mean_of(values: list[float], families: list[str], **how: float) -> Estimate | NotEstimated:
    array = np.array(values)
    return estimate(lambda rows: float(array[rows].mean()), families, Resampling(**how), undefined="no")  # type: ignore[arg-type]


def interval_of(found: Estimate | NotEstimated) -> Range:
    assert isinstance(found, Estimate)
    assert found.interval is not None
    return found.interval


@pytest.mark.parametrize("count", [6, 12, 30])
def test_the_interval_of_a_mean_is_about_that_of_student(count: int) -> None:
    """The plain percentile interval is a fifth too narrow for six families."""
    values = np.random.default_rng(count).normal(5, 2, count)
    found = interval_of(mean_of(values.tolist(), [f"f{n}" for n in range(count)], draws=8_000))
    known = stats.t.interval(0.95, count - 1, loc=values.mean(), scale=stats.sem(values))
    assert found.high - found.low == pytest.approx(known[1] - known[0], rel=0.1)


def test_a_family_comes_with_all_its_rows_or_not_at_all() -> None:
    families = ["a", "b", "a", "c", "b", "a"]
    seen: set[tuple[int, ...]] = set()

    def statistic(rows: Rows) -> float:
        seen.add(tuple(np.bincount(rows, minlength=6).tolist()))
        return 1.0

    estimate(statistic, families, Resampling(draws=50), undefined="no")
    assert len(seen) > 5
    for a, b, a_again, c, b_again, a_third in seen:
        assert a == a_again == a_third
        assert b == b_again
        assert a + b + c == 3


def test_equal_values_have_equal_intervals_and_another_seed_others() -> None:
    values, families = np.random.default_rng(1).normal(size=12).tolist(), [f"f{n}" for n in range(12)]
    first, again, other = (mean_of(values, families, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("undefined_share", "has_interval"), [(0.01, True), (0.2, False)])
def test_what_is_often_undefined_has_no_interval(undefined_share: float, *, has_interval: bool) -> None:
    """The other draws were chosen by their result."""
    generator = np.random.default_rng(3)
    calls = iter([False, *(generator.random(300) < undefined_share)])
    found = estimate(
        lambda rows: float("nan") if next(calls) else float(rows.mean()),
        [f"f{n}" for n in range(20)],
        Resampling(draws=300),
        undefined="no",
    )
    assert isinstance(found, Estimate)
    assert (found.interval is not None) == has_interval
    assert bool(found.no_interval) != has_interval


def test_nothing_and_what_is_undefined_are_reasons() -> None:
    assert mean_of([], []) == NotEstimated(reason="no episode")
    assert mean_of([float("nan")], ["a"]) == NotEstimated(reason="no")
