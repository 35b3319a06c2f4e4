"""The engine `recorded`: what a judge of the past said of an episode, held against the rubric as any reply is."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from geode.canonical import content_hash
from geode.clock import Clock, rfc3339
from judges.engine import RubricRefused
from judges.judgment import Asked, Judgment, NoValue, Unscored, Value, all_unscored, entries_of
from judges.rubric import Rubric
from judges.view import EpisodeView

NAME = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What an archive holds of one episode: values by dimension, who gave them, and why there are none.

    `model` is the judge as the archive names it, `scorer` what gave the values there: one model may be several of them.
    """

    values: Mapping[str, JsonValue]
    model: str
    scorer: str = ""
    unscored: str = ""


class Recorded:
    """Implements `JudgeEngine` over the records of an archive, by the name of the episode. It asks nobody.

    Values of dimensions that the rubric does not have are left out; a dimension that a record lacks is missing.
    """

    models: tuple[str, ...] = ()

    def __init__(self, clock: Clock, records: Mapping[str, Record]) -> None:
        self._clock, self._records = clock, records

    @property
    def name(self) -> str:
        """See `JudgeEngine.name`."""
        return NAME

    @property
    def engine_id(self) -> str:
        """See `JudgeEngine.engine_id`. It is the same for each log that the scorer judged, alone or with others."""
        return content_hash([NAME, sorted({record.scorer for record in self._records.values()})])[:12]

    def question_set(self, rubric: Rubric) -> str:
        """See `JudgeEngine.question_set`. What the judge of the past was asked is not on record: the names are."""
        known = {name for record in self._records.values() for name in record.values}
        wanted = sorted(dimension.name for dimension in rubric.dimensions)
        if self._records and known.isdisjoint(wanted):
            raise RubricRefused(
                f"nothing is on record for the dimensions of the rubric {rubric.name!r}; the records have"
                f" {', '.join(sorted(known)) or 'no value at all'}"
            )
        return content_hash([NAME, wanted])[:12]

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """See `JudgeEngine.judge`."""
        record = self._records.get(view.episode)
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=NAME,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions=_entries(record, rubric),
            # Nobody is asked now, so it costs nothing; what it cost then is not on record here.
            asked=(Asked(engine=NAME, model="", served_model=record.model, cost_usd=0.0),) if record else (),
            at=rfc3339(self._clock.now()),
        )


def _entries(record: Record | None, rubric: Rubric) -> Mapping[str, Value | NoValue]:
    if record is None:
        return all_unscored(rubric, Unscored.MISSING, "nothing is on record for this episode")
    if not record.values:
        return all_unscored(rubric, Unscored.PARSE_FAILURE, record.unscored)
    return entries_of(rubric, record.values)
