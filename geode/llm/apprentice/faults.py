"""The apprentice's table of faults: how often it errs, and which words make it err less or more.

The figures are a design with a known truth, for calibrating searches and gates. They are no evidence about any language
model. `faults.yaml` documents each of them.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from geode.canonical import content_hash

POLICY_VERSION = 1
"""Part of the truth: it rises whenever the code acts otherwise on the same table and the same texts."""

_TEXTS_REMEMBERED = 128
# The parser in C spares each worker process some 30 ms.
_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FaultName(StrEnum):
    """What can go wrong with a step, and with the search for what went wrong."""

    OMIT_STEP = "omit_step"
    EDIT_ELSEWHERE = "edit_elsewhere"
    EDIT_THE_CHECK = "edit_the_check"
    SKIP_CHECK = "skip_check"
    MISREAD_CHECK = "misread_check"
    MALFORMED_ARGUMENTS = "malformed_arguments"
    CLAIM_EARLY = "claim_early"
    GET_STUCK = "get_stuck"
    OVERLOOK = "overlook"


class Where(StrEnum):
    """Where a text stands that the apprentice reads. A result's words count for what is decided about that result."""

    SYSTEM = "system"
    TOOLS = "tools"
    RESULT = "result"
    CONTEXT = "context"
    REPAIR = "repair"


class Effect(StrEnum):
    """What a text can make the apprentice do, apart from changing a rate."""

    CORRECT_AND_RESEND = "correct_and_resend"
    TAKE_THE_RIGHT_PLACE = "take_the_right_place"
    LEAVE_THE_LOOP = "leave_the_loop"
    RUN_THE_CHECK = "run_the_check"


def _compiled(value: object) -> object:
    try:
        return re.compile(value, re.IGNORECASE | re.VERBOSE) if isinstance(value, str) else value
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from error


Rate = Annotated[float, Field(ge=0, le=1)]
Expression = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A regular expression, verbose (blanks do not count) and blind to case."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StepRates(_Part):
    """How often a fault strikes, by the kind of step."""

    inspect: Rate = 0.0
    change: Rate = 0.0
    check: Rate = 0.0


class Cue(_Part):
    """Words that matter.

    A cue holds in a text if one sentence of it matches `pattern` and not `unless`. Then the fault's rate is multiplied
    by `factor`, or `effect` happens, which itself fails at the rate `fails`. `example` is a sentence in which it holds.
    """

    where: Where
    pattern: Expression
    unless: Expression | None = None
    factor: Annotated[float, Field(ge=0)] | None = None
    effect: Effect | None = None
    fails: Rate = 0.0
    example: str
    note: str

    @model_validator(mode="after")
    def _says_one_thing_and_shows_it(self) -> Self:
        if (self.factor is None) == (self.effect is None):
            raise ValueError(f"the cue with the example {self.example!r} needs either a factor or an effect")
        if not self.holds_in(sentences(self.example, len(self.example))):
            raise ValueError(f"the cue's pattern does not hold in its own example {self.example!r}")
        return self

    def holds_in(self, parts: tuple[str, ...]) -> bool:
        """Whether one of the sentences carries this cue."""
        return any(
            self.pattern.search(part) and not (self.unless is not None and self.unless.search(part)) for part in parts
        )


class Fault(_Part):
    """One way to err: what it is, how often, and what changes that."""

    doc: str
    rate: StepRates
    cues: tuple[Cue, ...] = ()


class Prices(_Part):
    """Nominal prices, so that costs can be compared; nobody is billed."""

    input_usd_per_million: Annotated[float, Field(ge=0)]
    output_usd_per_million: Annotated[float, Field(ge=0)]


class Latency(_Part):
    """The time that a call claims to have taken: a first part and one for each token, spread log-normally."""

    first_token_ms: Annotated[float, Field(gt=0)]
    output_token_ms: Annotated[float, Field(ge=0)]
    spread: Annotated[float, Field(ge=0)]


class Bounds(_Part):
    """Where the apprentice stops by itself.

    `fix_passes` and `rounds` count between two answers, `attempts` (to send a step's arguments well formed) and
    `retries` (of a change that failed) in one pass; `sent_back` is how many refused answers it can use.
    `looks_at_once` is how many inspecting calls it sends together, `text_chars` how much of one text it reads.
    """

    fix_passes: Annotated[int, Field(ge=0)]
    attempts: Annotated[int, Field(ge=1)]
    retries: Annotated[int, Field(ge=0)]
    sent_back: Annotated[int, Field(ge=0)]
    rounds: Annotated[int, Field(ge=1)]
    looks_at_once: Annotated[int, Field(ge=1)]
    text_chars: Annotated[int, Field(ge=100)]


class FaultTable(_Part):
    """All that the apprentice's behaviour depends on besides its key, its outline and what it reads."""

    schema_: Literal["geode.faults/1"] = Field(alias="schema")
    prices: Prices
    latency: Latency
    bounds: Bounds
    check_files: Expression
    faults: dict[FaultName, Fault]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if missing := sorted(set(FaultName) - set(self.faults)):
            raise ValueError(f"the table does not say how often these faults occur: {', '.join(missing)}")
        return self

    @cached_property
    def reader(self) -> "CueReader":
        """What finds this table's cues in a text."""
        return CueReader(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A cue that holds in a text, the fault that it is about, and its number in the table."""

    number: int
    fault: FaultName
    cue: Cue


class CueReader:
    """Finds the cues of one table. Episodes of one scaffold share their texts, so those are read once."""

    def __init__(self, table: FaultTable) -> None:
        cues = [(name, cue) for name, fault in table.faults.items() for cue in fault.cues]
        self._cues = tuple(Heard(number=n, fault=name, cue=cue) for n, (name, cue) in enumerate(cues))
        self._chars = table.bounds.text_chars
        self.known = lru_cache(maxsize=_TEXTS_REMEMBERED)(self.find)

    def find(self, where: Where, text: str) -> tuple[Heard, ...]:
        """Return the cues that hold in `text` at `where`, in the order of the table. `known` remembers the answer."""
        parts = sentences(text, self._chars)
        return tuple(heard for heard in self._cues if heard.cue.where is where and heard.cue.holds_in(parts))


@cache
def shipped_table() -> FaultTable:
    """Return the table of `faults.yaml`."""
    text = files("geode.llm").joinpath("faults.yaml").read_text(encoding="utf-8")
    return FaultTable.model_validate(yaml.load(text, Loader=_YAML_LOADER))  # noqa: S506  (both loaders are safe ones)


@cache
def fault_table_hash() -> str:
    """Return the content hash of the shipped table and the policy that acts on it: the simulator's truth by name."""
    table = shipped_table().model_dump(mode="json", by_alias=True)
    return content_hash({"policy_version": POLICY_VERSION, "table": table})


_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n\s*(?:\n|[-*#•]+\s|\d+[.)]\s)\s*")


def sentences(text: str, chars: int) -> tuple[str, ...]:
    """Split `text` into sentences, list items and headings, blanks collapsed; at most `chars` of its head and tail."""
    if len(text) > chars:
        text = f"{text[: chars // 2]}\n\n{text[-chars // 2 :]}"
    return tuple(" ".join(part.split()) for part in _SENTENCE_END.split(text) if part and not part.isspace())
