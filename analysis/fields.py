"""Typed reading of somebody else's JSON objects: a value of the wrong type is reported, never converted or guessed."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from pydantic import JsonValue

from geode.redaction import clean_text

_T = TypeVar("_T")
_SHOWN_CHARS = 80
_INT64 = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """A field that is not as its format says: absent, or of another type."""

    name: str
    missing: bool
    text: str


@dataclass(slots=True)
class Fields:
    """Reads `body`; each getter returns None for what is null, absent or odd, and the latter two are collected.

    `prefix` is put before names in `oddities`, for an object inside another.
    """

    body: Mapping[str, JsonValue]
    prefix: str = ""
    oddities: list[Oddity] = field(default_factory=list)

    def text(self, name: str) -> str | None:
        """A string, cleaned of what no store can hold."""
        value = self._typed(name, str, "a string")
        return None if value is None else clean_text(value)

    def flag(self, name: str) -> bool | None:
        """A boolean."""
        return self._typed(name, bool, "true or false")

    def integer(self, name: str) -> int | None:
        """A 64-bit integer; not a boolean and not 1.0."""
        value = self._typed(name, int, "an integer")
        if value is None or -_INT64 <= value < _INT64:
            return value
        self._report(name, value, "an integer of 64 bits")
        return None

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self._typed(name, (int, float), "a number")
        if value is None:
            return None
        if abs(value) < _INT64:  # false for NaN, infinity, and integers that no float can hold
            return float(value)
        self._report(name, value, "a finite number")
        return None

    def moment(self, name: str) -> datetime | None:
        """A time with its zone, as ISO 8601 text."""
        value = self._typed(name, str, "a string")
        if value is None:
            return None
        with contextlib.suppress(ValueError):
            at = datetime.fromisoformat(value)
            if at.tzinfo is not None:
                return at
        self._report(name, value, "a time with a zone")
        return None

    def nested(self, name: str) -> "Fields":
        """An object, whose oddities join these. Where there is none, that is reported, and not each of its fields."""
        value = self._typed(name, dict, "an object")
        if value is None:
            return Fields({}, f"{self.prefix}{name}.")
        return Fields(value, f"{self.prefix}{name}.", self.oddities)

    def _typed(self, name: str, kind: type[_T] | tuple[type[_T], ...], expected: str) -> _T | None:
        if name not in self.body:
            full = self.prefix + name
            self.oddities.append(Oddity(name=full, missing=True, text=f"{full} is missing"))
            return None
        value = self.body[name]
        if value is None:
            return None
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        self._report(name, value, expected)
        return None

    def _report(self, name: str, value: object, expected: str) -> None:
        full = self.prefix + name
        text = f"{full} is {clean_text(repr(value)[:_SHOWN_CHARS])}, not {expected}"
        self.oddities.append(Oddity(name=full, missing=False, text=text))
