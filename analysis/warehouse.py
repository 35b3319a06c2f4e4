"""The warehouse: one DuckDB file, derived from episode folders and archives. The only module that knows DuckDB.

A writer takes a file lock, opens the file, does all of its work in one transaction, and closes it at once: while it has
the file open, DuckDB lets no other process read. A reader opens it read-only and waits a bounded time for its turn.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import duckdb
from filelock import FileLock, Timeout

from analysis.cell_rows import SOURCE, cell_rows
from experiments.sinks import Cell, CellSink
from geode.canonical import content_hash
from geode.config.settings import Settings
from geode.redaction import clean_text

_POLL_S = 0.05
_BUSY = re.compile(r"Could not set lock on file|different configuration than existing connections")
_OF_THE_DISK = re.compile(r"Permission denied|No space left|Read-only file system|quota")  # no reason to delete it
_HOLDER = re.compile(r"Conflicting lock is held in (.+?\(PID \d+\))")
_READ_ONLY = "SET TimeZone='UTC'; SET enable_external_access=false; SET lock_configuration=true"
_REBUILD = "delete it, run `geode archive rebuild`, and import your archives again"

_OF_A_CELL = ("cells", "episodes", "import_issues")
_OF_AN_EPISODE = ("rounds", "attempts", "tool_calls", "costs")


class WarehouseError(Exception):
    """Something about the warehouse, in words for whoever asked. Each child is named by what happened."""


class WarehouseMissing(WarehouseError):  # noqa: N818
    """There is no file yet: run or import something first."""


class WarehouseBusy(WarehouseError):  # noqa: N818
    """Somebody else holds the file, for longer than we wait."""


class WarehouseUnreadable(WarehouseError):  # noqa: N818
    """The file is damaged, from a newer version, or no DuckDB file."""


class QueryRefused(WarehouseError):  # noqa: N818
    """The SQL is wrong, or asks for more than reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The answer to a query. `more` says that rows were left out because of the limit asked for."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table or view with its columns, each a name and a type."""

    name: str
    is_view: bool
    columns: tuple[tuple[str, str], ...]


class Writing:
    """What a writer can do inside its one transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def insert(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Append `rows`; each has a value for every column of `table`, in the order of its migration.

        Raises:
            WarehouseError: if a value does not fit its column; nothing of the transaction stays.
        """
        if rows:
            with _attributed(self._path, f"table {table}"), self._connection.appender(table) as appender:
                appender.append_rows(rows)

    def delete(self, table: str, **keys: Sequence[str]) -> None:
        """Delete the rows in which each named column has one of its given values."""
        condition = " AND ".join(f'"{column}" = any(${column})' for column in keys)
        with _attributed(self._path, f"table {table}"):
            self._connection.execute(
                f'DELETE FROM "{table}" WHERE {condition}',  # noqa: S608  (names are ours, values are bound)
                {column: list(values) for column, values in keys.items()},
            )

    def delete_orphans(self) -> None:
        """Delete rounds, calls and costs of episodes that no cell shows any more."""
        for table in _OF_AN_EPISODE:
            with _attributed(self._path, f"table {table}"):
                self._connection.execute(
                    f"DELETE FROM {table} d WHERE NOT EXISTS "  # noqa: S608  (the names are ours)
                    "(SELECT 1 FROM episodes e WHERE e.source = d.source AND e.episode_key = d.episode_key)"
                )


