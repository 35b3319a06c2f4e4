"""What repeating a judgment shows: the mean of each dimension, and how far the judge is from itself."""

import pytest

from judges.judgment import Judgment, Unscored, entry_of, no_value
from judges.repeats import Repeats, repeats_of
from judges.rubric import Dimension, Direction, Rubric

CARE = Dimension(name="care", question="?", direction=Direction.HIGHER)
RUBRIC = Rubric(name="one", dimensions=(CARE,))


def judgment(episode: str, value: float | None, repetition: int = 0, digest: str = "d") -> Judgment:
    return Judgment(
        episode=episode,
        view_digest=digest,
        engine="jev",
        engine_id="e",
        rubric="one",
        rubric_id="r",
        question_set="q",
        repetition=repetition,
        dimensions={"care": no_value(Unscored.ABSTAINED) if value is None else entry_of(CARE, value)},
    )


def test_the_spread_is_that_within_transcripts() -> None:
    """What lies between transcripts is no noise of the judge: 2 and 9 differ, and each is repeated exactly."""
    exact = [judgment(name, value, n) for name, value in (("a", 2), ("b", 9)) for n in range(3)]
    assert repeats_of(exact, RUBRIC) == (Repeats(dimension="care", transcripts=2, values=6, mean=5.5, spread=0),)


def test_the_spreads_of_transcripts_are_pooled_by_what_each_knows() -> None:
    """Variance 1 from three values and 2 from two: (2 * 1 + 1 * 2) / 3."""
    given = [judgment("a", value) for value in (4, 5, 6)] + [judgment("b", value) for value in (2, 4)]
    [care] = repeats_of(given, RUBRIC)
    assert care.spread == pytest.approx((4 / 3) ** 0.5)


def test_one_value_has_no_spread_and_no_value_no_mean() -> None:
    """None, and not 0: nobody has seen it repeat."""
    [once] = repeats_of([judgment("a", 4), judgment("b", 6)], RUBRIC)
    assert (once.mean, once.spread) == (5, None)
    [never] = repeats_of([judgment("a", None)], RUBRIC)
    assert (never.values, never.mean, never.spread) == (0, None, None)


def test_what_is_unscored_moves_neither() -> None:
    given = [judgment("a", 4), judgment("a", None, 1), judgment("a", 6, 2)]
    [care] = repeats_of(given, RUBRIC)
    assert (care.values, care.mean, care.spread) == (2, 5, pytest.approx(2**0.5))


def test_another_transcript_of_the_same_name_is_another_one() -> None:
    """An episode that was run again is no repetition of its judgment."""
    [care] = repeats_of([judgment("a", 4), judgment("a", 6, digest="other")], RUBRIC)
    assert (care.transcripts, care.spread) == (2, None)
