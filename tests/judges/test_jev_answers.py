"""Answers of a decision model: any that is sound is a number of its dimension, and any that is not is none."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.jev_answers import (
    AbstainBelow,
    MalformedDecision,
    choice_confidence,
    entry_of_answer,
    read_choice,
    read_noul,
    read_score,
    score_confidence,
)
from judges.jev_questions import Choice, Score, questions_of
from judges.judgment import NoValue, Unscored, Value
from judges.rubric import Dimension, Direction, Rubric
from tests.judges.jev_house import ANSWERS, CARE, DONE, FAULT

Answer = dict[str, Any]
ANYTHING = AbstainBelow()


def entry(dimension: Dimension, answer: object, abstain: AbstainBelow = ANYTHING) -> Value | NoValue:
    question = questions_of(Rubric(name="one", dimensions=(dimension,)))[dimension.name]
    return entry_of_answer(dimension, question, {dimension.name: answer}, abstain)


def levels(count: int) -> Score:
    return Score(instructions="How?", criteria=[f"level {n}" for n in range(count)])


def labels(count: int) -> Choice:
    return Choice(instructions="Which?", criteria={f"label {n}": "x" for n in range(count)})


@st.composite
def shares(draw: st.DrawFn, at_most: int = 10) -> list[float]:
    """Return probabilities that sum to one."""
    weights = draw(st.lists(st.integers(0, 1_000), min_size=2, max_size=at_most).filter(any))
    return [weight / sum(weights) for weight in weights]


def rounded(probabilities: list[float]) -> list[float]:
    return [round(share, 2) for share in probabilities]


def is_near_one(probabilities: list[float]) -> bool:
    return abs(sum(rounded(probabilities)) - 1) <= 0.03


@st.composite
def scores(draw: st.DrawFn) -> tuple[int, Answer]:
    """Return a sound answer: whether its score was computed before or after its probabilities were rounded."""
    exact = draw(shares().filter(is_near_one))
    told = rounded(exact)
    of = told if draw(st.booleans()) else exact
    mean = round(min(len(told) - 1, sum(level * share for level, share in enumerate(of))), 2)
    answer: Answer = {"type": "score", "score": mean, "probabilities": {str(n): p for n, p in enumerate(told)}}
    return len(told), answer | draw(st.sampled_from([{}, {"confidence": None}, {"confidence": 0.25}]))


@st.composite
def choices(draw: st.DrawFn) -> tuple[int, Answer]:
    told = rounded(draw(shares().filter(is_near_one)))
    best = draw(st.sampled_from([n for n, share in enumerate(told) if share == max(told)]))
    named = {f"label {n}": share for n, share in enumerate(told)}
    order = draw(st.permutations(sorted(named)))  # not the one that was asked
    answer: Answer = {"type": "choice", "choice": f"label {best}", "probabilities": {key: named[key] for key in order}}
    return len(told), answer | draw(st.sampled_from([{}, {"confidence": None}, {"confidence": 1}]))


@given(st.floats(0, 1), st.dictionaries(st.sampled_from(["confidence", "probabilities", "extra"]), st.integers()))
def test_any_probability_is_a_sound_noul(p: float, more: dict[str, int]) -> None:
    """PROVIDERS 31, 32: what stands beside it is not read."""
    assert read_noul({"type": "noul", "noul": p, **more}) == p
    told = entry(DONE, {"type": "noul", "noul": p, **more})
    assert isinstance(told, Value)
    assert (told.value, told.normalised, told.certainty) == (p, p, abs(2 * p - 1))


@given(scores())
def test_any_sound_score_is_accepted(case: tuple[int, Answer]) -> None:
    """PROVIDERS 31: whether it was computed before its probabilities were rounded, or after."""
    count, answer = case
    told = read_score(levels(count), json.loads(json.dumps(answer)))
    assert told.score == answer["score"]
    assert told.probabilities == [*answer["probabilities"].values()]
    assert 0 <= (told.confidence or 0) <= 1


@given(choices())
def test_any_sound_choice_is_accepted(case: tuple[int, Answer]) -> None:
    """PROVIDERS 31: ties are allowed, and the order of the reply means nothing."""
    count, answer = case
    told = read_choice(labels(count), json.loads(json.dumps(answer)))
    assert told.label == answer["choice"]
    assert list(told.probabilities or ()) == [f"label {n}" for n in range(count)]
    assert told.confidence is not None
    assert 0 <= told.confidence <= 1


NO_NUMBERS: tuple[Any, ...] = (None, "0.5", True, [0.5], {}, -0.01, math.nan, math.inf, -math.inf, 10**400)

Breaking = Callable[[Answer], Answer]


def put(field: str, *values: object) -> list[Breaking]:
    return [lambda answer, value=value: {**answer, field: value} for value in values]


def drop(field: str) -> Breaking:
    return lambda answer: {name: value for name, value in answer.items() if name != field}


def share(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Breaking:
    return lambda answer: {**answer, "probabilities": change(answer["probabilities"])}


def first_to(value: object) -> Breaking:
    return share(lambda given: {**given, next(iter(given)): value})


OF_BOTH: list[Breaking] = [
    drop("type"),
    *put("type", "noul", "box", None),
    *put("confidence", *NO_NUMBERS[1:], 1.01),
    *put("probabilities", [], "even", {}, 1),
    share(lambda given: {**given, "other": 0.0}),
    share(lambda given: dict([*given.items()][1:])),
    share(lambda given: {name: p / 2 for name, p in given.items()}),
    share(lambda given: {name: min(1.0, p + 0.5) for name, p in given.items()}),
    *map(first_to, NO_NUMBERS),
    first_to(1.01),
    lambda answer: [answer],  # type: ignore[list-item, return-value]
]


@given(scores(), st.sampled_from([*OF_BOTH, drop("score"), *put("score", *NO_NUMBERS, 9.01), *put("type", "choice")]))
def test_any_broken_score_is_refused(case: tuple[int, Answer], broken: Breaking) -> None:
    """PROVIDERS 31: none of them is a low score."""
    count, answer = case
    with pytest.raises(MalformedDecision):
        read_score(levels(count), broken(answer))


@given(scores(), st.booleans())
def test_a_score_that_is_not_the_mean_is_refused(case: tuple[int, Answer], up: bool) -> None:
    """PROVIDERS 31: by no more than roundings can do."""
    count, answer = case
    far = 2 * 0.005 * (1 + count**2 / 2) + 0.01 + 0.03 * count
    moved = answer["score"] + (far if up else -far)
    with pytest.raises(MalformedDecision):
        read_score(levels(count), {**answer, "score": moved})


@given(choices(), st.sampled_from([*OF_BOTH, drop("choice"), *put("choice", "label 99", 0, None, ["label 0"], "")]))
def test_any_broken_choice_is_refused(case: tuple[int, Answer], broken: Breaking) -> None:
    """PROVIDERS 31."""
    count, answer = case
    with pytest.raises(MalformedDecision):
        read_choice(labels(count), broken(answer))


@given(choices())
def test_a_choice_that_is_not_the_likeliest_is_refused(case: tuple[int, Answer]) -> None:
    """PROVIDERS 31: the reply contradicts itself."""
    count, answer = case
    told = answer["probabilities"]
    for other in told:
        if told[other] < max(told.values()):
            with pytest.raises(MalformedDecision):
                read_choice(labels(count), {**answer, "choice": other})


@pytest.mark.parametrize("given_", [*NO_NUMBERS, 1.01])
def test_any_broken_noul_is_refused(given_: Any) -> None:
    """PROVIDERS 31."""
    with pytest.raises(MalformedDecision):
        read_noul({"type": "noul", "noul": given_})
    for whole in (given_, {"noul": 0.5}, {"type": "score", "noul": 0.5}, {"type": "noul"}, [0.5]):
        with pytest.raises(MalformedDecision):
            read_noul(whole)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.sampled_from([DONE, CARE, FAULT]))
def test_whatever_comes_is_an_entry(answers: Any, dimension: Dimension) -> None:
    """PROVIDERS 31: an engine does not raise for what a model says."""
    question = questions_of(Rubric(name="one", dimensions=(dimension,)))[dimension.name]
    for given_ in (answers, {dimension.name: answers}, {dimension.name: {**ANSWERS[dimension.name], "type": answers}}):
        told = entry_of_answer(dimension, question, given_, ANYTHING)
        assert isinstance(told, NoValue)
        assert told.reason in (Unscored.PARSE_FAILURE, Unscored.MISSING)


def test_confidence_follows_from_the_probabilities_as_in_the_published_samples() -> None:
    """PROVIDERS 31: pmax 0.78 of three is 0.67; the others are worked examples of the provider."""
    assert choice_confidence([0.78, 0.12, 0.1]) == pytest.approx(0.67)
    assert choice_confidence([0.76, 0.16, 0.05, 0.01, 0.02]) == pytest.approx(0.7)
    assert score_confidence([0.02, 0.1, 0.62, 0.26]) == pytest.approx(0.6)
    assert score_confidence([0, 0.1, 0.9]) == pytest.approx(0.85)
    assert score_confidence([0.5, 0, 0, 0.5]) == 0


UNEVEN = CARE.model_copy(update={"anchors": {1: "a", 2: "b", 10: "c"}})


def test_between_uneven_anchors_the_mean_is_that_of_their_values() -> None:
    """PROVIDERS 33: half at 2 and half at 10 is 6, and not where the level 1.5 would lie on a straight line."""
    told = entry(UNEVEN, {"type": "score", "score": 1.5, "probabilities": {"0": 0, "1": 0.5, "2": 0.5}})
    assert isinstance(told, Value)
    assert told.value == pytest.approx(6)
    assert told.probabilities == {"1": 0, "2": 0.5, "10": 0.5}


def test_between_uneven_anchors_a_level_alone_is_no_value() -> None:
    """PROVIDERS 31: nobody knows which anchors it lies between."""
    told = entry(UNEVEN, {"type": "score", "score": 1.5})
    assert isinstance(told, NoValue)
    assert told.reason is Unscored.PARSE_FAILURE


@given(scores(), st.sampled_from(Direction))
def test_a_score_runs_over_the_range_of_its_dimension(case: tuple[int, Answer], direction: Direction) -> None:
    """PROVIDERS 33: by n - 1 of its own question."""
    count, answer = case
    dimension = CARE.model_copy(
        update={
            "lowest": -3,
            "highest": -3 + 4 * (count - 1),
            "anchors": {-3 + 4 * n: "x" for n in range(count)},
            "direction": direction,
        }
    )
    told = entry(dimension, answer)
    assert isinstance(told, Value)
    assert told.value == pytest.approx(-3 + 4 * answer["score"])
    share_of = answer["score"] / (count - 1)
    assert told.normalised == pytest.approx(share_of if direction is Direction.HIGHER else 1 - share_of)


def test_a_band_needs_a_certainty_that_is_known() -> None:
    """PROVIDERS 32: an answer of unknown certainty is not taken for a sure one."""
    told = entry(CARE, {"type": "score", "score": 1}, AbstainBelow(score=0.1))
    assert isinstance(told, NoValue)
    assert told.reason is Unscored.ABSTAINED
    assert isinstance(entry(CARE, {"type": "score", "score": 1}), Value)


def test_labels_that_mean_the_same_share_their_probability() -> None:
    """PROVIDERS 31: and what the abstaining label has belongs to no value."""
    both = {name: label.model_copy(update={"value": min(label.value, 1) if label.value else label.value})
            for name, label in FAULT.labels.items()}  # fmt: skip
    dimension = FAULT.model_copy(update={"labels": both})
    answer = {**ANSWERS["fault"], "probabilities": {"grave": 0.3, "small": 0.4, "none": 0.1, "cannot_tell": 0.2}}
    told = entry(dimension, answer)
    assert isinstance(told, Value)
    assert told.probabilities == pytest.approx({"0": 0.1, "1": 0.7})
