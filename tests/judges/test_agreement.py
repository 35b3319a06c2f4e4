"""Agreement: the libraries' facts hold through our reading of the dimensions, and what is undefined is no number."""

import math
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.agreement import Agreement, DimensionAgreement, Level, PairAgreement, agreement
from judges.judgment import Unscored
from judges.ratings import Judge
from judges.resampling import Estimate, Figure, NotEstimated, Resampling
from judges.rubric import Rubric
from tests.judges.rated import RUBRIC, Given, families_of, figures, judge, judgment_of, rubric_of

QUICK = Resampling(draws=60)


def compare(*given: Sequence[Given], rubric: Rubric = RUBRIC, size: int = 1, how: Resampling = QUICK) -> Agreement:
    judges = [judge(f"j{place}", values, rubric=rubric) for place, values in enumerate(given)]
    return agreement(judges, rubric, families_of(max(map(len, given)), size), how)


def only(found: Agreement) -> tuple[DimensionAgreement, PairAgreement]:
    return found.dimensions[0], found.dimensions[0].pairs[0]


def value(figure: Figure) -> float:
    assert isinstance(figure, Estimate), figure
    return figure.value


def reason(figure: Figure) -> str:
    assert isinstance(figure, NotEstimated), figure
    return figure.reason


def test_judges_that_say_the_same_agree_perfectly() -> None:
    said = [1, 4, 7, 10, 3, 8, 2, 9, 5, 6, 1, 10]
    dimension, pair = only(compare(said, said))
    assert list(dimension.alphas) == [Level.INTERVAL, Level.ORDINAL]
    for figure in (*dimension.alphas.values(), pair.kappa, pair.pearson, pair.spearman, pair.confusion.same):
        assert value(figure) == pytest.approx(1)
    for figure in (pair.bias, pair.limit_low, pair.limit_high):
        assert value(figure) == 0
    assert (dimension.all_scored, pair.both, pair.families) == (12, 12, 12)


def test_judges_that_know_nothing_of_each_other_do_not_agree_beyond_chance() -> None:
    """Each interval holds 0, which plain agreement never would."""
    drawn = np.random.default_rng(7).integers(1, 11, size=(2, 400)).tolist()
    dimension, pair = only(compare(*drawn))
    for figure in (*dimension.alphas.values(), pair.kappa, pair.pearson, pair.spearman):
        assert isinstance(figure, Estimate)
        assert figure.interval is not None
        assert figure.interval.low < 0 < figure.interval.high
        assert abs(figure.value) < 0.1


def test_a_judge_that_is_two_points_stricter_has_that_bias_and_correlates_perfectly() -> None:
    """Correlation does not see a bias; alpha and kappa do."""
    lenient = [1, 2, 3, 4, 5, 6, 7, 8]
    dimension, pair = only(compare([each + 2 for each in lenient], lenient))
    assert value(pair.bias) == value(pair.limit_low) == value(pair.limit_high) == 2
    assert [value(pair.pearson), value(pair.spearman)] == pytest.approx([1, 1])
    assert value(dimension.alphas[Level.INTERVAL]) < 0.8
    assert value(pair.kappa) < 0.8


def test_limits_hold_as_many_differences_as_they_promise() -> None:
    generator = np.random.default_rng(3)
    first = generator.uniform(1, 10, 4_000)
    second = np.clip(first + generator.normal(0.5, 1, 4_000), 1, 10)
    kept = (second > 1) & (second < 10)
    _, pair = only(compare(first[kept].tolist(), second[kept].tolist(), how=Resampling(draws=2)))
    difference = first[kept] - second[kept]
    inside = (value(pair.limit_low) < difference) & (difference < value(pair.limit_high))
    assert inside.mean() == pytest.approx(0.95, abs=0.01)


def test_what_one_judge_did_not_score_is_counted_by_reason_and_moves_no_mean() -> None:
    """Unscored is no value: neither the worst nor the mean of the others."""
    found = compare([2, 4, Unscored.PARSE_FAILURE, 6], [1, 4, 9, Unscored.REFUSED])
    dimension, pair = only(found)
    first, second = dimension.judges
    assert (first.scored, dict(first.unscored), value(first.mean)) == (3, {Unscored.PARSE_FAILURE: 1}, 4)
    assert (second.scored, dict(second.unscored)) == (3, {Unscored.REFUSED: 1})
    assert (found.episodes, dimension.all_scored, pair.both) == (4, 2, 2)
    assert sum(map(sum, pair.confusion.counts)) == 2


