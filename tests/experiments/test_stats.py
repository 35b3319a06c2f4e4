"""Arithmetic against figures worked out by hand or by another route, and behaviour at the edges."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from experiments.stats import (
    FAMILIES_NEEDED,
    Floats,
    critical_values,
    family_intervals,
    mean_differences,
    sample_intervals,
    sign_test_p,
    simultaneous_intervals,
)


def column(*differences: float) -> Floats:
    return np.array(differences, dtype=np.float64).reshape(-1, 1)


def test_tasks_weigh_equally_however_many_pairs_they_have() -> None:
    """A task with more surviving pairs must not pull the estimate towards itself."""
    many, few = column(*[1.0] * 10), column(0.0, 0.0)
    assert mean_differences([many, few]) == pytest.approx([0.5])


def test_one_candidate_gets_the_t_interval_of_a_stratified_mean() -> None:
    """With a single candidate there is nothing to correct for: estimate +- t(df) * error, worked out by hand."""
    first, second = column(1, 0, 1, 0, 1, -1, 1, 0), column(0, 0, 1, 0, 0, -1, 1, 1)
    (interval,) = simultaneous_intervals([first, second], confidence=0.95)
    variances = [np.var(task, ddof=1) / 8 for task in (first, second)]
    error = np.sqrt(sum(variances)) / 2
    df = sum(variances) ** 2 / sum(v**2 / 7 for v in variances)
    assert interval is not None
    assert interval.estimate == pytest.approx((0.375 + 0.25) / 2)
    assert interval.standard_error == pytest.approx(error)
    assert interval.df == pytest.approx(df)
    assert interval.critical == pytest.approx(scipy_stats.t.ppf(0.975, df), rel=0.02)


def test_the_critical_value_is_that_of_the_multivariate_t() -> None:
    """Six candidates against one baseline correlate at one half: Dunnett's table says 2.57 for many df."""
    random = np.random.default_rng(4)
    arms = random.normal(size=(4_000, 7))
    intervals = simultaneous_intervals([arms[:, 1:] - arms[:, :1]], confidence=0.95)
    assert [interval.critical for interval in intervals if interval] == pytest.approx([2.57] * 6, rel=0.01)


@pytest.mark.parametrize("candidates", [1, 2, 4, 8, 10])
@pytest.mark.parametrize("df", [12.0, 60.0, 400.0])
def test_a_sweep_of_candidates_that_share_a_baseline_errs_at_the_promised_rate(candidates: int, df: float) -> None:
    """By another route: given the baseline and the error, candidates are independent, and two integrals give the rate.

    A quantile from draws of a fixed seed is wrong in the same direction every time; 20,000 of |t| gave 5.36 % for four.
    """
    shared = np.full((candidates, candidates), 0.5) + 0.5 * np.eye(candidates)
    (critical, *_) = critical_values(shared, np.ones(candidates), np.full(candidates, df), 0.95)
    baseline, weights = np.polynomial.hermite_e.hermegauss(80)
    errors = np.sqrt(scipy_stats.chi2.ppf((np.arange(400) + 0.5) / 400, df) / df)[:, None]
    reach = np.sqrt(2) * critical * errors
    inside = (scipy_stats.norm.cdf(reach - baseline) - scipy_stats.norm.cdf(-reach - baseline)) ** candidates
    rate = 1 - float((inside @ weights / weights.sum()).mean())
    assert rate == pytest.approx(0.05, abs=0.001)


def test_equal_candidates_cost_nothing() -> None:
    """Three copies of one candidate are one comparison; the correlation says so, although its matrix is singular."""
    random = np.random.default_rng(5)
    one = random.choice([-1.0, 0.0, 1.0], size=(400, 1))
    (alone,) = simultaneous_intervals([one], confidence=0.95)
    thrice = simultaneous_intervals([np.repeat(one, 3, axis=1)], confidence=0.95)
    assert alone is not None
    assert thrice[0] is not None
    assert thrice[0].critical == pytest.approx(alone.critical, rel=0.02)


def test_a_task_without_spread_is_not_certain() -> None:
    """Five equal repeats are five observations, not a law: the error stays above zero."""
    (interval,) = simultaneous_intervals([column(*[0.0] * 5)] * 6, confidence=0.95)
    assert interval is not None
    assert interval.low < 0 < interval.high


def test_one_pair_gives_no_interval() -> None:
    """One repeat has no error of its own, whatever the other tasks have."""
    assert simultaneous_intervals([column(1), column(1, 1, 0)], confidence=0.95) == (None,)


