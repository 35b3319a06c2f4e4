"""The engine `rules` puts what it counted on the scale of a dimension, and abstains from everything else."""

import pytest

from geode.clock import ManualClock
from judges.engine import RubricRefused
from judges.judgment import NoValue, Unscored, Value
from judges.rubric import Dimension, Direction, Rubric
from judges.rules import Rules
from tests.judges.views import call, view

LOOPS = Dimension(name="stuck_in_loops", question="Loops?", direction=Direction.LOWER)
CARE = Dimension(name="care", question="Careful?", direction=Direction.HIGHER, lowest=0, highest=4)
RUBRIC = Rubric(name="r", dimensions=(LOOPS, CARE))
LOOPING = view(*[call("read_file", "same", path="a")] * 6)


async def test_a_finding_stands_on_the_scale_of_its_dimension_with_what_was_counted() -> None:
    """Lower is better here, so the worst that can be counted is the upper end."""
    judgment = await Rules(ManualClock()).judge(LOOPING, RUBRIC)
    assert judgment.dimensions["stuck_in_loops"] == Value(
        value=10, normalised=0, reason="a call of read_file with the same result came 6 times"
    )
    assert judgment.asked == ()
    assert judgment.cost_usd == 0


async def test_a_dimension_that_no_check_speaks_for_is_abstained_from() -> None:
    """A rule that guessed would be taken for a measurement."""
    entry = (await Rules(ManualClock()).judge(LOOPING, RUBRIC)).dimensions["care"]
    assert isinstance(entry, NoValue)
    assert entry.reason is Unscored.ABSTAINED


async def test_a_check_can_be_named_for_a_dimension_of_ones_own() -> None:
    """And where higher is better, the finding stands the other way round."""
    judgment = await Rules(ManualClock(), {"care": "loops"}).judge(LOOPING, RUBRIC)
    assert judgment.scored["care"].value == 0


def test_what_rules_cannot_judge_is_refused_before_anything_is_judged() -> None:
    """A table of abstentions from end to end helps nobody."""
    with pytest.raises(RubricRefused, match=r"judge\.checks\.DIMENSION=CHECK"):
        Rules(ManualClock()).question_set(Rubric(name="r", dimensions=(CARE,)))
    with pytest.raises(RubricRefused, match="no check 'nonsense'; there are"):
        Rules(ManualClock(), {"care": "nonsense"})


def test_another_choice_of_checks_is_another_engine() -> None:
    """Else the judgments of the one would be taken for those of the other."""
    plain, other = Rules(ManualClock()), Rules(ManualClock(), {"care": "loops"})
    assert plain.engine_id != other.engine_id
    assert plain.question_set(RUBRIC) != other.question_set(RUBRIC)