def test_flags_and_choices_have_no_distance() -> None:
    flags = rubric_of(scale="flag", lowest=0, highest=1)
    dimension, pair = only(compare([0, 0, 1, 1, 1, 0], [0, 1, 1, 1, 1, 0], rubric=flags))
    assert list(dimension.alphas) == [Level.NOMINAL]
    assert (pair.confusion.labels, pair.confusion.counts) == ((0, 1), ((2, 1), (0, 3)))
    assert value(pair.kappa) == pytest.approx(2 / 3)

    labels = {name: {"text": name, "value": given} for name, given in (("a", 1), ("b", 5), ("c", 10), ("x", None))}
    choice = rubric_of(scale="choice", labels=labels)
    near, far = ([1, 5, 10, 1, 5, 10, 1], [1, 5, 10, 1, 5, 10, 5]), ([1, 5, 10, 1, 5, 10, 1], [1, 5, 10, 1, 5, 10, 10])
    kappas = {value(only(compare(*said, rubric=choice))[1].kappa) for said in (near, far)}
    assert len({round(kappa, 9) for kappa in kappas}) == 1
    assert only(compare(*near, rubric=choice))[1].confusion.labels == (1, 5, 10)


def test_a_probability_in_place_of_a_flag_is_the_answer_that_is_nearer() -> None:
    """Else every probability would be a category of its own, and no two engines could agree."""
    flags = rubric_of(scale="flag", lowest=0, highest=1)
    dimension, pair = only(compare([0.1, 0.2, 0.9, 0.7, 0.5], [0, 0, 1, 1, 0], rubric=flags))
    assert value(dimension.alphas[Level.NOMINAL]) == value(pair.kappa) == value(pair.confusion.same) == 1
    assert value(pair.bias) == pytest.approx(0.08)


def test_a_score_between_is_not_cut_to_fit() -> None:
    """An engine may give an expected value: hundreds of different ones must not take hundreds of gigabytes."""
    drawn = np.random.default_rng(2).uniform(1, 10, 500)
    dimension, _ = only(compare(drawn.tolist(), drawn.round().tolist(), how=Resampling(draws=2)))
    assert 0.97 < value(dimension.alphas[Level.INTERVAL]) < 1


def test_kappa_weighs_by_distance_on_the_whole_scale() -> None:
    """A value that nobody gave still lies between its neighbours."""
    near = value(only(compare([1, 10, 1, 10, 2], [1, 10, 1, 10, 1]))[1].kappa)
    far = value(only(compare([1, 10, 1, 10, 9], [1, 10, 1, 10, 1]))[1].kappa)
    assert near > 0.95 > far


def test_values_meet_at_the_nearest_anchor() -> None:
    anchored = rubric_of(anchors={1: "a", 4: "b", 7: "c", 10: "d"})
    _, pair = only(compare([1, 2, 6, 10], [2.5, 3, 7, 9], rubric=anchored))
    assert (pair.confusion.binned, pair.confusion.labels) == ("anchors", (1, 4, 7, 10))
    assert pair.confusion.counts == ((1, 1, 0, 0), (0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))
    assert value(pair.confusion.same) == 0.75


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ([1, 1, 1, 1], [1, 1, 1, 1], "both always say 1"),
        ([1, 1, 1, 1], [1, 2, 3, 4], "j0 always says 1"),
        ([4, 4, 4.000000000000001, 4], [1, 2, 3, 4], "j0 always says 4"),
        ([1, 1, 1, 1], [2, 2, 2, 2], "j0 always says 1 and j1 always says 2"),
        ([1, 2], [2, 3], "2 episodes that both scored, and 3 are needed"),
        ([1, Unscored.ABSTAINED], [Unscored.ABSTAINED, 2], "no episode"),
    ],
)
def test_what_is_undefined_says_why(first: list[Given], second: list[Given], why: str) -> None:
    """A correlation of a constant is no number, and must not be shown as one."""
    _, pair = only(compare(first, second))
    assert reason(pair.pearson) == reason(pair.spearman) == reason(pair.kappa) == why


def test_kappa_says_that_what_it_takes_does_not_differ() -> None:
    """Values that differ by less than a step are one value to it, though a correlation tells them apart."""
    _, pair = only(compare([1.1, 1.2, 1.3, 1.4], [1, 2, 3, 4]))
    assert value(pair.pearson) == pytest.approx(1)
    assert reason(pair.kappa) == "j0 always says 1"


def test_one_value_leaves_no_chance_agreement_to_correct_for() -> None:
    dimension, pair = only(compare([3, 3, 3, 3], [3, 3, 3, 3]))
    assert reason(dimension.alphas[Level.INTERVAL]) == "all always say 3"
    assert reason(pair.kappa) == "both always say 3"
    assert value(pair.confusion.same) == 1


def test_one_family_gives_a_figure_and_no_interval() -> None:
    _, pair = only(compare([1, 4, 7, 10], [2, 4, 6, 10], size=4))
    assert isinstance(pair.kappa, Estimate)
    assert (pair.kappa.interval, pair.kappa.no_interval) == (None, "one family, and two are needed")


