"""Labels that people gave: a file of episode, dimension and label, as CSV with a header or as a JSON object a line."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from judges.rubric import Rubric

_COLUMNS = ("episode", "dimension", "label")
_BYTES_MAX = 100_000_000


class LabelsError(ValueError):
    """A file of labels cannot be used. The text names the file, the line and the problem."""


class _Label(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", str_min_length=1)

    episode: str
    dimension: str
    label: Annotated[float, Field(allow_inf_nan=False)]


def read_labels(path: Path, rubric: Rubric) -> dict[str, dict[str, float]]:
    """Return normalised labels by dimension and episode; other columns are ignored.

    A label is a value in the dimension's own range. Two people may label an episode alike, but not differently: what
    they agree on is for them to settle.

    Raises:
        LabelsError: if the file cannot be read, a line has no value in the range of a known dimension, or two differ.
    """
    labels: dict[str, dict[str, float]] = {dimension.name: {} for dimension in rubric.dimensions}
    for number, body in _lines(path):
        try:
            given = _Label.model_validate(body)
            value = rubric.dimension(given.dimension).normalised(given.label)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "line"
            raise LabelsError(f"{path} line {number}: {place}: {first['msg']}") from error
        except (KeyError, ValueError) as error:
            raise LabelsError(f"{path} line {number}: {error.args[0]}") from error
        of_dimension = labels[given.dimension]
        if of_dimension.setdefault(given.episode, value) != value:
            raise LabelsError(f"{path} line {number}: {given.episode!r} has another label before")
    return labels


def _lines(path: Path) -> Iterator[tuple[int, JsonValue]]:
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise LabelsError(f"{path} is larger than {_BYTES_MAX} bytes: that is no file of labels")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LabelsError(f"{path} cannot be read ({error})") from error
    if path.suffix.lower() in {".jsonl", ".ndjson"}:
        yield from _json_lines(path, text)
        return
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if missing := [name for name in _COLUMNS if name not in (rows.fieldnames or ())]:
        raise LabelsError(f"{path} lacks the column {missing[0]!r}; its first line must name {', '.join(_COLUMNS)}")
    for row in rows:
        yield rows.line_num, {name: row[name] for name in _COLUMNS}


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, JsonValue]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise LabelsError(f"{path} line {number} is no JSON ({error})") from error
