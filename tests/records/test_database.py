"""Facts of `geode.records.database`: one owner, whole transactions, and no write to a file that is not sound."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geode.records.database import Database, Durability, RecordDamaged, RecordError, RecordLocked, RecordNewer
from tests.doubles.effects import fill_up

MIGRATIONS = ("CREATE TABLE t (n INTEGER PRIMARY KEY, body TEXT);",)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "a.db", MIGRATIONS, Durability.PROCESS)
    yield opened
    opened.close()


def insert(database: Database, n: int, body: str = "x") -> None:
    with database.write() as connection:
        connection.execute("INSERT INTO t VALUES (?, ?)", (n, body))


def numbers(database: Database) -> list[int]:
    return [n for (n,) in database.rows("SELECT n FROM t ORDER BY n")]


def in_fork(act: Callable[[], int]) -> int:
    """Return what `act` returns in a child process, or 99 if it raises."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_transaction_is_stored_whole_or_not_at_all(database: Database) -> None:
    insert(database, 1)

    def fails_half_way() -> None:
        with database.write() as connection:
            connection.execute("INSERT INTO t VALUES (2, 'half')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails_half_way()
    insert(database, 3)
    assert numbers(database) == [1, 3]


def test_a_full_disk_is_told_as_such_and_leaves_nothing(database: Database) -> None:
    """SQLite rolls back by itself then; a second rollback must not hide the reason."""
    insert(database, 1)
    fill_up(database._connection)
    with pytest.raises(RecordError, match=r"a\.db cannot be used .*full.*; check the disk"):
        insert(database, 2, "x" * 100_000)
    assert numbers(database) == [1]
    insert(database, 3)
    assert numbers(database) == [1, 3]


def test_a_wrong_statement_is_a_record_error_that_names_the_file(database: Database) -> None:
    insert(database, 1)
    with pytest.raises(RecordError, match=r"a\.db cannot be used .*UNIQUE"):
        insert(database, 1)
    with pytest.raises(RecordError, match=r"a\.db cannot be used .*no such table"):
        database.rows("SELECT * FROM nowhere")


def test_a_second_owner_is_refused_while_the_first_lives(tmp_path: Path, database: Database) -> None:
    """R23: two owners of one session would run each other's effects. Not even reading is shared."""
    insert(database, 1)
    with pytest.raises(RecordLocked, match=r"a\.db is in use by another process; wait for it or stop it"):
        Database(tmp_path / "a.db", MIGRATIONS, Durability.PROCESS, busy_timeout_s=0.01)
    reader = sqlite3.connect(tmp_path / "a.db", timeout=0.01)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        reader.execute("SELECT * FROM t")
    reader.close()
    insert(database, 2)
    assert numbers(database) == [1, 2]


def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    """R23: whoever holds the file for a moment costs a moment, not the turn. An open connection is already a hold."""
    Database(tmp_path / "a.db", MIGRATIONS, Durability.PROCESS).close()
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.05, other.close)
    release.start()
    opened = Database(tmp_path / "a.db", MIGRATIONS, Durability.PROCESS, busy_timeout_s=10)
    insert(opened, 1)
    release.join()
    opened.close()


def test_a_refused_opening_leaves_no_lock_behind(tmp_path: Path) -> None:
    """A connection that was left open would hold the file until it is collected."""
    path = tmp_path / "a.db"
    Database(path, MIGRATIONS, Durability.PROCESS).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version=7")
    raw.close()
    with pytest.raises(RecordNewer) as kept:
        Database(path, MIGRATIONS, Durability.PROCESS)
    with sqlite3.connect(path, timeout=0.01) as raw:
        raw.execute("PRAGMA user_version=1")
    raw.close()
    assert "has schema 7, this version knows 1; upgrade GEODE" in str(kept.value)
    Database(path, MIGRATIONS, Durability.PROCESS).close()


