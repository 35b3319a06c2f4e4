"""Reads tables that others made of Inspect logs: an index of an archive with its scores, and a published comparison.

The index (`evals_index.csv`, `scores_long.csv.gz`) tells of logs that are not here. A published comparison is
`<name>-summary.json` {archives, means, stderr, deltas} with `<name>-matrix.csv`, `-pairs.csv` and `-per-sample.csv`.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from analysis.importers.files import FILE_BYTES_MAX, DamagedArchive, parse_object, read_text
from analysis.importers.inspect_records import EvalStatus

_T = TypeVar("_T")
_INDEX = "evals_index.csv"
_INDEX_SCORES = "scores_long.csv.gz"
_GEODE, _VANILLA = "GEODE", "vanilla"
_COMPARISON = frozenset({"archives", "means", "stderr", "deltas"})


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """A log as an index tells of it. `judged` counts samples with a judge's score, NaN included."""

    folder: str
    file: str
    size_bytes: int
    sha256: str
    status: str
    has_header: bool
    samples: int
    judged: int
    auditor: str
    target: str
    judge: str
    seed_source: str
    created: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexScore:
    """A score as an index tells of it; None is NaN there."""

    folder: str
    file: str
    sample_id: str
    epoch: int
    scorer: str
    dimension: str
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """One cell of a published table: a statement about one log, or about the difference of two.

    `decimals` is the precision that it was printed with; None is all of it.
    """

    folder: str
    place: str
    table: str  # means, stderr, pairs, per_sample_rows
    column: str
    dimension: str
    sample_id: str
    file: str
    minus_file: str | None
    value: float
    decimals: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Every table of a folder, or of several; `files` names those that were read."""

    index: tuple[IndexEntry, ...] = ()
    index_scores: tuple[IndexScore, ...] = ()
    published: tuple[PublishedCell, ...] = ()
    files: frozenset[str] = frozenset()

    def __add__(self, other: "Tables") -> "Tables":
        return Tables(
            index=self.index + other.index,
            index_scores=self.index_scores + other.index_scores,
            published=self.published + other.published,
            files=self.files | other.files,
        )


def read_tables(folder: Path) -> Tables:
    """Return the tables in `folder`; empty ones if there are none.

    Raises:
        DamagedArchive: if one is damaged, or names an archive that its summary does not have.
    """
    index, scores = folder / _INDEX, folder / _INDEX_SCORES
    published = _published(folder)
    read = {path.name for path in (index, scores) if path.is_file()} | {cell.place for cell in published}
    return Tables(index=_index(index), index_scores=_index_scores(scores), published=published, files=frozenset(read))


def _index(path: Path) -> tuple[IndexEntry, ...]:
    return _rows(
        path,
        lambda row: IndexEntry(
            folder=path.parent.name,
            file=row["file"],
            size_bytes=int(row["size_bytes"]),
            sha256=row["sha256"],
            status=row["status"] or EvalStatus.STARTED.value,
            has_header=row["has_header"] == "1",
            samples=int(row["n_samples"]),
            judged=int(row["n_scored"]),
            auditor=row["auditor"],
            target=row["target"],
            judge=row["judge"],
            seed_source=row["seed_source"],
            created=row["created"],
        ),
    )


def _index_scores(path: Path) -> tuple[IndexScore, ...]:
    return _rows(
        path,
        lambda row: IndexScore(
            folder=path.parent.name,
            file=row["file"],
            sample_id=row["sample_id"],
            epoch=int(row["epoch"]),
            scorer=row["scorer"],
            dimension=row["dim"],
            value=None if row["value"] == "NaN" else float(row["value"]),
        ),
    )


def _published(folder: Path) -> tuple[PublishedCell, ...]:
    found: list[PublishedCell] = []
    for path in sorted(folder.glob("*-summary.json")):
        body = parse_object(read_text(path), path)
        if body.keys() >= _COMPARISON:
            found += _Comparison(path, body).cells()
    return tuple(found)


class _Comparison:
    """One summary with its tables, which name logs by short names of the summary's own."""

    def __init__(self, path: Path, body: Mapping[str, JsonValue]) -> None:
        self._path = path
        self._body = body
        self._archives = {name: _object(path, entry) for name, entry in _object(path, body["archives"]).items()}

    def cells(self) -> list[PublishedCell]:
        return [*self._of_summary(), *self._of_matrix(), *self._of_pairs(), *self._of_samples()]

    def _of_summary(self) -> Iterable[PublishedCell]:
        for key, table in (("means", "means"), ("stderr", "stderr"), ("deltas", "pairs")):
            for column, values in _object(self._path, self._body[key]).items():
                for dimension, value in _object(self._path, values).items():
                    yield self._cell(self._path, table, column, dimension=dimension, value=value)

    def _of_matrix(self) -> Iterable[PublishedCell]:
        """Yield the means and, below a line `# stderr ...`, the standard errors in a table of the same form."""
        path = self._beside("-matrix.csv")
        if path.is_file():
            for block in re.split(r"^# *(?=\w+ )", "# means \n" + read_text(path), flags=re.MULTILINE)[1:]:
                title, _, text = block.partition("\n")
                table = title.split()[0]
                if table not in {"means", "stderr"}:
                    raise DamagedArchive(f"{path} has a block {title!r}; known are means and stderr")
                yield from self._of_columns(path, text, table, self._archives.keys())

    def _of_pairs(self) -> Iterable[PublishedCell]:
        path = self._beside("-pairs.csv")
        if path.is_file():
            pairs = _object(self._path, self._body["deltas"]).keys()
            yield from self._of_columns(path, read_text(path), "pairs", pairs)

    def _of_samples(self) -> Iterable[PublishedCell]:
        path = self._beside("-per-sample.csv")
        return _rows(
            path,
            lambda row: self._cell(
                path, "per_sample_rows", row["archive"], dimension=row["dim"], value=row["score"], sample_id=row["seed"]
            ),
        )

    def _of_columns(self, path: Path, text: str, table: str, columns: Iterable[str]) -> Iterable[PublishedCell]:
        def cells(row: dict[str, str]) -> list[PublishedCell]:
            return [self._cell(path, table, name, dimension=row["dim"], value=row[name]) for name in columns]

        return (cell for row in _parse(path, text, cells) for cell in row)

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name.removesuffix("-summary.json") + ending)

    def _cell(
        self, path: Path, table: str, column: str, *, dimension: str, value: JsonValue, sample_id: str = ""
    ) -> PublishedCell:
        if not isinstance(value, str | float | int):
            raise DamagedArchive(f"{path}: {table} of {column}, {dimension} is {value!r}, no number")
        file, minus = self._files(column) if table == "pairs" else (self._file(column), None)
        return PublishedCell(
            folder=path.parent.name,
            place=path.name,
            table=table,
            column=column,
            dimension=dimension,
            sample_id=sample_id,
            file=file,
            minus_file=minus,
            value=float(value),
            decimals=len(value.partition(".")[2]) if isinstance(value, str) else None,
        )

    def _file(self, archive: str) -> str:
        file = self._archives.get(archive, {}).get("file")
        if not isinstance(file, str):
            raise DamagedArchive(f"{self._path} names no file of the archive {archive!r}")
        return file

    def _files(self, pair: str) -> tuple[str, str]:
        """Return the logs whose means a pair subtracts: with the harness, and without."""
        members = {name: entry for name, entry in self._archives.items() if name.rpartition("_")[0] == pair}
        by_wrap = {str(entry.get("wrap")): name for name, entry in members.items()}
        if by_wrap.keys() != {_GEODE, _VANILLA}:
            raise DamagedArchive(f"{self._path} has no {_GEODE} and {_VANILLA} archive for the pair {pair!r}")
        return self._file(by_wrap[_GEODE]), self._file(by_wrap[_VANILLA])


