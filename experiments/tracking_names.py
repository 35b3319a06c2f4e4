"""What MLflow may hold: one map from our names to its keys, and nothing that it would refuse, cut or garble.

The map is published here and does not lose anything: a character that MLflow does not take in a key is written
`_x` + its code point in hex + `_`, and so is an underscore before an `x`. `pass@1` is `pass_x40_1`. Distinct names
therefore have distinct keys, and `name_of` gives the name back. A name whose key is too long has none.
"""

import hashlib
import math
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from geode.redaction import clean_text

KEY_CHARS = 250
TEXT_CHARS = 500
"""A param or tag that is longer stands in an artifact; what is logged is its hash. MLflow's own limits (6,000 and
8,000) cut silently, and a compare page is unreadable long before."""

NOTE_TAG = "mlflow.note.content"
NOTE_CHARS = 8_000
"""The description of a run, in Markdown: the one long text that MLflow shows, up to its limit for a tag."""

_FOREIGN = re.compile(r"[^\w./ -]|_(?=x)")
_ESCAPED = re.compile(r"_x([0-9a-f]+)_")
_SEPARATORS = re.compile(r"/|^\.")


class EntryKind(StrEnum):
    """What an entry would have been in MLflow."""

    METRIC = "metric"
    PARAM = "param"
    TAG = "tag"
    TRACE = "trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """An entry that MLflow did not get, and why. The others were logged."""

    kind: EntryKind
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name!r} {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What goes to one run. `texts` holds the long values in full, by the path of their artifact."""

    metrics: Mapping[str, float]
    params: Mapping[str, str]
    tags: Mapping[str, str]
    texts: Mapping[str, str]
    set_aside: tuple[SetAside, ...]


def key_of(name: str) -> str:
    """Return MLflow's key for `name`.

    Raises:
        ValueError: if the name is empty, or its key is longer than MLflow takes.
    """
    if not name:
        raise ValueError("has an empty name; give it one")
    key = _FOREIGN.sub(_escape, name)
    if posixpath.normpath(key) != key or key.startswith(("/", "..")) or key == ".":
        # MLflow takes a key for a path, and refuses one that names another place than it says.
        key = _SEPARATORS.sub(_escape, key)
    if len(key) > KEY_CHARS:
        raise ValueError(f"has a key of {len(key)} characters, and MLflow takes {KEY_CHARS}; shorten the name")
    return key


def name_of(key: str) -> str:
    """Return the name that `key_of` made this key of."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), key)


def screen(
    *,
    metrics: Mapping[str, float] | None = None,
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> Entries:
    """Sort out what MLflow can hold as it is, what goes to an artifact, and what is set aside."""
    set_aside: list[SetAside] = []
    texts: dict[str, str] = {}
    return Entries(
        metrics=_numbers(metrics or {}, set_aside),
        params=_texts(EntryKind.PARAM, params or {}, texts, set_aside),
        tags=_texts(EntryKind.TAG, tags or {}, texts, set_aside),
        texts=texts,
        set_aside=tuple(set_aside),
    )


def _escape(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):x}_"


def _numbers(metrics: Mapping[str, float], set_aside: list[SetAside]) -> dict[str, float]:
    good: dict[str, float] = {}
    for name, value in metrics.items():
        try:
            key = key_of(name)
        except ValueError as error:
            set_aside.append(SetAside(kind=EntryKind.METRIC, name=name, reason=str(error)))
            continue
        if math.isfinite(value):
            good[key] = float(value)
        else:
            # MLflow would store infinity as 1.8e308 and draw NaN as a gap: both look like measurements.
            set_aside.append(
                SetAside(kind=EntryKind.METRIC, name=name, reason=f"is {value!r}, which is no measurement")
            )
    return good


def _texts(
    kind: EntryKind, values: Mapping[str, str], texts: dict[str, str], set_aside: list[SetAside]
) -> dict[str, str]:
    good: dict[str, str] = {}
    for name, raw in values.items():
        try:
            key = key_of(name)
        except ValueError as error:
            set_aside.append(SetAside(kind=kind, name=name, reason=str(error)))
            continue
        value = clean_text(raw)
        if len(value) <= (NOTE_CHARS if name == NOTE_TAG else TEXT_CHARS):
            good[key] = value
            continue
        path = f"long_values/{kind.value}s/{key.replace('/', '_')[:60]}-{_digest(key)[:12]}.txt"
        texts[path] = value
        good[key] = f"sha256:{_digest(value)} ({len(value)} characters, in {path})"
    return good


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
