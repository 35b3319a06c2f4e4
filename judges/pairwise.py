"""Which of two episodes is the better one: asked in both orders, since judges favour a place.

It needs no engine of its own. The two episodes become one record with both in it, and the question a choice, which any
engine answers that judges by a rubric.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from judges.engine import JudgeEngine
from judges.jev_questions import state_of
from judges.judgment import Judgment, NoValue, Value
from judges.rubric import Dimension, Direction, Label, Rubric, Scale
from judges.view import EpisodeView, Spent, Step, StepKind

_NAME: Final = "better"
_LABELS: Final = {
    "first": Label(text="The first episode is better in this.", value=1),
    "equal": Label(text="Neither is better than the other in this.", value=0),
    "second": Label(text="The second episode is better in this.", value=-1),
    "cannot_tell": Label(text="The record does not show it.", value=None),
}


class Winner(StrEnum):
    """Which one is better. `UNDECIDED` is no tie: there is no value for at least one order."""

    A = "a"
    B = "b"
    TIE = "tie"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of it. `judgments` answer (a, b) and (b, a); `note` says why nobody won, if nobody did."""

    dimension: str
    winner: Winner
    note: str
    judgments: tuple[Judgment, Judgment]


def pairwise_rubric(dimension: Dimension) -> Rubric:
    """Return the question which of two episodes is better on `dimension`."""
    better = "higher" if dimension.direction is Direction.HIGHER else "lower"
    ends = "".join(f" {value}: {text}" for value, text in sorted(dimension.anchors.items()))
    question = (
        "The record holds two episodes, named first and second in the order of its steps; the order means nothing. In"
        f" which of them is the answer to this question better, which means {better}? {dimension.question}{ends}"
    )
    asked = Dimension(
        name=_NAME,
        question=question,
        direction=Direction.HIGHER,
        scale=Scale.CHOICE,
        lowest=-1,
        highest=1,
        labels=_LABELS,
    )
    return Rubric(name=f"pairwise_{dimension.name}"[:64], dimensions=(asked,))


async def compare_pair(
    engine: JudgeEngine, a: EpisodeView, b: EpisodeView, dimension: Dimension, *, repetition: int = 0
) -> Comparison:
    """Ask in both orders. Orders that agree decide; else it is a tie, with a note.

    Raises:
        BudgetReached, ConfigurationError, NotIndependent, RubricRefused: as `JudgeEngine.judge`.
    """
    rubric = pairwise_rubric(dimension)
    forth = await engine.judge(_both(a, b), rubric, repetition=repetition)
    back = await engine.judge(_both(b, a), rubric, repetition=repetition)
    winner, note = _decided([forth.dimensions[_NAME], back.dimensions[_NAME]])
    return Comparison(dimension=dimension.name, winner=winner, note=note, judgments=(forth, back))


def _decided(entries: Sequence[Value | NoValue]) -> tuple[Winner, str]:
    forth, back = entries
    if isinstance(forth, NoValue) or isinstance(back, NoValue):
        said = ", ".join(entry.reason.value if isinstance(entry, NoValue) else "a value" for entry in entries)
        return Winner.UNDECIDED, f"no value in one order at least: {said}"
    for_a, again_for_a = forth.value, -back.value
    if for_a != again_for_a:
        return Winner.TIE, "the two orders do not agree: the place decided, not the episode"
    if for_a == 0:
        return Winner.TIE, "both orders find neither better"
    return (Winner.A if for_a > 0 else Winner.B), ""


def _both(first: EpisodeView, second: EpisodeView) -> EpisodeView:
    """Return a record with two episodes in it, each as its judge sees it alone."""
    shown = (("first", first), ("second", second))
    steps = tuple(
        Step(kind=StepKind.HOST, text=json.dumps({f"{place}_episode": state_of(view)}, ensure_ascii=False))
        for place, view in shown
    )
    return EpisodeView(
        episode=f"{first.episode}|{second.episode}",
        task=first.task if first.task == second.task else "",
        family=first.family,
        target=", ".join(dict.fromkeys((first.target, second.target))),  # the guard of independence reads both
        system="",
        prompt="",
        answer="",
        steps=steps,
        spent=Spent(rounds=first.spent.rounds + second.spent.rounds),
    )
