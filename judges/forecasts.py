"""What a judge expects of episodes beside what is true of them: the input of calibration and of thresholds.

Both speak of one event: the episode is on the good side of the dimension.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from judges.judgment import NoValue, Value
from judges.ratings import Judge, first_answers
from judges.rubric import Dimension

GOOD_FROM = 0.5
"""From which normalised value on an episode is on the good side."""


class Basis(StrEnum):
    """Where a forecast comes from."""

    PROBABILITIES = "probabilities"
    """The sum over the values on the good side."""
    CERTAINTY = "certainty"
    """(1 + certainty) / 2 for the side that the value is on: no certainty is a coin, full certainty none."""
    VALUE = "value"
    """The normalised value, which is no probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a judge expects of one episode, from 0, the bad side, to 1, and whether it is on the good side."""

    episode: str
    family: str
    expected: float
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecasts:
    """A judge's forecasts on one dimension, all of one basis.

    `served_models` and `question_sets` are those of the judgments. `left_out` counts judgments that give none, by the
    reason.
    """

    judge: str
    served_models: tuple[str, ...]
    question_sets: tuple[str, ...]
    dimension: str
    against: str
    good_from: float
    basis: Basis
    forecasts: tuple[Forecast, ...]
    left_out: Mapping[str, int]


def forecasts(
    judge: Judge,
    dimension: Dimension,
    truths: Mapping[str, bool],
    families: Mapping[str, str],
    *,
    against: str,
    good_from: float = GOOD_FROM,
) -> Forecasts:
    """Put a judge's answers beside the truth, by episode, from the best basis that any of its answers has.

    Args:
        judge: with its judgments; of several repetitions the first counts.
        dimension: which of its entries are meant.
        truths: which episodes are on the good side.
        families: the family of each episode.
        against: where the truths come from, for people.
        good_from: from which normalised value on a value is on the good side.

    Raises:
        ValueError: if the judge gave an answer twice for one repetition.
    """
    answers = first_answers(judge)
    entries = {episode: judgment.dimensions.get(dimension.name) for episode, judgment in answers.items()}
    values = {episode: entry for episode, entry in entries.items() if isinstance(entry, Value)}
    basis = _best_basis(values)
    left_out: Counter[str] = Counter()
    found = []
    for episode, entry in entries.items():
        if not isinstance(entry, Value):
            left_out[f"unscored: {entry.reason}" if isinstance(entry, NoValue) else "unscored: missing"] += 1
        elif (expected := expected_good(dimension, entry, basis, good_from)) is None:
            left_out[f"without {basis}"] += 1
        elif episode not in truths:
            left_out["without a truth"] += 1
        elif episode not in families:
            left_out["of no known family"] += 1
        else:
            forecast = Forecast(episode=episode, family=families[episode], expected=expected, good=truths[episode])
            found.append(forecast)
    return Forecasts(
        judge=judge.name,
        served_models=tuple(sorted({judgment.served_model for judgment in answers.values() if judgment.served_model})),
        question_sets=tuple(sorted({judgment.question_set for judgment in answers.values()})),
        dimension=dimension.name,
        against=against,
        good_from=good_from,
        basis=basis,
        forecasts=tuple(found),
        left_out=dict(left_out),
    )


def expected_good(dimension: Dimension, value: Value, basis: Basis, good_from: float) -> float | None:
    """Return how far a judge expects the good side, from 0 to 1; None if its answer lacks the basis."""
    match basis:
        case Basis.PROBABILITIES:
            return _from_probabilities(dimension, value, good_from)
        case Basis.CERTAINTY:
            if value.certainty is None:
                return None
            side = (1 + value.certainty) / 2
            return side if value.normalised >= good_from else 1 - side
        case Basis.VALUE:
            return value.normalised


def _from_probabilities(dimension: Dimension, value: Value, good_from: float) -> float | None:
    good = total = 0.0
    for name, share in (value.probabilities or {}).items():
        try:
            is_good = dimension.normalised(float(name)) >= good_from
        except ValueError:
            return None  # an engine of a package may write what is no value of the dimension
        total += share
        good += share * is_good
    return min(1.0, good / total) if total else None  # what an answer without a value has is in neither


def _best_basis(values: Mapping[str, Value]) -> Basis:
    if any(value.probabilities for value in values.values()):
        return Basis.PROBABILITIES
    return Basis.CERTAINTY if any(value.certainty is not None for value in values.values()) else Basis.VALUE