def _rows(path: Path, parse: Callable[[dict[str, str]], _T]) -> tuple[_T, ...]:
    """Return what `parse` makes of each row of a CSV file, compressed or not; nothing if there is no such file."""
    if not path.is_file():
        return ()
    return _parse(path, _unzipped(path) if path.suffix == ".gz" else read_text(path), parse)


def _parse(path: Path, text: str, parse: Callable[[dict[str, str]], _T]) -> tuple[_T, ...]:
    parsed: list[_T] = []
    try:
        for row in csv.DictReader(io.StringIO(text)):
            parsed.append(parse(row))  # noqa: PERF401  (how many there are is told in the error)
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise DamagedArchive(
            f"{path} is damaged in row {len(parsed) + 1} ({type(error).__name__}: {error}); restore the file"
        ) from error
    return tuple(parsed)


def _unzipped(path: Path) -> str:
    try:
        with gzip.open(path) as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedArchive(f"{path} cannot be unpacked: {error}") from error
    if len(data) > FILE_BYTES_MAX:
        raise DamagedArchive(f"{path} unpacks to more than the {FILE_BYTES_MAX} bytes that an import reads")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedArchive(f"{path} is not UTF-8 text ({error}); nothing was imported") from error


def _object(path: Path, value: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise DamagedArchive(f"{path} holds {type(value).__name__} where a comparison has an object")
    return value
