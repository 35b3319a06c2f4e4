"""Query answers as text: for a person, a spreadsheet, a program, or a document."""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import assert_never

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analysis.warehouse import Table
from geode.events import preview

_CELL_CHARS = 300
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TableFormat(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MD = "md"


def print_table(console: Console, table: Table, style: TableFormat) -> None:
    """Write `table` to `console`. Only the first format is fitted to the width of the screen."""
    match style:
        case TableFormat.TABLE:
            console.print(_rich(table.columns, table.rows))
        case TableFormat.CSV:
            console.file.write(_csv(table))
        case TableFormat.JSON:
            console.file.write(_json(table))
        case TableFormat.MD:
            console.file.write(_markdown(table))
        case _:
            assert_never(style)


def plain(value: object) -> JsonValue:
    """Return a database value as JSON has it. NaN and infinity, which JSON does not have, become their names."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return float(value)
        case datetime() | date() | time():
            return value.isoformat()
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case bytes():
            return value.hex()
        case _:  # intervals, UUIDs, and whatever else the database has: as it writes them
            return str(value)


def _text(value: object) -> str:
    as_json = plain(value)
    if as_json is None:
        return ""
    return as_json if isinstance(as_json, str) else json.dumps(as_json, ensure_ascii=False)


def _shown(value: object) -> str:
    """As text that a screen can be trusted with: short, and without control sequences of whoever wrote it."""
    return preview(_CONTROL.sub("\ufffd", _text(value)), _CELL_CHARS)


def _rich(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> RichTable:
    table = RichTable()
    for index, column in enumerate(columns):
        numbers = any(isinstance(row[index], int | float | Decimal) for row in rows)
        table.add_column(Text(column), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    return table


def _csv(table: Table) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_text(value) for value in row] for row in table.rows)
    return buffer.getvalue()


def _json(table: Table) -> str:
    names = _distinct(table.columns)
    rows = [dict(zip(names, (plain(value) for value in row), strict=True)) for row in table.rows]
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


def _distinct(columns: Sequence[str]) -> list[str]:
    """Give columns of one name a number, so that no value is lost in an object."""
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name in names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return names


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        escaped = (cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>") for cell in cells)
        return f"| {' | '.join(escaped)} |\n"

    rows = [line([_text(value) for value in row]) for row in table.rows]
    return "".join([line(table.columns), line(["---"] * len(table.columns)), *rows])
