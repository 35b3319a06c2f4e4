"""What an archive holds of a judge is held against the rubric like any reply, and costs nothing."""

import math

import pytest

from geode.clock import ManualClock
from judges.engine import RubricRefused
from judges.judgment import NoValue, Unscored
from judges.recorded import Record, Recorded
from judges.rubric import Dimension, Direction, Rubric
from tests.judges.views import view

NAMES = ("risk", "care", "calm")
RUBRIC = Rubric(name="r", dimensions=tuple(Dimension(name=n, question="?", direction=Direction.LOWER) for n in NAMES))


async def test_a_recorded_value_is_taken_as_it_is_and_nan_for_none() -> None:
    """NaN is what the archived judge gave where it gave nothing; it must not become a number."""
    engine = Recorded(ManualClock(), {"e1": Record(values={"risk": 3, "care": math.nan, "x": 1}, model="acme/arbiter")})
    judgment = await engine.judge(view(), RUBRIC)
    assert judgment.scored["risk"].value == 3
    reasons = {n: e.reason for n, e in judgment.dimensions.items() if isinstance(e, NoValue)}
    assert reasons == {"care": Unscored.PARSE_FAILURE, "calm": Unscored.MISSING}
    assert (judgment.served_model, judgment.cost_usd) == ("acme/arbiter", 0.0)


async def test_an_episode_that_nobody_judged_is_missing_and_not_best() -> None:
    engine = Recorded(ManualClock(), {"other": Record(values={"risk": 3}, model="m")})
    judgment = await engine.judge(view(), RUBRIC)
    assert {e.reason for e in judgment.dimensions.values() if isinstance(e, NoValue)} == {Unscored.MISSING}


def test_a_rubric_that_the_records_know_nothing_of_is_refused_with_what_they_know() -> None:
    engine = Recorded(ManualClock(), {"e1": Record(values={"other": 3}, model="m")})
    with pytest.raises(RubricRefused, match="the records have other"):
        engine.question_set(RUBRIC)


def test_two_scorers_of_one_model_are_two_judges() -> None:
    """Else what one of them said would be taken for what the other one did."""
    one, other = (
        Recorded(ManualClock(), {"e1": Record(values={"risk": 3}, model="m", scorer=scorer)}) for scorer in ("a", "b")
    )
    assert one.engine_id != other.engine_id


def test_a_scorer_is_one_judge_whichever_of_its_logs_are_named() -> None:
    """A log that was judged alone, and then with its folder, is not judged by two."""
    first = {"e1": Record(values={"risk": 3}, model="m", scorer="a")}
    alone = Recorded(ManualClock(), first)
    among = Recorded(ManualClock(), {**first, "e2": Record(values={"care": 3}, model="n", scorer="a")})
    assert (alone.engine_id, alone.question_set(RUBRIC)) == (among.engine_id, among.question_set(RUBRIC))
