"""Computes figures by name, from shipped views and a mapping file. Knows nothing of what others say they are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib import resources
from typing import Literal, Self, assert_never

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from analysis.tables import plain
from analysis.warehouse import Reading

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class MapError(Exception):
    """A mapping file is none."""


class Shape(StrEnum):
    """What becomes of the rows: one value, one row as a list, one column as a list, or two columns as a mapping."""

    SCALAR = "scalar"
    LIST = "list"
    COLUMN = "column"
    DICT = "dict"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(_Strict):
    """How figures of one name pattern are computed: from a view, or why not at all (`not_here`)."""

    name: str
    view: str | None = None
    where: dict[str, str] = {}
    value: str | tuple[str, ...] = ()
    shape: Shape | None = None
    key: str | None = None
    order_by: str | None = None
    round: int | None = None
    incomplete: str | None = None
    not_here: str | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.view is None) == (self.not_here is None):
            raise ValueError(f"{self.name!r} needs either a view or not_here")
        if self.view is not None and not self.value:
            raise ValueError(f"{self.name!r} has a view and no value")
        return self

    @property
    def shaped(self) -> Shape:
        """The shape; a single value is a scalar unless it is said otherwise."""
        return self.shape or (Shape.SCALAR if isinstance(self.value, str) else Shape.LIST)


class GoldenMap(_Strict):
    """A mapping file: rules, tried in order, and the placeholders of their names."""

    schema_: Literal["geode.golden_map/1"] = Field(alias="schema")
    prefix: str
    needs: str
    entry_fields: tuple[str, ...] = ()
    placeholders: dict[str, str]
    aliases: dict[str, dict[str, str]] = {}
    figures: tuple[Rule, ...]

    @model_validator(mode="after")
    def _knows_its_placeholders(self) -> Self:
        used = {part for rule in self.figures for part in _PLACEHOLDER.findall(rule.name)}
        if unknown := sorted(used - self.placeholders.keys()):
            raise ValueError(f"names use the placeholders {unknown}, which are not among {sorted(self.placeholders)}")
        return self

    def match(self, name: str) -> tuple[Rule, dict[str, str]] | None:
        """Return the first rule whose pattern `name` fits, with the text of its placeholders after aliases."""
        for rule, pattern in self._patterns:
            if found := pattern.fullmatch(name):
                groups = found.groupdict()
                return rule, {group: self.aliases.get(group, {}).get(text, text) for group, text in groups.items()}
        return None

    @cached_property
    def _patterns(self) -> tuple[tuple[Rule, re.Pattern[str]], ...]:
        return tuple((rule, self._pattern(rule.name)) for rule in self.figures)

    def _pattern(self, name: str) -> re.Pattern[str]:
        parts = _PLACEHOLDER.split(name)  # literal, placeholder, literal, ...
        return re.compile(
            "".join(
                f"(?P<{part}>{self.placeholders[part]})" if index % 2 else re.escape(part)
                for index, part in enumerate(parts)
            )
        )


def shipped_maps() -> tuple[GoldenMap, ...]:
    """Return every mapping that this package ships."""
    files = [
        f for f in resources.files("analysis").iterdir() if f.name.startswith("golden_") and f.name.endswith(".yaml")
    ]
    return tuple(read_map(f.read_text(encoding="utf-8"), f.name) for f in sorted(files, key=lambda f: f.name))


def read_map(text: str, name: str) -> GoldenMap:
    """Return the mapping that the YAML `text` of the file `name` holds.

    Raises:
        MapError: if it is none.
    """
    try:
        return GoldenMap.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))
    except (ValidationError, yaml.YAMLError) as error:
        raise MapError(f"{name} is no golden mapping: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What we compute for a name. `reason` says why the value is missing, or does not cover what the name asks for."""

    value: JsonValue = None
    exact: JsonValue = None
    reason: str | None = None


class Evaluator:
    """Computes figures by name from the views of an open warehouse."""

    def __init__(self, reading: Reading, maps: Sequence[GoldenMap]) -> None:
        self._reading = reading
        self._maps = maps
        self._columns = {relation.name: {column for column, _ in relation.columns} for relation in reading.relations()}

    def compute(self, name: str) -> Answer:
        """Return the answer to `name`."""
        for golden_map in self._maps:
            if found := golden_map.match(name):
                return self._follow(*found)
        return Answer(reason="no rule of ours computes a figure of this name")

    def _follow(self, rule: Rule, groups: Mapping[str, str]) -> Answer:
        if rule.view is None:
            return Answer(reason=rule.not_here)
        values = [_filled(value, groups) for value in ([rule.value] if isinstance(rule.value, str) else rule.value)]
        selected = [rule.key, *values] if rule.key else values
        known = self._columns.get(rule.view, set())
        if unknown := [column for column in selected if column not in known]:
            return Answer(reason=f"the view {rule.view} has no column {', '.join(unknown)}")
        where = {column: _filled(text, groups) for column, text in rule.where.items()}
        rows, reasons = self._rows(rule, selected, where)
        if not rows:
            asked = ", ".join(f"{column} {text!r}" for column, text in where.items()) or "anything"
            return Answer(reason=f"nothing was imported with {asked} (view {rule.view})")
        value = _shape(rule.shaped, rows)
        shown = _rounded(value, rule.round) if rule.round is not None and isinstance(value, float) else value
        return Answer(value=shown, exact=value, reason="; ".join(reasons) or None)

    def _rows(
        self, rule: Rule, selected: Sequence[str], where: Mapping[str, str]
    ) -> tuple[list[list[JsonValue]], list[str]]:
        names = [rule.view or "", *selected, *where, *filter(None, [rule.order_by, rule.incomplete])]
        if bad := [name for name in names if not _IDENTIFIER.fullmatch(name)]:
            raise MapError(f"the rule {rule.name!r} names {bad}, which is no name of a view or column")
        columns = ", ".join(
            [*(f'"{column}"' for column in selected), f'"{rule.incomplete}"' if rule.incomplete else "NULL"]
        )
        condition = " AND ".join(f'"{column}"::VARCHAR = ${column}' for column in where) or "true"
        order = f' ORDER BY "{rule.order_by}"' if rule.order_by else ""
        sql = f'SELECT {columns} FROM "{rule.view}" WHERE {condition}{order}'  # noqa: S608  (identifiers are checked)
        rows = self._reading.query(sql, where).rows
        return [[plain(cell) for cell in row[:-1]] for row in rows], list(
            dict.fromkeys(str(row[-1]) for row in rows if row[-1] is not None)
        )


def _filled(text: str, groups: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: groups[found.group(1)], text)


def _rounded(value: float, digits: int) -> float:
    return round(value, digits) if digits else round(value)


def _shape(shape: Shape, rows: list[list[JsonValue]]) -> JsonValue:
    match shape:
        case Shape.SCALAR:
            return rows[0][0]
        case Shape.LIST:
            return rows[0]
        case Shape.COLUMN:
            return [row[0] for row in rows]
        case Shape.DICT:
            return {str(row[0]): row[1] for row in rows}
    assert_never(shape)