class Reading:
    """A read-only connection that cannot reach files, the network, or its own configuration."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def query(self, sql: str, parameters: Mapping[str, object] | None = None, *, limit: int | None = None) -> Table:
        """Return the rows of `sql`, or the first `limit` of them.

        Raises:
            QueryRefused: if the SQL is wrong, is not one statement, or wants to write.
            WarehouseUnreadable: if what it reads is damaged.
        """
        with ThreadPoolExecutor(max_workers=1) as thread:
            answer = thread.submit(self._answer, clean_text(sql), dict(parameters or {}), limit)
            try:
                return answer.result()
            except KeyboardInterrupt:
                # DuckDB does not look at signals while it works; a query of an hour would have to be killed.
                self._connection.interrupt()
                raise

    def _answer(self, sql: str, parameters: dict[str, object], limit: int | None) -> Table:
        try:
            statements = len(self._connection.extract_statements(sql))
            if statements != 1:
                what = f"{statements} statements; give one" if statements else "no statement; try `SELECT * FROM runs`"
                raise QueryRefused(f"the SQL has {what}")
            result = self._connection.execute(sql, parameters)
            columns = result.description or ()
            rows = result.fetchall() if limit is None else result.fetchmany(limit + 1)
        except duckdb.Error as error:
            if "Corrupt" in str(error):
                raise WarehouseUnreadable(f"{self._path} is damaged ({error}); {_REBUILD}") from error
            raise QueryRefused(str(error)) from error
        return Table(
            columns=tuple(str(column[0]) for column in columns),
            types=tuple(str(column[1]) for column in columns),
            rows=tuple(rows if limit is None else rows[:limit]),
            more=limit is not None and len(rows) > limit,
        )

    def relations(self) -> tuple[Relation, ...]:
        """Return every table and view, by name."""
        listing = self.query(
            "SELECT c.table_name, t.table_type = 'VIEW', c.column_name, c.data_type "
            "FROM information_schema.columns c JOIN information_schema.tables t USING (table_name) "
            "ORDER BY c.table_name, c.ordinal_position"
        )
        found: dict[tuple[str, bool], list[tuple[str, str]]] = {}
        for name, is_view, column, data_type in listing.rows:
            found.setdefault((str(name), bool(is_view)), []).append((str(column), str(data_type)))
        return tuple(Relation(name=n, is_view=v, columns=tuple(columns)) for (n, v), columns in found.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """The DuckDB file at `path`, and how long to wait for it."""

    path: Path
    read_wait_s: float = 10.0
    write_wait_s: float = 60.0

    @contextlib.contextmanager
    def write(self) -> Iterator[Writing]:
        """Open a transaction, with tables and views brought up to date; commit at the end, or write nothing.

        Raises:
            WarehouseBusy: if another writer or reader held the file all the time; names the holder.
            WarehouseUnreadable: if the file is none of ours.
            WarehouseError: if the database refused the rows or the disk refused the database.
        """
        deadline = time.monotonic() + self.write_wait_s
        with self._only_writer(), contextlib.closing(self._open(deadline, read_only=False)) as connection:
            try:
                with _attributed(self.path, "its tables and views"):
                    connection.begin()
                    _bring_up_to_date(connection, self.path)
                yield Writing(connection, self.path)
                with _attributed(self.path, "the commit"):
                    connection.commit()
            except BaseException:
                # Whatever happened, nothing of it may stay. Closing ends a transaction too broken to be rolled back.
                with contextlib.suppress(duckdb.Error):
                    connection.rollback()
                raise

    @contextlib.contextmanager
    def read(self) -> Iterator[Reading]:
        """Open the file for reading.

        Raises:
            WarehouseMissing: if there is no file.
            WarehouseBusy: if a writer held it all the time; names the holder.
            WarehouseUnreadable: if the file is none of ours.
        """
        if not self.path.is_file():
            raise WarehouseMissing(
                f"there is no warehouse at {self.path}; `geode run`, `geode sweep`, `geode archive import PATH` "
                "or `geode archive rebuild` make it"
            )
        with contextlib.closing(self._open(time.monotonic() + self.read_wait_s, read_only=True)) as connection:
            _refuse_newer(_state(connection), self.path)
            connection.execute(_READ_ONLY)
            yield Reading(connection, self.path)

    @contextlib.contextmanager
    def _only_writer(self) -> Iterator[None]:
        holder = self.path.with_name(self.path.name + ".writer")
        lock = FileLock(self.path.with_name(self.path.name + ".lock"), timeout=self.write_wait_s)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            holder.write_text(f"the writer with PID {os.getpid()}", encoding="utf-8")
        except Timeout as error:
            named = "another writer"
            with contextlib.suppress(OSError):
                named = holder.read_text(encoding="utf-8")
            raise WarehouseBusy(_busy(self.path, self.write_wait_s, named)) from error
        except OSError as error:
            lock.release()
            raise WarehouseError(f"the warehouse {self.path} cannot be written: {error}") from error
        try:
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.release()

    def _open(self, deadline: float, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        # A full disk leaves half a header, which DuckDB then refuses: a file is made whole, or not at all.
        made = not read_only and not (self.path.exists() and self.path.stat().st_size)
        if made:
            self.path.unlink(missing_ok=True)
        while True:
            try:
                return duckdb.connect(self.path, read_only=read_only)
            except duckdb.Error as error:
                text = str(error)
                if made:
                    self.path.unlink(missing_ok=True)
                if not _BUSY.search(text):
                    way_out = "make room, or repair its permissions" if _OF_THE_DISK.search(text) else _REBUILD
                    raise WarehouseUnreadable(f"{self.path} cannot be opened ({text}); {way_out}") from error
                if time.monotonic() >= deadline:
                    holder = _HOLDER.search(text)
                    wait_s = self.read_wait_s if read_only else self.write_wait_s
                    named = holder.group(1) if holder else "another connection of this process"
                    raise WarehouseBusy(_busy(self.path, wait_s, named)) from error
            time.sleep(_POLL_S)


def create_sink(settings: Settings) -> CellSink:
    """Return the sink for the warehouse under the state root. Entry point `duckdb` of the group `geode.sinks`."""
    return DuckDBSink(Warehouse(path=settings.root.warehouse))


@dataclass(frozen=True, slots=True)
class DuckDBSink:
    """Writes finished cells, one transaction each. It deletes and inserts by key: writing twice is writing once."""

    warehouse: Warehouse

    def write(self, cell: Cell) -> None:
        """See `experiments.sinks.CellSink`."""
        rows = cell_rows(cell)
        run, name = [cell.experiment.name], [cell.variant.name]
        keys = [episode.record.episode_key for episode in cell.episodes]
        with self.warehouse.write() as writing:
            writing.delete("runs", source=[SOURCE], run=run)
            for table in _OF_A_CELL:
                writing.delete(table, source=[SOURCE], run=run, cell=name)
            for table in _OF_AN_EPISODE:
                writing.delete(table, source=[SOURCE], episode_key=keys)
            for table, its_rows in rows.items():
                writing.insert(table, its_rows)
            writing.delete_orphans()

    def clear(self) -> None:
        """Delete all that came from experiments; imported archives stay."""
        with self.warehouse.write() as writing:
            for table in ("runs", *_OF_A_CELL, *_OF_AN_EPISODE):
                writing.delete(table, source=[SOURCE])

    def close(self) -> None:
        """See `experiments.sinks.CellSink`. Each `write` has already closed the file."""


@contextlib.contextmanager
def _attributed(path: Path, place: str) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        way_out = f"; {_REBUILD}" if "Corrupt" in str(error) else "; make room" if "No space" in str(error) else ""
        raise WarehouseError(f"nothing was written to {path}; {place}: {error}{way_out}") from error


def _busy(path: Path, wait_s: float, holder: str) -> str:
    return f"{path} was held by {holder} for {wait_s:g} s; wait for it, or end it, and try again"


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What a file says of itself: its last migration, and the hash of the views in it."""

    migration: int = 0
    views: str = ""


