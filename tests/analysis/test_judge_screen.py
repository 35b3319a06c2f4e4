"""What a person sees of a run of judgments."""

import io
import json

from rich.console import Console

from analysis.judge_screen import print_summary, summary_to_json
from analysis.rejudge import Judged
from geode.clock import ManualClock
from judges.cascade import CascadeAccount, StageAccount
from judges.judgment import Asked, Judgment, Unscored, all_unscored, entry_of
from judges.rubric import Dimension, Direction, Rubric
from judges.rules import Rules

CARE = Dimension(name="stuck_in_loops", question="?", direction=Direction.LOWER)
RUBRIC = Rubric(name="one", dimensions=(CARE,))


def judgments(*values: float, repeated: bool = False) -> tuple[Judgment, ...]:
    return tuple(
        Judgment(
            episode="e" if repeated else f"e{n}",
            view_digest="d",
            engine="rules",
            engine_id="i",
            rubric="one",
            rubric_id="r",
            question_set="q",
            repetition=n if repeated else 0,
            dimensions={CARE.name: entry_of(CARE, value)},
        )
        for n, value in enumerate(values)
    )


def judged(*values: float, repeated: bool) -> Judged:
    return of_given(judgments(*values, repeated=repeated))


def of_given(given: tuple[Judgment, ...]) -> Judged:
    return Judged(
        given=given, found=0, left=0, unreadable=(), elsewhere=(), problems=(), stopped="", out_of_budget=False
    )


def shown(of: Judged) -> str:
    out = io.StringIO()
    print_summary(Console(file=out, width=120), of, Rules(ManualClock()), RUBRIC)
    return out.getvalue()


def test_what_was_repeated_is_shown_with_its_spread() -> None:
    """PROVIDERS 37: the same transcript three times, as 4, 5 and 6."""
    text = shown(judged(4, 5, 6, repeated=True))
    assert "± of repeats" in text
    assert [word for word in text.split() if word in ("5.00", "1.00")] == ["5.00", "1.00"]


def test_what_was_not_repeated_has_no_such_column() -> None:
    """The spread between episodes is another thing."""
    assert "repeats" not in shown(judged(4, 5, 6, repeated=False))


def test_a_program_is_told_the_same() -> None:
    """PROVIDERS 37."""
    body = json.loads(summary_to_json(judged(4, 6, repeated=True), Rules(ManualClock()), RUBRIC))
    [care] = body["repeats"]
    assert (care["dimension"], care["transcripts"], care["values"], care["mean"]) == ("stuck_in_loops", 1, 2, 5)
    assert round(care["spread"], 6) == round(2**0.5, 6)


def test_a_cascade_shows_who_decided_how_much_and_what_it_saved() -> None:
    account = CascadeAccount(
        episodes=4,
        stages=(
            StageAccount(stage="rules", decided=6, scored=6, episodes=0, requests=0, cost_usd=0.0),
            StageAccount(stage="llm", decided=2, scored=1, episodes=1, requests=2, cost_usd=0.25),
        ),
        cost_usd=0.25,
        last_alone_usd=1.0,
        rests_on=1,
    )
    out = io.StringIO()
    print_summary(Console(file=out, width=160), judged(4, repeated=False), Rules(ManualClock()), RUBRIC, account)
    text = out.getvalue()
    assert "in all 0.2500 USD; llm alone would have cost about 1.0000 USD, by the 1 of 4 episodes" in text
    assert [line.split()[1:5] for line in text.splitlines() if line.split()[:1] == ["llm"]] == [["2", "1", "1", "2"]]
    body = json.loads(summary_to_json(judged(4, repeated=False), Rules(ManualClock()), RUBRIC, account))
    assert body["cascade"]["last_alone_usd"] == 1.0


def test_what_nobody_knows_of_a_cascade_is_not_made_up() -> None:
    stage = StageAccount(stage="llm", decided=0, scored=0, episodes=0, requests=0, cost_usd=0.0)
    account = CascadeAccount(episodes=1, stages=(stage,), cost_usd=0.0, last_alone_usd=None, rests_on=0)
    out = io.StringIO()
    print_summary(Console(file=out, width=160), judged(4, repeated=False), Rules(ManualClock()), RUBRIC, account)
    assert "what llm alone would have cost is not known" in out.getvalue()


def failed(judgment: Judgment, *why: str) -> Judgment:
    asked = tuple(Asked(engine="jev", model="typesafe/jev-1.13.0", failed=reason, cost_usd=0.0) for reason in why)
    spoiled = all_unscored(RUBRIC, Unscored.INFRASTRUCTURE)
    return judgment.model_copy(update={"dimensions": spoiled, "asked": asked})


def test_each_reason_why_requests_failed_is_told_once_with_its_count() -> None:
    first, second, third = judgments(1, 2, 3)
    text = shown(of_given((failed(first, "401: [bold] key"), failed(second, "401: [bold] key"), failed(third, "429"))))
    assert text.count("401") == 1
    assert "2 requests failed: 401: [bold] key\n" in text
    assert "1 request failed: 429\n" in text


def test_of_many_reasons_some_are_told_and_the_rest_counted() -> None:
    text = shown(of_given((failed(judgments(1)[0], *(f"no. {n}" for n in range(8))),)))
    assert text.count("request failed: ") == 5
    assert "and 3 more failed for other reasons" in text


def test_a_model_is_named_once_however_many_answered_beside_it() -> None:
    def by(judgment: Judgment, *models: str) -> Judgment:
        asked = tuple(Asked(engine="x", model="a/b", served_model=model) for model in models)
        return judgment.model_copy(update={"asked": asked})

    first, second = judgments(1, 2)
    assert "rules (one, two) under" in shown(of_given((by(first, "one"), by(second, "one", "two"))))
