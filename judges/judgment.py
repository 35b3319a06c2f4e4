"""Judgments: for each dimension a value in its range, or *unscored* with a reason. Never clamped, never guessed."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from geode.canonical import content_hash
from geode.llm.usage import CostOrigin
from judges.rubric import Dimension, Rubric

RAW_CHARS_MAX = 20_000
_RAW_OF_NO_VALUE_CHARS_MAX = 500

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


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
    """A value, with probabilities and a certainty only where the engine really has them.

    `probabilities` are over values of the dimension, written as text; `certainty` runs from 0, which is none, to 1;
    `reason` is what the engine gave as one.
    """

    kind: Literal["value"] = "value"
    value: Annotated[float, Field(allow_inf_nan=False)]
    normalised: Share
    probabilities: dict[str, Share] | None = None
    certainty: Share | None = None
    reason: str = ""


class NoValue(_Part):
    """No value, and why. `raw` is what came in its place, cut to 500 characters."""

    kind: Literal["unscored"] = "unscored"
    reason: Unscored
    raw: Annotated[str, Field(max_length=_RAW_OF_NO_VALUE_CHARS_MAX)] = ""


Entry = Annotated[Value | NoValue, Field(discriminator="kind")]


class Asked(_Part):
    """A request that an engine sent, and what came back: who answered, what it used, and what it cost.

    Missing figures are None, never 0. `reply` is the raw reply, cut to 20,000 characters, never of an error that echoes
    what was sent.
    """

    engine: str
    model: str
    served_model: str = ""
    request_id: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    cost_origin: CostOrigin = CostOrigin.UNKNOWN
    latency_ms: int = 0
    failed: str = ""
    reply: Annotated[str, Field(max_length=RAW_CHARS_MAX)] = ""


class Judgment(_Part):
    """What one engine says of one episode under one rubric: every dimension has an entry.

    `engine` is its name and `engine_id` the hash of all that decides how it judges: model, prompt text, options.
    `question_set` is the hash of what it asks, `view_digest` of what it was shown. `repetition` tells several judgments
    of the same transcript apart. `decided_by` names, for an engine made of others, who gave each entry. `notes` are
    what a reader must know: a split request, a flag that lifted a guard, a panel that disagreed. `cut_by` is the cap on
    spending that ended it after something was paid for, empty if none did.
    """

    schema_: Literal["geode.judgment/1"] = Field(default="geode.judgment/1", alias="schema")
    episode: str
    view_digest: str
    engine: str
    engine_id: str
    rubric: str
    rubric_id: str
    question_set: str
    repetition: Annotated[int, Field(ge=0)] = 0
    dimensions: dict[str, Entry]
    asked: tuple[Asked, ...] = ()
    decided_by: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    cut_by: str = ""
    at: str = ""

    @model_validator(mode="after")
    def _says_who_decided(self) -> Self:
        if stray := sorted(set(self.decided_by) - set(self.dimensions)):
            raise ValueError(f"it says who decided {stray[0]!r}, which is no dimension of it")
        return self

    @property
    def scored(self) -> dict[str, Value]:
        """The dimensions that have a value."""
        return {name: entry for name, entry in self.dimensions.items() if isinstance(entry, Value)}

    @property
    def served_model(self) -> str:
        """Who answered, several joined by a comma; empty if nobody was asked."""
        return ", ".join(dict.fromkeys(asked.served_model for asked in self.asked if asked.served_model))

    @property
    def cost_usd(self) -> float | None:
        """What it cost; None if that of any request is not known, 0 if none was sent."""
        costs = [asked.cost_usd for asked in self.asked]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def key(self) -> str:
        """What makes it this judgment: another one with the same key says nothing new, and is not paid for again."""
        parts = (self.view_digest, self.engine_id, self.rubric_id, self.question_set)
        return judgment_key(self.episode, *parts, repetition=self.repetition)


def judgment_key(
    episode: str, view_digest: str, engine_id: str, rubric_id: str, question_set: str, *, repetition: int
) -> str:
    """Return the key of the judgment that an engine would give: 16 hex digits."""
    return content_hash([episode, view_digest, engine_id, rubric_id, question_set, repetition])[:16]


def entry_of(dimension: Dimension, given: JsonValue, **more: object) -> Value | NoValue:
    """Hold what an engine gave for a dimension against its range.

    Only a real number inside the range is a value: a string, a boolean, NaN or a number outside is unscored. `more` is
    passed on to the `Value`.
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:  # noqa: PLR0124  (NaN)
        return no_value(Unscored.PARSE_FAILURE, repr(given))
    try:
        normalised = dimension.normalised(given)
    except ValueError:
        return no_value(Unscored.OUT_OF_RANGE, repr(given))
    return Value.model_validate({"value": given, "normalised": normalised, **more})


def no_value(reason: Unscored, raw: str = "") -> NoValue:
    """Return an unscored entry, its raw text cut to what it may hold."""
    return NoValue(reason=reason, raw=raw[:_RAW_OF_NO_VALUE_CHARS_MAX])


def entries_of(rubric: Rubric, reply: Mapping[str, JsonValue]) -> dict[str, Value | NoValue]:
    """Hold a reply (dimension name -> number) against the rubric. A dimension that it lacks is missing, not best.

    Names that the rubric does not have are ignored.
    """
    return {
        d.name: entry_of(d, reply[d.name]) if d.name in reply else no_value(Unscored.MISSING) for d in rubric.dimensions
    }


def all_unscored(rubric: Rubric, reason: Unscored, raw: str = "") -> dict[str, Value | NoValue]:
    """Return entries that say of every dimension that there is no value, and why."""
    return {dimension.name: no_value(reason, raw) for dimension in rubric.dimensions}
