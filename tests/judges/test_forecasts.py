"""Forecasts are probabilities where an engine gives such, and say what they are where it does not."""

import pytest

from judges.forecasts import Basis, expected_good, forecasts
from judges.judgment import Unscored, Value
from judges.rubric import Dimension, Rubric
from tests.judges.rated import families_of, judge, rubric_of

FLAG = rubric_of(scale="flag", lowest=0, highest=1)
SCORE = rubric_of(direction="higher", lowest=0, highest=4)


def said(rubric: Rubric, value: float, **more: object) -> Value:
    normalised = rubric.dimensions[0].normalised(value)
    return Value.model_validate({"value": value, "normalised": normalised, **more})


def of(rubric: Rubric) -> Dimension:
    return rubric.dimensions[0]


def test_the_good_side_of_a_dimension_that_is_better_low_is_its_low_side() -> None:
    """A judge that says 'it did harm' with 90 % expects the good side with 10 %."""
    harm = said(FLAG, 0.9, probabilities={"0": 0.1, "1": 0.9})
    assert expected_good(of(FLAG), harm, Basis.PROBABILITIES, 0.5) == pytest.approx(0.1)


@pytest.mark.parametrize(("good_from", "expected"), [(0.5, 0.7), (0.75, 0.4), (1.0, 0.3)])
def test_probabilities_are_summed_over_the_good_side(good_from: float, expected: float) -> None:
    shares = {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.1, "4": 0.3}
    given = said(SCORE, 2, probabilities=shares)
    assert expected_good(of(SCORE), given, Basis.PROBABILITIES, good_from) == pytest.approx(expected)


def test_what_an_abstaining_answer_has_is_on_neither_side() -> None:
    """60 % of what has a value is good, whatever share has none."""
    given = said(SCORE, 4, probabilities={"0": 0.2, "4": 0.3})
    assert expected_good(of(SCORE), given, Basis.PROBABILITIES, 0.5) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("value", "certainty", "expected"), [(4, 0.0, 0.5), (4, 1.0, 1.0), (0, 1.0, 0.0), (1, 0.5, 0.25)]
)
def test_a_certainty_is_about_the_side_that_the_value_is_on(value: float, certainty: float, expected: float) -> None:
    """It is |2p - 1|, so that p comes back out of it."""
    given = said(SCORE, value, certainty=certainty)
    assert expected_good(of(SCORE), given, Basis.CERTAINTY, 0.5) == expected


@pytest.mark.parametrize("shares", [{"good": 1.0}, {"5": 1.0}, {"nan": 1.0}, {"0": 0.0}, {}])
def test_probabilities_of_what_is_no_value_are_none(shares: dict[str, float]) -> None:
    given = said(SCORE, 4, probabilities=shares)
    assert expected_good(of(SCORE), given, Basis.PROBABILITIES, 0.5) is None


def test_answers_are_put_beside_the_truth_and_the_others_counted() -> None:
    sure = said(SCORE, 3, probabilities={"3": 1.0})
    given = [sure, Unscored.REFUSED, said(SCORE, 3), sure, sure]
    found = forecasts(
        judge("j", given, rubric=SCORE),
        of(SCORE),
        {"e0": True, "e1": True, "e2": True, "e4": False},
        families_of(4),
        against="people",
    )
    assert [(forecast.episode, forecast.family, forecast.good) for forecast in found.forecasts] == [
        ("e0", "family 0", True)
    ]
    assert found.left_out == {
        "unscored: refused": 1,
        "without probabilities": 1,
        "without a truth": 1,
        "of no known family": 1,
    }
    assert (found.basis, found.served_models, found.question_sets) == (Basis.PROBABILITIES, ("judge-1",), ("q1",))


def test_the_basis_is_the_best_that_there_is() -> None:
    bases = [
        forecasts(judge("j", [given], rubric=SCORE), of(SCORE), {"e0": True}, families_of(1), against="people").basis
        for given in (said(SCORE, 3, probabilities={"3": 1.0}), said(SCORE, 3, certainty=0.5), said(SCORE, 3))
    ]
    assert bases == [Basis.PROBABILITIES, Basis.CERTAINTY, Basis.VALUE]
