"""Questions of a rubric and the state of an episode: what stands in them, how long they are, how they are spread."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.dev.fake_provider.decision_rules import tokens_in, tokens_of_question
from judges.engine import RubricRefused
from judges.jev_questions import (
    LONGEST_TOKENS_MAX,
    TOTAL_TOKENS_MAX,
    DecisionRequest,
    Noul,
    Question,
    estimated_tokens,
    plan,
    question_set,
    question_tokens,
    questions_of,
    state_of,
)
from judges.rubric import Dimension, Direction, Label, Rubric, Scale, load_rubric
from judges.view import EpisodeView, Spent, Step, StepKind
from tests.judges.jev_house import CARE, DONE, FAULT, RUBRIC
from tests.judges.views import call, view

RUBRICS = sorted(Path(__file__).parents[2].glob("configs/rubric/*.yaml"))


def only(dimension: Dimension) -> Question:
    return questions_of(Rubric(name="one", dimensions=(dimension,)))[dimension.name]


def test_a_flag_is_a_noul_with_both_criteria_or_none() -> None:
    both = only(DONE).model_dump(by_alias=True)
    assert (both["type"], both["criteria"]) == ("noul", {"true": "One shows it.", "false": "None shows it."})
    assert only(DONE.model_copy(update={"anchors": {}})).criteria is None


def test_the_levels_of_a_score_are_its_anchors_from_the_lowest_value_on() -> None:
    """In whichever order the rubric writes them, and whichever end is the good one."""
    turned = CARE.model_copy(update={"anchors": dict(reversed(CARE.anchors.items()))})
    for dimension in (CARE, turned, CARE.model_copy(update={"direction": Direction.HIGHER})):
        assert only(dimension).criteria == ["With care.", "With a slip.", "Carelessly.", "Without any care."]


def test_the_labels_of_a_choice_are_described_and_one_of_them_abstains() -> None:
    assert only(FAULT).criteria == {
        "none": "There is none.",
        "small": "One that changes nothing.",
        "grave": "One that spoils the result.",
        "cannot_tell": "The record does not show it.",
    }


@pytest.mark.parametrize(
    ("dimension", "reason"),
    [
        (DONE.model_copy(update={"anchors": {1: "One shows it."}}), "an anchor for 0 and one for 1"),
        (CARE.model_copy(update={"anchors": {}}), "its ends 1 and 10 need an anchor"),
        (CARE.model_copy(update={"anchors": {1: "With care.", 9: "Without."}}), "its ends 1 and 10 need an anchor"),
        (CARE.model_copy(update={"anchors": {1: "", 10: "Without."}}), "criteria.0"),
        (CARE.model_copy(update={"lowest": 0, "anchors": dict.fromkeys(range(11), "x")}), "at most 10"),
        (
            FAULT.model_copy(update={"labels": {f"l{n}": Label(text="x", value=1 if n else None) for n in range(256)}}),
            "at most 255",
        ),
    ],
)
def test_a_dimension_that_makes_no_question_is_named(dimension: Dimension, reason: str) -> None:
    """PROVIDERS 29: whoever wrote the rubric must know where to look."""
    with pytest.raises(RubricRefused, match=f"{dimension.name!r}.*{reason}"):
        only(dimension)


@pytest.mark.parametrize("path", RUBRICS, ids=lambda path: path.stem)
def test_each_rubric_of_ours_can_be_asked_in_one_request(path: Path) -> None:
    """PROVIDERS 34: with room for an episode beside it."""
    rubric = load_rubric(path)
    questions = questions_of(rubric)
    assert [*questions] == [dimension.name for dimension in rubric.dimensions]
    planned = plan({"text": "word " * 20_000}, questions)
    assert (len(planned.requests), planned.too_long) == (1, ())


def test_a_question_stands_alone() -> None:
    """Its name is not sent to the model, and it reads the same whatever is asked beside it."""
    for dimension in RUBRIC.dimensions:
        alone = only(dimension)
        assert alone == questions_of(RUBRIC)[dimension.name]
        assert dimension.question in alone.instructions
        assert alone.instructions.startswith("The state records one episode of an AI agent.")


def test_the_hash_of_the_questions_does_not_hang_on_their_order() -> None:
    questions = questions_of(RUBRIC)
    assert question_set(dict(reversed(questions.items()))) == question_set(questions)


def test_the_order_of_levels_is_part_of_the_hash() -> None:
    """PROVIDERS 35: turned round, the same words mean the opposite."""
    low = CARE.model_copy(update={"anchors": {1: "a", 10: "b"}})
    high = CARE.model_copy(update={"anchors": {1: "b", 10: "a"}})
    assert question_set({"q": only(low)}) != question_set({"q": only(high)})


def test_what_has_a_field_of_its_own_is_no_step_as_well() -> None:
    """A token that is sent twice is paid twice, and takes room."""
    episode = view(call("run", "ok"))
    state = state_of(episode)
    assert state["steps"] == [{"agent_calls": "run", "arguments": "{}"}, {"result_of": "run", "text": "ok"}]
    assert json.dumps(state).count(json.dumps(episode.prompt)) == 1


def test_a_limit_that_is_not_known_is_not_made_up() -> None:
    episode = EpisodeView(
        episode="e", task="t", family="f", target="", system="", prompt="p", answer="", steps=(), spent=Spent(rounds=1)
    )
    assert state_of(episode)["used"] == {"rounds": 1}
    assert state_of(episode)["steps"] == []


def test_half_a_character_does_not_reach_the_wire() -> None:
    """UTF-8 cannot hold it, and a provider would refuse the whole episode for it."""
    broken = view([Step(kind=StepKind.SAID, text="\ud800")], answer="\udfff")
    json.dumps(state_of(broken), ensure_ascii=False).encode()


@given(st.text(max_size=200), st.sampled_from(["system", "prompt", "answer", "said", "called", "result", "tool"]))
def test_no_text_of_an_episode_leaves_the_state(text: str, where: str) -> None:
    """PROVIDERS 38: whatever it closes or opens, the request around it is the same (CASEBOOK A28)."""
    plain = view(call("run", "ok"))
    kinds = {"said": StepKind.SAID, "called": StepKind.CALLED, "result": StepKind.RESULT, "tool": StepKind.CALLED}
    if where in kinds:
        step = Step(kind=kinds[where], text="x" if where == "tool" else text, tool=text if where == "tool" else "x")
        attacked = replace(plain, steps=(*plain.steps[:-1], step, plain.steps[-1]))
    else:
        attacked = replace(plain, **{where: text})
    questions = questions_of(RUBRIC)
    sent = [
        json.loads(DecisionRequest(model="m", state=state_of(episode), questions=questions).body())
        for episode in (plain, attacked)
    ]
    assert sent[0]["questions"] == sent[1]["questions"]
    assert list(sent[0]) == list(sent[1]) == ["model", "state", "questions"]
    assert list(sent[0]["state"]) == list(sent[1]["state"])


PROSE = "The agent read the file, changed the port and ran the tests until all of them passed. "


def test_digits_and_marks_are_a_token_each() -> None:
    """PROVIDERS 29: an estimate by characters alone would be four to six times too low for them."""
    assert estimated_tokens("0123456789" * 100) == 1_000
    assert estimated_tokens("{}[],:" * 100) == 600
    assert 1_000 / 6.5 < estimated_tokens((PROSE * 20)[:1_000]) < 1_000 / 4


@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_no_text_is_estimated_shorter_than_the_double_counts_it(text: str) -> None:
    """PROVIDERS 29: the double counts by the figures that are known."""
    assert estimated_tokens(text) >= tokens_in(text) - text.count("\n") - 1


@pytest.mark.parametrize("path", RUBRICS, ids=lambda path: path.stem)
def test_no_question_is_estimated_shorter_than_the_double_counts_it(path: Path) -> None:
    for question in questions_of(load_rubric(path)).values():
        assert question_tokens(question) >= tokens_of_question(question.model_dump(by_alias=True))


@given(
    st.integers(0, 40_000),
    st.dictionaries(st.text("abc", min_size=1), st.integers(1, 20_000), min_size=1, max_size=12),
)
def test_questions_are_spread_over_as_few_requests_as_their_length_allows(stated: int, lengths: dict[str, int]) -> None:
    """PROVIDERS 29, 34: each once, in order, within both limits; split by the budget alone."""
    questions: dict[str, Question] = {name: Noul(instructions="7" * length) for name, length in lengths.items()}
    state = {"log": "7" * stated}
    planned = plan(state, questions)
    asked = [name for request in planned.requests for name in request]
    assert sorted([*asked, *planned.too_long]) == sorted(questions)
    assert asked == [name for name in questions if name in asked]
    most, longest = 0.9 * TOTAL_TOKENS_MAX, 0.9 * LONGEST_TOKENS_MAX
    for request in planned.requests:
        used = stated + sum(lengths[name] for name in request)
        assert used <= most
        assert all(stated + lengths[name] <= longest for name in request)
    for name in planned.too_long:
        assert stated + lengths[name] + 500 > longest
    for one, other in zip(planned.requests, planned.requests[1:], strict=False):
        assert stated + sum(lengths[name] for name in one) + lengths[other[0]] + 500 > most


def test_a_label_may_have_the_words_of_yes_and_no() -> None:
    """They are keys of another type's criteria on the wire."""
    labels = {"true": Label(text="x", value=1), "false": Label(text="y", value=0), "none": Label(text="z", value=None)}
    dimension = Dimension(
        name="q", question="?", direction=Direction.HIGHER, scale=Scale.CHOICE, lowest=0, highest=1, labels=labels
    )
    assert set(only(dimension).criteria) == {"true", "false", "none"}
