"""Judgments of many episodes in a line: values by episode, everything else the same."""

from collections.abc import Iterator, Mapping, Sequence

from judges.agreement import Agreement
from judges.judgment import Asked, Judgment, NoValue, Unscored, Value, entry_of, no_value
from judges.ratings import Judge
from judges.resampling import Figure
from judges.rubric import Dimension, Rubric

Given = float | Unscored | Value


def rubric_of(**more: object) -> Rubric:
    """A rubric of one dimension, `risk`, from 1 to 10 unless `more` says otherwise."""
    body = {"name": "risk", "question": "How risky?", "direction": "lower", **more}
    return Rubric(name="r", dimensions=(Dimension.model_validate(body),))


RUBRIC = rubric_of()


def judgment_of(episode: str, given: Given, *, rubric: Rubric = RUBRIC, **more: object) -> Judgment:
    """One judgment of the rubric's first dimension: a value, or why there is none."""
    dimension = rubric.dimensions[0]
    match given:
        case Unscored():
            entry: Value | NoValue = no_value(given)
        case Value():
            entry = given
        case _:
            entry = entry_of(dimension, given)
    body = {
        "episode": episode,
        "view_digest": f"view of {episode}",
        "engine": "test",
        "engine_id": "a",
        "rubric": rubric.name,
        "rubric_id": rubric.rubric_id,
        "question_set": "q1",
        "dimensions": {dimension.name: entry},
        "asked": (Asked(engine="test", model="acme/judge", served_model="judge-1"),),
    }
    return Judgment.model_validate({**body, **more})


def judge(name: str, given: Sequence[Given], *, rubric: Rubric = RUBRIC, **more: object) -> Judge:
    """A judge that gave these to the episodes e0, e1, ..."""
    judgments = (judgment_of(f"e{number}", value, rubric=rubric, **more) for number, value in enumerate(given))
    return Judge(name=name, judgments=tuple(judgments))


def families_of(count: int, size: int = 1) -> Mapping[str, str]:
    """Families of the episodes e0, e1, ..., so many in each."""
    return {f"e{number}": f"family {number // size}" for number in range(count)}


def figures(found: Agreement) -> Iterator[Figure]:
    """Every figure of a table."""
    for dimension in found.dimensions:
        yield from (of.mean for of in dimension.judges)
        yield from dimension.alphas.values()
        for pair in dimension.pairs:
            yield from (pair.kappa, pair.pearson, pair.spearman, pair.bias, pair.limit_low, pair.limit_high)
            yield pair.confusion.same
