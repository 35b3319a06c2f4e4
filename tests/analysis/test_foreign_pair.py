"""What two logs share decides what can be said of their difference, and with which error."""

from collections.abc import Mapping, Sequence

import pytest

from analysis.foreign import ForeignRun
from analysis.foreign_compare import compare_runs
from analysis.foreign_pair import Bounds, Level, Paired, ScoreRow
from tests.doubles.foreign_logs import make_log

Values = Mapping[str, Sequence[float | None]]


def logs(first: Values, second: Values, **options: object) -> tuple[ForeignRun, ForeignRun]:
    return make_log("a", {"pass": first}, **options), make_log("b", {"pass": second}, **options)  # type: ignore[arg-type]


def paired(*runs: ForeignRun) -> Paired:
    return compare_runs(runs).pairs[0].found


def only_row(*runs: ForeignRun) -> ScoreRow:
    (row,) = paired(*runs).rows
    return row


def tasks(*values: float | None) -> dict[str, list[float | None]]:
    return {f"t{number:02}": [value] for number, value in enumerate(values)}


def test_one_attempt_a_task_speaks_of_tasks_and_several_of_these_tasks() -> None:
    """What an interval means depends on what varied."""
    once = paired(*logs(tasks(*[0] * 8), tasks(*[1] * 7, 0), passes=True))
    thrice = paired(*logs({t: [0] * 3 for t in "abcd"}, {t: [1] * 3 for t in "abcd"}, passes=True))
    assert (once.level, thrice.level) == (Level.OVER_TASKS, Level.ON_THESE_TASKS)
    assert once.rows[0].interval is not None
    assert (once.rows[0].interval.side, thrice.paired) == (1, 12)


def test_one_pair_of_passes_and_failures_leaves_the_whole_range() -> None:
    """A single lucky task must not look like a gain that is certain."""
    row = only_row(*logs(tasks(0), tasks(1), passes=True))
    assert (row.difference, row.interval) == (1.0, Bounds(low=-1.0, high=1.0, standard_error=None))


def test_one_pair_of_grades_has_no_interval() -> None:
    """A grade has no range that is known."""
    assert only_row(*logs(tasks(3), tasks(9))).interval is None


def test_grades_without_a_difference_have_no_interval_and_shares_have_one() -> None:
    """That nothing was seen to vary bounds a share, and says nothing of a grade."""
    assert only_row(*logs(tasks(1, 1, 1), tasks(1, 1, 1))).interval is None
    bounds = only_row(*logs(tasks(1, 1, 1), tasks(1, 1, 1), passes=True)).interval
    assert bounds is not None
    assert bounds.low < 0 < bounds.high


def test_grades_beside_shares_cost_both_the_same_correction() -> None:
    """Splitting scores by their kind must not make an interval narrower than the number of scores allows."""
    grades = [tasks(1, 4, 2, 9), tasks(3, 5, 5, 2)]
    shares = [tasks(0, 1, 0, 0), tasks(1, 1, 0, 1)]
    both = [make_log(name, {"grade": g, "share": s}) for name, g, s in zip("ab", grades, shares, strict=True)]
    two = [make_log(name, {"grade": g, "other": g}) for name, g in zip("ab", grades, strict=True)]
    assert paired(*both).rows[0].interval == paired(*two).rows[0].interval
    assert paired(*both).rows[1].interval is not None
    assert paired(*both).rows[1].interval.high <= 1  # type: ignore[union-attr]


def test_a_pair_without_a_value_is_in_no_figure_and_is_counted() -> None:
    """Unscored items are neither zero nor silently dropped."""
    row = only_row(*logs(tasks(1, 0, None, 1), tasks(1, 1, 1, None), passes=True))
    assert (row.pairs, row.unscored_first, row.unscored_second) == (2, 1, 1)
    assert (row.first, row.second, row.difference) == (0.5, 1.0, 0.5)


def test_mcnemar_counts_passes_and_failures_and_never_grades() -> None:
    """A 1 alone may be a grade of ten; a 0 beside it makes it a failure beside a pass."""
    found = only_row(*logs(tasks(1, 0, 0, 0, 1), tasks(1, 1, 1, 0, 0))).mcnemar
    assert found is not None
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 1, 2, 1)
    assert found.p == pytest.approx(1.0)
    assert only_row(*logs(tasks(1, 1), tasks(1, 1))).mcnemar is None
    assert only_row(*logs(tasks(1, 0.5, 0), tasks(1, 1, 0))).mcnemar is None
    assert only_row(*logs(tasks(1, 1), tasks(1, 1), passes=True)).mcnemar is not None


def test_ten_families_have_an_interval_of_their_own_and_nine_say_why_not() -> None:
    """A family is one observation, however many tasks it has."""
    names = [f"t{number:02}" for number in range(20)]
    families = {name: f"f{number // 2}" for number, name in enumerate(names)}
    first, second = tasks(*[0] * 20), tasks(*[1] * 18, 0, 0)
    ten = paired(*logs(first, second, passes=True, families=families))
    assert (ten.families, ten.not_over_families) == (10, "")
    assert ten.rows[0].over_families is not None
    assert ten.rows[0].over_families.side == 1
    nine = {name: families[name] for name in names[:18]}
    few = paired(*logs(dict(list(first.items())[:18]), dict(list(second.items())[:18]), passes=True, families=nine))
    assert (few.rows[0].over_families, few.not_over_families) == (None, "9 families, 10 needed")
    assert paired(*logs(first, second)).not_over_families == "the logs name no families"


def test_a_family_that_measured_nothing_is_not_left_out() -> None:
    """Leaving it out would choose the sample by its result. Families that all agree have no spread to judge by."""
    families = {f"t{number:02}": f"f{number}" for number in range(10)}
    lost = paired(*logs(tasks(*[0] * 10), tasks(None, *[1] * 9), passes=True, families=families))
    assert "a task has no measured pair" in lost.not_over_families
    alike = paired(*logs(tasks(*[0] * 10), tasks(*[1] * 10), passes=True, families=families))
    assert "no spread to judge by" in alike.not_over_families
    assert alike.rows[0].over_families is None