@pytest.mark.parametrize("where", ["beginning", "middle"])
def test_a_damaged_file_is_refused_and_not_written_to(tmp_path: Path, where: str) -> None:
    """R25: a program that goes on writing destroys what could have been saved."""
    path = tmp_path / "a.db"
    database = Database(path, MIGRATIONS, Durability.PROCESS)
    for n in range(200):
        insert(database, n, "y" * 200)
    database.close()
    with path.open("r+b") as file:
        file.seek(0 if where == "beginning" else path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    before = path.read_bytes()
    with pytest.raises(RecordDamaged, match=r"(?s)a\.db is damaged .*keep it, and start a new session"):
        Database(path, MIGRATIONS, Durability.PROCESS)
    assert path.read_bytes() == before


@pytest.mark.parametrize("act", ["write", "read", "close"])
def test_a_fork_does_not_touch_the_file(tmp_path: Path, database: Database, act: str) -> None:
    """R25: a connection carried across a fork is a known way to a damaged file. Closing it writes, too."""
    insert(database, 1)
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def child() -> int:
        try:
            if act == "close":
                database.close()
            elif act == "read":
                numbers(database)
            else:
                insert(database, 2)
        except RecordError as refused:
            return 1 if "a fork may not use it" in str(refused) else 2
        return 0

    assert in_fork(child) == (0 if act == "close" else 1)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == files
    insert(database, 3)
    assert numbers(database) == [1, 3]


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    def child() -> int:
        database = Database(tmp_path / "a.db", MIGRATIONS, Durability.PROCESS)
        for n in range(5):
            insert(database, n)
        os.kill(os.getpid(), 9)
        return 0

    assert in_fork(child) == -9
    database = Database(tmp_path / "a.db", MIGRATIONS, Durability.PROCESS)
    assert numbers(database) == [0, 1, 2, 3, 4]
    database.close()


def test_migrations_run_once_and_in_order(tmp_path: Path) -> None:
    """A session of an older version opens in a newer one, with all that it held."""
    path = tmp_path / "a.db"
    old = Database(path, MIGRATIONS, Durability.PROCESS)
    insert(old, 1)
    old.close()
    newer = (*MIGRATIONS, "ALTER TABLE t ADD COLUMN more TEXT DEFAULT 'm';", "UPDATE t SET more = more || n;")
    for _ in range(2):
        database = Database(path, newer, Durability.PROCESS)
        assert database.rows("SELECT n, more FROM t") == [(1, "m1")]
        assert database.rows("PRAGMA user_version") == [(3,)]
        database.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    old = Database(path, MIGRATIONS, Durability.PROCESS)
    insert(old, 1)
    old.close()
    with pytest.raises(RecordError, match="no such table"):
        Database(path, (*MIGRATIONS, "UPDATE t SET n = 9; UPDATE nowhere SET n = 1;"), Durability.PROCESS)
    again = Database(path, MIGRATIONS, Durability.PROCESS)
    assert numbers(again) == [1]
    again.close()


@pytest.mark.parametrize(("durability", "level"), [(Durability.PROCESS, 1), (Durability.POWER, 2)])
def test_durability_is_what_was_asked_for(tmp_path: Path, durability: Durability, level: int) -> None:
    """synchronous=NORMAL (1) survives the process, FULL (2) the power."""
    database = Database(tmp_path / "a.db", MIGRATIONS, durability)
    assert database.rows("PRAGMA synchronous") == [(level,)]
    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    assert database.rows("PRAGMA locking_mode") == [("exclusive",)]
    database.close()


def test_a_closed_file_stands_alone(tmp_path: Path, database: Database) -> None:
    """It is copied to other machines by itself, so nothing may be left beside it."""
    insert(database, 1)
    database.close()
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


def test_a_place_that_holds_no_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="check the disk and the folder's permissions"):
        Database(tmp_path / "missing" / "a.db", MIGRATIONS, Durability.PROCESS)
