"""Answers of a decision model, held against their questions: a number of the dimension, or none. Never a low score.

Forms and roundings: PROVIDERS 1.3. All numbers of the wire are rounded to hundredths.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from judges.jev_questions import Choice, Noul, Question, Score, levels_of
from judges.judgment import NoValue, Unscored, Value, entry_of, no_value
from judges.rubric import Dimension

_HALF_STEP: Final = 0.005  # what rounding to hundredths can change
_SUM_DRIFT_MAX: Final = 0.03
_FLOAT: Final = 1e-9

_Certainty = Annotated[float, Field(ge=0, le=1)]


class MalformedDecision(ValueError):  # noqa: N818  (named by what it is)
    """An answer has not the form that its question asks for, or contradicts itself."""


class AbstainBelow(BaseModel):
    """Which certainty is too low for a value. Nothing abstains unless it is set: a band is fitted on labelled episodes.

    The certainty of a flag is |2p - 1|, that of the others what the provider calls confidence: 1 where one label or
    level has all the probability. The three do not compare with each other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    flag: _Certainty = 0.0
    score: _Certainty = 0.0
    choice: _Certainty = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A sound answer to a choice. The provider may leave probabilities and confidence out."""

    label: str
    probabilities: Mapping[str, float] | None
    confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A sound answer to a score: the mean level, counted from 0, and the probability of each."""

    score: float
    probabilities: Sequence[float] | None
    confidence: float | None


def entry_of_answer(
    dimension: Dimension, question: Question, answers: JsonValue, abstain: AbstainBelow
) -> Value | NoValue:
    """Return the entry of a dimension, whatever came in reply.

    Args:
        dimension: what is judged.
        question: what was asked for it.
        answers: what stands under `answers` in the reply.
        abstain: which certainty is too low.
    """
    if not isinstance(answers, dict):
        return no_value(Unscored.PARSE_FAILURE, f"the answers are no object: {json.dumps(answers)}")
    if dimension.name not in answers:
        return no_value(Unscored.MISSING)
    given = answers[dimension.name]
    try:
        match question:
            case Noul():
                return _flagged(dimension, read_noul(given), abstain.flag)
            case Choice():
                return _chosen(dimension, read_choice(question, given), abstain.choice)
            case Score():
                return _scored(dimension, read_score(question, given), abstain.score)
    except MalformedDecision as problem:
        return no_value(Unscored.PARSE_FAILURE, f"{problem}: {json.dumps(given)}")


def _flagged(dimension: Dimension, yes: float, below: float) -> Value | NoValue:
    return _valued(dimension, yes, {"0": 1 - yes, "1": yes}, abs(2 * yes - 1), below)


def _chosen(dimension: Dimension, chosen: Chosen, below: float) -> Value | NoValue:
    value = dimension.labels[chosen.label].value
    if value is None:
        return no_value(Unscored.ABSTAINED, f"it chose {chosen.label!r}")
    by_value: dict[str, float] | None = None
    if chosen.probabilities is not None:
        by_value = {}
        for name, share in chosen.probabilities.items():
            if (meant := dimension.labels[name].value) is not None:  # what the abstaining label has is left out
                by_value[f"{meant:g}"] = min(1.0, by_value.get(f"{meant:g}", 0.0) + share)
    return _valued(dimension, value, by_value, chosen.confidence, below)


def _scored(dimension: Dimension, scored: Scored, below: float) -> Value | NoValue:
    levels, shares = levels_of(dimension), scored.probabilities
    if len({after - before for before, after in pairwise(levels)}) == 1:
        value = dimension.lowest + scored.score / (len(levels) - 1) * (dimension.highest - dimension.lowest)
    elif shares is not None:
        mean = sum(level * share for level, share in zip(levels, shares, strict=True)) / sum(shares)
        value = min(max(mean, dimension.lowest), dimension.highest)  # the last bit of a sum of floats
    else:
        return no_value(Unscored.PARSE_FAILURE, "no probabilities came, and the anchors are not evenly spaced")
    probabilities = None if shares is None else dict(zip(map(str, levels), shares, strict=True))
    return _valued(dimension, value, probabilities, scored.confidence, below)


def _valued(
    dimension: Dimension, value: float, probabilities: dict[str, float] | None, certainty: float | None, below: float
) -> Value | NoValue:
    if below > 0 and (certainty is None or certainty < below):
        sure = "of no known certainty" if certainty is None else f"of certainty {certainty:g}"
        return no_value(Unscored.ABSTAINED, f"{value:g}, {sure}, where {below:g} is needed")
    return entry_of(dimension, value, probabilities=probabilities, certainty=certainty)