@pytest.mark.slow
def test_episodes_of_one_family_are_not_counted_as_independent() -> None:
    """Ten copies of each observation say nothing new: the interval stays as wide as without them."""
    generator = np.random.default_rng(1)
    first = generator.integers(1, 11, 30)
    second = np.clip(first + generator.integers(-3, 4, 30), 1, 10)

    def width(copies: int, size: int) -> float:
        said = np.repeat(first, copies).tolist(), np.repeat(second, copies).tolist()
        kappa = only(compare(*said, size=size, how=Resampling(draws=400)))[1].kappa
        assert isinstance(kappa, Estimate)
        assert kappa.interval is not None
        return kappa.interval.high - kappa.interval.low

    assert width(10, 10) == pytest.approx(width(1, 1), rel=0.01)
    assert width(10, 1) < width(1, 1) / 2


def test_an_interval_needs_draws_in_which_the_figure_is_defined() -> None:
    """What is left of them would be chosen by its result."""
    rare = [1] * 11 + [9]
    _, pair = only(compare(rare, rare))
    assert isinstance(pair.pearson, Estimate)
    assert pair.pearson.interval is None
    assert "undefined in" in pair.pearson.no_interval


def test_only_the_same_transcript_is_compared() -> None:
    first = judge("a", [1, 2, 3, 4, 5])
    other = [judgment_of("e0", 1), judgment_of("e1", 2, view_digest="cut"), judgment_of("e2", 3, rubric_id="older")]
    second = Judge(name="b", judgments=(*other, judgment_of("e4", 5), judgment_of("e9", 5)))
    found = agreement([first, second], RUBRIC, {f"e{n}": "f" for n in range(4)}, QUICK)
    assert found.episodes == 1
    assert found.left_out == {
        "not judged by all": 2,
        "shown to the judges in different forms": 1,
        "judged under different rubrics": 1,
        "of no known family": 1,
    }


def test_the_first_answer_counts_where_a_judge_was_asked_often() -> None:
    """The mean of five answers agrees better than a judge does."""
    often = Judge(name="often", judgments=tuple(judgment_of("e0", 9 - place, repetition=place) for place in (2, 0, 1)))
    found = agreement([often, judge("once", [9])], RUBRIC, families_of(1), QUICK)
    assert value(found.dimensions[0].judges[0].mean) == 9


def test_a_judge_cannot_be_compared_with_itself_nor_alone() -> None:
    with pytest.raises(ValueError, match="named twice"):
        agreement([judge("a", [1]), judge("a", [1])], RUBRIC, families_of(1), QUICK)
    with pytest.raises(ValueError, match="needs two judges"):
        agreement([judge("a", [1])], RUBRIC, families_of(1), QUICK)
    twice = Judge(name="b", judgments=(judgment_of("e0", 1), judgment_of("e0", 2)))
    with pytest.raises(ValueError, match="two judgments of 'e0'"):
        agreement([judge("a", [1]), twice], RUBRIC, families_of(1), QUICK)


def test_three_judges_have_one_alpha_and_three_pairs() -> None:
    """Alpha takes what there is: an episode that one of three did not score still has two."""
    said = [1, 4, 7, 10, 2, 9], [1, 4, 7, 10, 2, Unscored.ABSTAINED], [1, 4, 7, 10, 2, 9]
    dimension, _ = only(compare(*said))
    assert value(dimension.alphas[Level.ORDINAL]) == pytest.approx(1)
    assert [(pair.first, pair.second, pair.both) for pair in dimension.pairs] == [
        ("j0", "j1", 5),
        ("j0", "j2", 6),
        ("j1", "j2", 5),
    ]


@pytest.mark.slow
def test_without_the_library_alpha_says_how_it_comes() -> None:
    """Its licence keeps it out of what is installed by itself; everything else goes on."""
    code = (
        "import sys; sys.modules['krippendorff'] = None\n"
        "from tests.judges.test_agreement import compare, only, value\n"
        "dimension, pair = only(compare([1, 5, 9, 2], [1, 5, 9, 3]))\n"
        "print({figure.reason for figure in dimension.alphas.values()}, value(pair.kappa) > 0.9)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "geode-agent[agreement]" in ran.stdout
    assert ran.stdout.endswith("True\n")


_GIVEN = st.one_of(st.integers(1, 10), st.floats(1, 10), st.sampled_from(list(Unscored)))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(_GIVEN, _GIVEN), min_size=1, max_size=12),
    st.integers(1, 4),
    st.permutations(range(2)),
)
def test_no_figure_is_ever_nan(said: list[tuple[Given, Given]], size: int, order: list[int]) -> None:
    """Whatever is scored or not: a figure is a finite number or a reason, and its interval is in order."""
    columns = [list(column) for column in zip(*said, strict=True)]
    found = compare(*(columns[place] for place in order), size=size, how=Resampling(draws=20))
    for figure in figures(found):
        match figure:
            case NotEstimated():
                assert figure.reason
            case Estimate():
                assert math.isfinite(figure.value)
                assert bool(figure.no_interval) == (figure.interval is None)
                assert figure.interval is None or figure.interval.low <= figure.interval.high
