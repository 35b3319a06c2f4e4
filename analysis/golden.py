"""Holds our own figures against published ones. Nothing that computes a figure can see this file's entries."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from analysis.figures import Answer, Evaluator, GoldenMap
from analysis.warehouse import Reading


class GoldenError(Exception):
    """A golden file cannot be read, or has not what was asked for."""


class Status(StrEnum):
    """What a comparison says."""

    MATCH = "match"
    DIFFERS = "differs"
    NOT_COMPUTED = "cannot be computed here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One figure, held against what others wrote. `expected` is their recomputed value, or else the published one."""

    name: str
    expected: JsonValue
    ours: JsonValue
    status: Status
    recomputable: bool
    reason: str


class GoldenEntry(BaseModel):
    """A figure as the golden file has it; it may have more fields than these."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    published: JsonValue = None
    recomputed: JsonValue = None
    recomputable_from_pack: bool


class _GoldenFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    figures: tuple[GoldenEntry, ...]


def read_entries(path: Path, prefix: str) -> tuple[GoldenEntry, ...]:
    """Return the figures of a golden file whose name is `prefix` or begins with it and a dot; all for an empty one.

    Raises:
        GoldenError: if the file cannot be read, or has no such figure.
    """
    try:
        entries = _GoldenFile.model_validate_json(path.read_bytes()).figures
    except OSError as error:
        raise GoldenError(f"the golden file {path} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise GoldenError(f"{path} is no golden file: {place}: {first['msg']}; see `figures` in its README") from error
    chosen = tuple(
        entry for entry in entries if not prefix or entry.name == prefix or entry.name.startswith(f"{prefix}.")
    )
    if not chosen:
        heads = sorted({entry.name.split(".")[0] for entry in entries})
        raise GoldenError(f"{path} has no figure {prefix!r}; its figures begin with {', '.join(heads) or 'nothing'}")
    return chosen


def check(entries: Sequence[GoldenEntry], maps: Sequence[GoldenMap], reading: Reading) -> tuple[Checked, ...]:
    """Compute each figure by its name alone, then hold it against its entry.

    Raises:
        GoldenError: if nothing that the figures are about was imported.
    """
    missing = _not_imported(entries, maps, reading)
    evaluator = Evaluator(reading, maps)

    def answer(name: str) -> Answer:
        wanting = next((golden_map for golden_map in missing if golden_map.match(name)), None)
        return evaluator.compute(name) if wanting is None else Answer(reason=_ask_for(wanting))

    checked = []
    for entry in entries:
        checked.append(_held_against(entry, entry.name, _expected(entry), answer(entry.name)))
        extras = entry.model_extra or {}
        fields = dict.fromkeys(field for golden_map in maps for field in golden_map.entry_fields)
        for field in fields:
            if extras.get(field) is not None:
                name = f"{entry.name}.{field}"
                checked.append(_held_against(entry, name, extras[field], answer(name)))
    return tuple(checked)


def passed(checked: Sequence[Checked]) -> bool:
    """Say whether every figure matches that the pack can give, and no figure differs."""
    return all(
        figure.status is Status.MATCH or (figure.status is Status.NOT_COMPUTED and not figure.recomputable)
        for figure in checked
    )


def as_json_rows(checked: Sequence[Checked]) -> list[JsonValue]:
    """Return the figures as JSON objects."""
    return [{**asdict(figure), "status": figure.status.value} for figure in checked]


def _not_imported(entries: Sequence[GoldenEntry], maps: Sequence[GoldenMap], reading: Reading) -> tuple[GoldenMap, ...]:
    """Return the maps whose archive the figures need and nobody imported; if that is all of them, say no more."""
    concerned = [golden_map for golden_map in maps if any(golden_map.match(entry.name) for entry in entries)]
    tables = {relation.name for relation in reading.relations()}  # a file that an older version wrote lacks some
    missing = tuple(
        golden_map
        for golden_map in concerned
        if golden_map.needs not in tables or not reading.query(f'SELECT 1 FROM "{golden_map.needs}"', limit=1).rows  # noqa: S608  (the names are ours)
    )
    if missing and len(missing) == len(concerned):
        raise GoldenError("; ".join(_ask_for(golden_map) for golden_map in missing))
    return missing


def _ask_for(golden_map: GoldenMap) -> str:
    return f"nothing of {golden_map.prefix} was imported; run `geode archive import PATH` first"


def _expected(entry: GoldenEntry) -> JsonValue:
    return entry.published if entry.recomputed is None else entry.recomputed


def _held_against(entry: GoldenEntry, name: str, expected: JsonValue, answer: Answer) -> Checked:
    reason = answer.reason or ""
    if answer.reason is not None:
        status = Status.NOT_COMPUTED
    elif agree(expected, answer.exact):
        status = Status.MATCH
        if name == entry.name and entry.published is not None and not agree(entry.published, answer.exact):
            reason = f"published as {json.dumps(entry.published, ensure_ascii=False)}"
    else:
        status = Status.DIFFERS
    return Checked(
        name=name,
        expected=expected,
        ours=answer.value,
        status=status,
        recomputable=entry.recomputable_from_pack,
        reason=reason,
    )


def agree(expected: JsonValue, ours: JsonValue) -> bool:
    """Say whether two values are the same; a fraction of ours is taken at the precision of `expected`."""
    match expected, ours:
        case bool(), _:
            return expected is ours
        case int() | float(), float():
            return math.isclose(expected, ours, rel_tol=1e-9) or round(ours, _decimals(expected)) == expected
        case list(), list():
            return len(expected) == len(ours) and all(agree(*pair) for pair in zip(expected, ours, strict=True))
        case dict(), dict():
            return expected.keys() == ours.keys() and all(agree(expected[key], ours[key]) for key in expected)
        case _:
            return not isinstance(ours, bool) and expected == ours


def _decimals(value: float) -> int:
    _, _, decimals = repr(value).partition(".")
    return len(decimals) if decimals.isdigit() else 0