def test_a_candidate_without_pairs_leaves_the_others_alone() -> None:
    """One broken arm must not take the experiment with it."""
    both = np.array([[1.0, np.nan], [0.0, np.nan], [1.0, np.nan]])
    whole, broken = simultaneous_intervals([both], confidence=0.95)
    assert broken is None
    assert whole is not None
    assert simultaneous_intervals([both[:, :1]], confidence=0.95)[0] == whole


def test_nothing_to_compare_is_no_error() -> None:
    """A baseline alone is a legitimate experiment."""
    assert simultaneous_intervals([np.empty((3, 0))], confidence=0.95) == ()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(*[st.sampled_from([-1.0, 0.0, 1.0, np.nan])] * 2), min_size=1, max_size=5),
        min_size=1,
        max_size=4,
    )
)
def test_no_outcome_makes_a_nan(tasks: list[list[tuple[float, float]]]) -> None:
    """NaN compares false with everything; a rule that meets one may decide anything."""
    for interval in simultaneous_intervals([np.array(task) for task in tasks], confidence=0.95):
        if interval is not None:
            assert interval.standard_error > 0
            assert -1 <= interval.low <= interval.estimate <= interval.high <= 1


def test_families_are_not_tested_when_they_are_few() -> None:
    """Three families show nothing about a fourth."""
    with pytest.raises(ValueError, match="10 needed"):
        family_intervals(np.zeros((FAMILIES_NEEDED - 1, 1)), confidence=0.95)


def test_families_are_judged_by_their_own_spread() -> None:
    """The one-sample t interval over family means, as scipy computes it."""
    means = np.random.default_rng(6).normal(0.1, 0.2, size=12)
    (interval,) = family_intervals(means.reshape(-1, 1), confidence=0.95)
    expected = scipy_stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.005)
    assert interval.df == 11


def test_family_intervals_pay_for_every_candidate_however_they_correlate() -> None:
    """Ten families do not show how three candidates correlate; Bonferroni holds whatever it is."""
    means = np.random.default_rng(9).normal(0.0, 0.2, size=(10, 3))
    expected = scipy_stats.t.ppf(1 - 0.05 / 6, 9)
    criticals = [one.critical for one in family_intervals(means, confidence=0.95) if one]
    assert criticals == pytest.approx([expected] * 3)


def test_a_family_that_was_not_measured_leaves_no_interval() -> None:
    """Leaving out the families that failed would choose the sample by its result; equal families have no error."""
    means = np.random.default_rng(6).normal(0.1, 0.2, size=(12, 2))
    means[3, 0] = np.nan
    assert family_intervals(means, confidence=0.95)[0] is None
    assert family_intervals(np.zeros((12, 1)), confidence=0.95) == (None,)


def test_few_observations_of_many_scores_rarely_decide_anything() -> None:
    """Ten samples judged on 19 scores: drawn from so poor a correlation matrix the quantile errs in one log of ten.

    At a true rate of 5 %, more than 30 of 300 happen with a probability below 0.02 %.
    """
    random = np.random.default_rng(8)
    logs = (sample_intervals(random.normal(size=(10, 19)), confidence=0.95, bounded=False) for _ in range(300))
    assert 3 <= sum(any(one is not None and one.low * one.high > 0 for one in log) for log in logs) <= 30


def test_grades_have_no_bound_and_no_pseudo_pairs() -> None:
    """Scores from 1 to 10 differ by more than one, and a column in which nothing differs has no error to show."""
    grades = np.array([[4.0, 0.0], [6.0, 0.0], [np.nan, 0.0], [8.0, 0.0]])
    found, constant = sample_intervals(grades, confidence=0.95, bounded=False)
    assert constant is None
    assert found is not None
    reach = scipy_stats.t.ppf(1 - 0.05 / 4, 2) * 2 / np.sqrt(3)
    assert (found.low, found.estimate, found.high) == pytest.approx((6 - reach, 6, 6 + reach))


def test_the_sign_test_counts_coin_tosses() -> None:
    """Nine wins of ten: 2 * (1 + 10) / 2**10."""
    assert sign_test_p(9, 1) == pytest.approx(2 * 11 / 1024)
    assert sign_test_p(0, 0) == 1.0


def test_intervals_do_not_depend_on_the_order_of_tasks() -> None:
    """The seed is fixed, so the same outcomes give the same interval, to the last digit that matters."""
    random = np.random.default_rng(7)
    tasks = [random.choice([-1.0, 0.0, 1.0], size=(6, 2)) for _ in range(3)]
    found = [simultaneous_intervals(list(order), confidence=0.95)[0] for order in itertools.permutations(tasks)]
    assert len({(round(one.low, 9), round(one.high, 9)) for one in found if one}) == 1
