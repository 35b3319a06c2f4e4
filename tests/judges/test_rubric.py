"""Rubrics and judgments refuse what they cannot use; they never bend a value until it fits."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from judges.judgment import NoValue, Unscored, Value, entries_of
from judges.rubric import Dimension, Direction, Rubric, RubricError, Tier, load_rubric

SHIPPED = Path(__file__).parents[2] / "configs" / "rubric"
RISK = Dimension(name="risk", question="How risky?", direction=Direction.LOWER)
RUBRIC = Rubric(name="safety", dimensions=(RISK,))


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_rubric_loads_and_is_called_like_its_file(path: Path) -> None:
    """A newcomer copies one of these, so each must be right."""
    assert load_rubric(path).name == path.stem


def test_the_good_end_is_one_whichever_way_the_dimension_points() -> None:
    """Means over dimensions of both directions would be nonsense otherwise."""
    assert RISK.normalised(1) == 1.0
    assert RISK.model_copy(update={"direction": Direction.HIGHER}).normalised(10) == 1.0


@pytest.mark.parametrize("value", [0.99, 10.01])
def test_a_value_outside_its_range_is_refused_by_name(value: float) -> None:
    """Whoever normalises by hand gets the same answer as a judge does: no, and where."""
    with pytest.raises(ValueError, match=r"risk: .* is outside 1 to 10"):
        RISK.normalised(value)


@pytest.mark.parametrize("given_", ["7", "8/10", True, None, math.nan, [7]])
def test_what_is_no_number_is_unscored(given_: JsonValue) -> None:
    """CASEBOOK R50: no verdict must not become the minimum, and `true` is not 1."""
    entry = entries_of(RUBRIC, {"risk": given_})["risk"]
    assert isinstance(entry, NoValue)
    assert entry.reason is Unscored.PARSE_FAILURE


@given(st.floats(allow_nan=False))
def test_a_value_is_kept_or_refused_but_never_moved(value: float) -> None:
    """CASEBOOK R50: 11 on a scale to 10 is not 10."""
    entry = entries_of(RUBRIC, {"risk": value})["risk"]
    if 1 <= value <= 10:
        assert isinstance(entry, Value)
        assert entry.value == value
    else:
        assert isinstance(entry, NoValue)
        assert entry.reason is Unscored.OUT_OF_RANGE


def test_a_dimension_that_the_judge_left_out_is_missing_and_not_best() -> None:
    """The archived fitness took a missing dimension for a perfect one."""
    assert entries_of(RUBRIC, {"other": 3}) == {"risk": NoValue(reason=Unscored.MISSING)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", "cannot be read as YAML"),
        ("name: x\ndimensions: []", "dimensions"),
        ("name: x\ndimensions: [{name: a, question: q, direction: up}]", "dimensions.0.direction"),
        ("name: x\ndimensions: [{name: a, question: q, direction: lower, lowest: 5, highest: 5}]", "is empty"),
        (
            "name: x\ndimensions: [{name: a, question: q, direction: lower, highest: 1000000000}]",
            "more than 1000 steps",
        ),
        ("name: x\ndimensions: [{name: a, question: q, direction: lower, anchors: {99: far}}]", "anchor 99"),
        ("name: x\ndimensions: [{name: a, question: q, direction: lower, scale: flag}]", "a flag runs from 0 to 1"),
        ("name: x\ndimensions: [{name: a, question: q, direction: lower, scale: choice}]", "a choice needs labels"),
        (
            "name: x\ndimensions: [{name: a, question: q, direction: lower, scale: choice,"
            " labels: {b: {text: b, value: 99}, c: {text: c, value: 1}, d: {text: d, value: null}}}]",
            "the label 'b' is outside",
        ),
        (
            "name: x\ndimensions: [{name: a, question: q, direction: lower, scale: choice,"
            " labels: {b: {text: b, value: 2}, c: {text: c, value: 1}}}]",
            "one without for 'cannot tell'",
        ),
    ],
)
def test_a_bad_rubric_file_is_refused_by_name_and_place(tmp_path: Path, text: str, said: str) -> None:
    """Whoever wrote it must be able to mend it from the message alone."""
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(RubricError, match=r"mine\.yaml") as refusal:
        load_rubric(path)
    assert said in str(refusal.value)


def test_another_text_is_another_rubric() -> None:
    """The rubric is part of the ruler; a reworded question measures something else."""
    reworded = Rubric(name="safety", dimensions=(RISK.model_copy(update={"question": "How bad?"}),))
    assert reworded.rubric_id != RUBRIC.rubric_id


def test_an_info_dimension_has_no_weight() -> None:
    """It must not move a mean that a gate reads."""
    with pytest.raises(ValueError, match="no weight"):
        Dimension(name="note", question="q", direction=Direction.LOWER, tier=Tier.INFO, weight=0.1)
