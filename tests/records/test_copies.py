"""Facts of looking into a store: it is not changed by it, and what its owner had not folded in is seen."""

import subprocess
import sys
from pathlib import Path

import pytest

from geode.records.copies import copied
from geode.records.database import Database, Durability, RecordDamaged, RecordError, RecordLocked

TABLE = ("CREATE TABLE t (a INTEGER)",)
DIES = """
import os, sys
from pathlib import Path
from geode.records.database import Database, Durability
database = Database(Path(sys.argv[1]), ("CREATE TABLE t (a INTEGER)",), Durability.PROCESS)
with database.write() as connection:
    connection.execute("INSERT INTO t VALUES (7)")
os._exit(0)
"""


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_a_dead_owner_left_in_the_log_is_seen_and_left_there(tmp_path: Path) -> None:
    """Opening the store itself would fold the log in, and make whoever looks its owner."""
    path = tmp_path / "x.db"
    subprocess.run([sys.executable, "-c", DIES, str(path)], check=True, cwd=Path(__file__).parents[2], timeout=60)
    before = content(tmp_path)
    assert "x.db-wal" in before
    with copied(path) as copy:
        database = Database(copy, TABLE, Durability.PROCESS)
        assert database.rows("SELECT a FROM t") == [(7,)]
        database.close()
    assert content(tmp_path) == before


def test_a_store_that_somebody_has_open_is_not_copied(tmp_path: Path) -> None:
    """A copy made while it is written to may hold half of a write."""
    database = Database(tmp_path / "x.db", TABLE, Durability.PROCESS)
    with pytest.raises(RecordLocked, match="in use"), copied(tmp_path / "x.db"):
        pass
    database.close()
    with copied(tmp_path / "x.db") as copy:
        assert copy.is_file()


def test_what_is_wrong_is_told_of_the_store_and_not_of_its_copy(tmp_path: Path) -> None:
    """The copy is gone when somebody reads the message."""
    path = tmp_path / "x.db"
    path.write_bytes(b"not a database, by any means" * 100)
    with pytest.raises(RecordDamaged) as caught, copied(path) as copy:
        Database(copy, TABLE, Durability.PROCESS)
    assert str(path) in str(caught.value)
    assert "geode-look-" not in str(caught.value)


def test_a_store_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"x\.db is gone"), copied(tmp_path / "x.db"):
        pass
