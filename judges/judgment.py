"""Judgments: for each dimension a value in its range, or *unscored* with a reason. Never clamped, never guessed."""

import math
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from judges.rubric import Rubric


class Unscored(StrEnum):
    """Why there is no value."""

    PARSE_FAILURE = "parse_failure"
    ABSTAINED = "abstained"
    REFUSED = "refused"
    TOO_LONG = "too_long"
    INFRASTRUCTURE = "infrastructure"
    MISSING = "missing"
    OUT_OF_RANGE = "out_of_range"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Value(_Part):
    """A value, with the engine's own probability of it where the engine really has one."""

    kind: Literal["value"] = "value"
    value: Annotated[float, Field(allow_inf_nan=False)]
    normalised: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    probability: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None


class NoValue(_Part):
    """No value, and why. `raw` is what came in its place, cut to 500 characters."""

    kind: Literal["unscored"] = "unscored"
    reason: Unscored
    raw: Annotated[str, Field(max_length=500)] = ""


class Judgment(_Part):
    """What one engine says of one episode under one rubric: every dimension has an entry."""

    schema_: Literal["geode.judgment/1"] = Field(default="geode.judgment/1", alias="schema")
    engine: str
    model: str | None = None
    rubric: str
    rubric_id: str
    dimensions: dict[str, Annotated[Value | NoValue, Field(discriminator="kind")]]

    @property
    def scored(self) -> dict[str, Value]:
        """The dimensions that have a value."""
        return {name: entry for name, entry in self.dimensions.items() if isinstance(entry, Value)}


def judge_reply(engine: str, rubric: Rubric, reply: dict[str, JsonValue], model: str | None = None) -> Judgment:
    """Hold an engine's reply (dimension name -> number) against the rubric.

    Only a real number inside the range is a value. A dimension that is missing, a string, a boolean, NaN or a number
    outside the range is unscored; names that the rubric does not have are ignored.
    """
    return Judgment(
        engine=engine,
        model=model,
        rubric=rubric.name,
        rubric_id=rubric.rubric_id,
        dimensions={d.name: _entry(rubric, d.name, reply) for d in rubric.dimensions},
    )


def _entry(rubric: Rubric, name: str, reply: dict[str, JsonValue]) -> Value | NoValue:
    if name not in reply:
        return NoValue(reason=Unscored.MISSING)
    given = reply[name]
    if isinstance(given, bool) or not isinstance(given, int | float) or math.isnan(given):
        return NoValue(reason=Unscored.PARSE_FAILURE, raw=repr(given)[:500])
    try:
        return Value(value=given, normalised=rubric.dimension(name).normalised(given))
    except ValueError:
        return NoValue(reason=Unscored.OUT_OF_RANGE, raw=repr(given)[:500])
