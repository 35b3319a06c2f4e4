"""A judgment says what was asked, who answered and what it cost, and is known again by its content."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from judges.judgment import Asked, Judgment, Unscored, all_unscored, entries_of
from judges.rubric import Dimension, Direction, Rubric
from judges.view import EpisodeView, Spent, Step, StepKind

RUBRIC = Rubric(name="r", dimensions=(Dimension(name="risk", question="How risky?", direction=Direction.LOWER),))
VIEW = EpisodeView(
    episode="e1",
    task="t",
    family="f",
    target="anthropic/claude-opus-5-5",
    system="",
    prompt="Do it.",
    answer="Done.",
    steps=(Step(kind=StepKind.PROMPT, text="Do it."), Step(kind=StepKind.SAID, text="Done.")),
    spent=Spent(rounds=1),
)


def judgment(*asked: Asked, **more: object) -> Judgment:
    parts = {"episode": "e1", "view_digest": VIEW.digest, "engine": "test", "engine_id": "a", "question_set": "q"}
    body = {**parts, "rubric": "r", "rubric_id": RUBRIC.rubric_id, "dimensions": entries_of(RUBRIC, {"risk": 3})}
    return Judgment.model_validate({**body, "asked": asked, **more})


def test_a_transcript_is_known_by_its_content_and_not_by_its_name() -> None:
    """The same transcript under another key must not be taken for a new observation of it."""
    assert replace(VIEW, episode="e2", task="u", family="g").digest == VIEW.digest
    assert replace(VIEW, answer="Done").digest != VIEW.digest


def test_what_would_be_asked_again_has_the_same_key() -> None:
    """It is what a resumed run skips; a repetition is asked for on purpose, and is another one."""
    assert judgment(at="2026-01-01T00:00:00Z").key == judgment().key
    assert judgment(repetition=1).key != judgment().key
    assert judgment(question_set="other").key != judgment().key


def test_a_cost_that_is_not_known_is_not_nothing() -> None:
    """A sum over the known ones would read as the price of all."""
    known = Asked(engine="llm", model="m", cost_usd=0.25)
    assert judgment(known, known).cost_usd == 0.5
    assert judgment(known, Asked(engine="llm", model="m")).cost_usd is None
    assert judgment().cost_usd == 0


def test_a_stored_judgment_is_read_as_it_was() -> None:
    """What is written by alias must be read by alias, and nothing else is accepted."""
    stored = judgment(
        Asked(engine="llm", model="m", served_model="m-1"), dimensions=all_unscored(RUBRIC, Unscored.REFUSED)
    )
    again = Judgment.model_validate_json(stored.model_dump_json(by_alias=True))
    assert (again, again.scored, again.served_model) == (stored, {}, "m-1")


def test_only_a_dimension_can_have_been_decided() -> None:
    """A cascade's account must add up to its dimensions."""
    with pytest.raises(ValidationError, match="no dimension of it"):
        judgment(decided_by={"other": "rules"})
