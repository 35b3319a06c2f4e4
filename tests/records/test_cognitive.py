"""Facts of `geode.records.cognitive`: the plan that the agent wrote, and nothing that it did not write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from geode.records.cognitive import CognitiveState, PlanStep, StepStatus


def plan(text: str, before: CognitiveState | None = None) -> list[tuple[str, str]]:
    state = (before or CognitiveState()).with_text(text)
    return [(step.text, step.status.value) for step in state.plan]


def test_a_checklist_in_the_text_is_the_plan() -> None:
    text = "I will:\n- [ ] read\n  * [x] edit\n1. [~] drop\n2) [-] drop too\n- not a step\n[ ] nor this\nDone."
    assert plan(text) == [("read", "open"), ("edit", "done"), ("drop", "dropped"), ("drop too", "dropped")]


def test_a_later_list_marks_and_extends_the_earlier_one() -> None:
    before = CognitiveState().with_text("- [ ] one\n- [ ] two")
    assert plan("- [x] one\n- [ ] three", before) == [("one", "done"), ("two", "open"), ("three", "open")]


def test_text_without_a_list_changes_nothing() -> None:
    before = CognitiveState(goal="g", plan=(PlanStep(text="one"),))
    assert before.with_text("All done.") is before


def test_a_plan_is_bounded_and_keeps_its_first_steps() -> None:
    steps = plan("\n".join(f"- [ ] step {n}" for n in range(80)))
    assert (len(steps), steps[-1][0]) == (50, "step 49")


@pytest.mark.parametrize(
    "text", ["\n" * 300_000, "- " * 150_000, "-" + " " * 300_000, "1" * 300_000, "- [ ]\n" * 50_000]
)
def test_long_text_without_a_step_is_read_in_one_pass(text: str) -> None:
    """A30: a pattern that looks at every line end from every line start would take hours here."""
    assert plan(text) == []


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    state = CognitiveState().with_text(text)
    assert CognitiveState.model_validate(state.model_dump()) == state


def test_a_state_reads_back_from_its_stored_form() -> None:
    state = CognitiveState(goal="정확도", plan=(PlanStep(text="one", status=StepStatus.DONE),), last_check="accept: ")
    assert CognitiveState.model_validate_json(state.model_dump_json()) == state
    with pytest.raises(ValidationError):
        CognitiveState.model_validate_json('{"goal":"g","mood":"good"}')