def read_noul(given: JsonValue) -> float:
    """Return the probability of yes. Whatever else stands beside it is not looked at: a noul has no confidence.

    Raises:
        MalformedDecision: if it is none.
    """
    return _number(_typed(given, "noul").get("noul"), "noul", 1)


def read_choice(question: Choice, given: JsonValue) -> Chosen:
    """Return what was chosen.

    Raises:
        MalformedDecision: if it is no label that was asked for, or another one is likelier.
    """
    answer = _typed(given, "choice")
    label = answer.get("choice")
    if not isinstance(label, str) or label not in question.criteria:
        raise MalformedDecision(f"{label!r:.80} is no label of the question")
    probabilities = _probabilities(answer, list(question.criteria))
    confidence = _confidence(answer)
    if probabilities is not None:
        top = max(probabilities.values())
        if probabilities[label] < top - _FLOAT:
            raise MalformedDecision(f"{label!r} was chosen, and another label is likelier")
        if confidence is None:
            confidence = choice_confidence(probabilities.values())
    return Chosen(label=label, probabilities=probabilities, confidence=confidence)


def read_score(question: Score, given: JsonValue) -> Scored:
    """Return the mean level.

    Raises:
        MalformedDecision: if it is no level, or not the mean of the probabilities.
    """
    answer = _typed(given, "score")
    count = len(question.criteria)
    score = _number(answer.get("score"), "score", count - 1)
    named = _probabilities(answer, [str(level) for level in range(count)])
    confidence = _confidence(answer)
    if named is None:
        return Scored(score=score, probabilities=None, confidence=confidence)
    probabilities = [named[str(level)] for level in range(count)]
    if not _is_mean(score, probabilities):
        raise MalformedDecision(f"the score {score:g} is not the mean of its probabilities")
    if confidence is None:
        confidence = score_confidence(probabilities)
    return Scored(score=score, probabilities=probabilities, confidence=confidence)


def choice_confidence(probabilities: Iterable[float]) -> float:
    """Return (n·pmax - 1) / (n - 1), within 0 and 1: what the provider is seen to compute (PROVIDERS 1.3)."""
    shares = list(probabilities)
    return min(1.0, max(0.0, (len(shares) * max(shares) - 1) / (len(shares) - 1)))


def score_confidence(probabilities: Sequence[float]) -> float:
    """Return 1 - sum(p·|i - mode|) / U with U = floor(n²/4) / n, at least 0 (PROVIDERS 1.3)."""
    count, mode = len(probabilities), probabilities.index(max(probabilities))
    spread = sum(share * abs(level - mode) for level, share in enumerate(probabilities))
    return max(0.0, 1 - spread / (count**2 // 4 / count))


def _is_mean(score: float, probabilities: Sequence[float]) -> bool:
    """Return whether only roundings lie between a score and the mean of its probabilities.

    The score may have been computed before they were rounded. What their rounding did to the sum is known then, and is
    taken as done to the middle level.
    """
    middle = (len(probabilities) - 1) / 2
    mean = sum(level * share for level, share in enumerate(probabilities))
    before = mean - middle * (sum(probabilities) - 1)
    allowed = _HALF_STEP * (1 + sum(abs(level - middle) for level in range(len(probabilities))))
    return min(abs(mean - score), abs(before - score)) <= allowed + _FLOAT


def _typed(given: JsonValue, kind: str) -> Mapping[str, JsonValue]:
    if not isinstance(given, dict) or given.get("type") != kind:
        raise MalformedDecision(f"it is no answer to a {kind} question")
    return given


def _number(given: JsonValue, name: str, most: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= most:
        raise MalformedDecision(f"{name} is {given!r:.80}, and no number from 0 to {most:g}")
    return float(given)


def _confidence(answer: Mapping[str, JsonValue]) -> float | None:
    given = answer.get("confidence")
    return None if given is None else _number(given, "confidence", 1)


def _probabilities(answer: Mapping[str, JsonValue], names: Sequence[str]) -> dict[str, float] | None:
    """Return the probability of each name, in the order of `names` and not of the reply; None if there are none."""
    given = answer.get("probabilities")
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) != set(names):
        raise MalformedDecision("its probabilities are not those of what was asked for")
    shares = {name: _number(given[name], "a probability", 1) for name in names}
    if abs(sum(shares.values()) - 1) > _SUM_DRIFT_MAX + _FLOAT:
        raise MalformedDecision(f"its probabilities sum to {sum(shares.values()):.3g}")
    return shares