def _state(connection: duckdb.DuckDBPyConnection) -> _State:
    # Asked of the catalog first: a failing SELECT would end the transaction.
    # And fetched to the end: an unfinished result keeps the connection, and an appender off it.
    if not connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'warehouse_state'").fetchall():
        return _State()
    rows = connection.execute("SELECT migration, views FROM warehouse_state").fetchall()
    return _State(migration=rows[0][0], views=rows[0][1]) if rows else _State()


def _bring_up_to_date(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    state = _state(connection)
    _refuse_newer(state, path)
    migrations, views = _shipped("migrations"), _shipped("views")
    views_hash = content_hash(views)
    if state == _State(migration=len(migrations), views=views_hash):
        return
    for sql in migrations[state.migration :]:
        connection.execute(sql)
    for sql in views:
        connection.execute(sql)
    connection.execute("CREATE OR REPLACE TABLE warehouse_state (migration INTEGER, views VARCHAR)")
    connection.execute("INSERT INTO warehouse_state VALUES (?, ?)", [len(migrations), views_hash])


def _refuse_newer(state: _State, path: Path) -> None:
    known = len(_shipped("migrations"))
    if state.migration > known:
        raise WarehouseUnreadable(
            f"{path} has schema {state.migration}, this version knows up to {known}: use the newer geode, or {_REBUILD}"
        )


def _shipped(folder: str) -> list[str]:
    """Return the SQL files of a folder of this package, in the order of their names."""
    files = (resources.files("analysis") / folder).iterdir()
    return [f.read_text(encoding="utf-8") for f in sorted(files, key=lambda f: f.name) if f.name.endswith(".sql")]
