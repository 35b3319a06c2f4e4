"""Logs of other harnesses as one thing: attempts at tasks, each with the values that were measured, or none.

Knows no format. What a reader of one (`foreign_mcpmark`, `foreign_inspect`, `arms`) cannot find in its log is None.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from geode.redaction import clean_text

OWN_HARNESS = "geode"
"""Two of our own experiments are compared like two logs."""


class LogsRefused(ValueError):  # noqa: N818  (named by what happened)
    """These logs cannot be compared. The text says why, and what to give instead."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """What is paired: a task, and which attempt at it (MCPMark's run, Inspect's epoch)."""

    task: str
    attempt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """What is known of one attempt beside its values.

    Two attempts of one `identity` are the very same. `shown_as` is what `geode show` takes. `invalid` says what ended
    an attempt that measured nothing; a value that is missing without it was not scored. Tokens and cost are those of
    what is compared (the target), `other_tokens` those of all other roles.
    """

    identity: str
    shown_as: str
    invalid: str | None = None
    started_at: datetime | None = None
    wall_s: float | None = None
    tokens: int | None = None
    other_tokens: int | None = None
    cost_usd: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    tool_errors: int | None = None
    repairs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """One log. `subject` is what is compared, and may differ.

    `ruler` is what must be equal for a difference to be one of the subjects; `surroundings` is what should be.
    `values` has for each score a value, or None, of each attempt. `passes_and_failures`: every value is 1 or 0 by its
    nature, not by chance; `families` then names each task's family. `notes` limit the reading of this log alone.
    """

    name: str
    harness: str
    subject: str
    ruler: Mapping[str, str]
    surroundings: Mapping[str, str] = field(default_factory=dict)
    attempts: Mapping[Unit, AttemptFacts]
    values: Mapping[str, Mapping[Unit, float | None]]
    passes_and_failures: bool
    families: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def distinct_units(name: str, units: Iterable[Unit]) -> None:
    """Refuse a log that holds one attempt at one task twice: nobody knows which one is meant.

    Raises:
        LogsRefused: if it does.
    """
    twice = [unit for unit, count in Counter(units).items() if count > 1]
    if twice:
        raise LogsRefused(
            f"{name} holds {twice[0].task!r} of {twice[0].attempt} more than once ({len(twice)} such tasks):"
            " give one result directory, or one model's folder in it"
        )


def told(values: Iterable[str | None]) -> str:
    """Return the values that a log tells, each once, or `unknown`."""
    return ", ".join(sorted({clean_text(value) for value in values if value is not None})) or "unknown"


def total(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is told; None if nothing is, which is not zero."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
