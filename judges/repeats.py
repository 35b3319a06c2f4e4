"""How far apart a judge is from itself: the same transcript judged several times, by dimension."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, variance

from judges.judgment import Judgment
from judges.rubric import Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """One dimension of transcripts that were judged again.

    `mean` is that of all `values`, None without any. `spread` is the standard deviation among the values of one
    transcript, pooled over the transcripts that have two or more; None if there are none: one value says nothing of it.
    """

    dimension: str
    transcripts: int
    values: int
    mean: float | None
    spread: float | None


def repeats_of(judgments: Iterable[Judgment], rubric: Rubric) -> tuple[Repeats, ...]:
    """Return mean and spread of each dimension, from judgments of one engine under `rubric`."""
    grouped: defaultdict[str, defaultdict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for judgment in judgments:
        for name, entry in judgment.scored.items():
            grouped[name][judgment.episode, judgment.view_digest].append(entry.value)
    return tuple(_of_dimension(d.name, list(grouped[d.name].values())) for d in rubric.dimensions)


def _of_dimension(name: str, by_transcript: list[list[float]]) -> Repeats:
    values = [value for given in by_transcript for value in given]
    again = [given for given in by_transcript if len(given) > 1]
    freedom = sum(len(given) - 1 for given in again)
    squares = sum(variance(given) * (len(given) - 1) for given in again)
    return Repeats(
        dimension=name,
        transcripts=len(by_transcript),
        values=len(values),
        mean=fmean(values) if values else None,
        spread=math.sqrt(squares / freedom) if again else None,
    )
