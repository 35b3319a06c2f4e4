"""One SQLite file, opened by one owner. Why each setting is as it is stands here, and nowhere else.

The connection is exclusive: nobody else can read or write the file while its session lives. That refuses a second
owner, needs no shared-memory file, and leaves no room for the WAL-reset race of SQLite 3.7.0 to 3.51.2, which takes two
connections. Readers of a running session read its timeline.

The lock is the lease: the system holds it for as long as the process lives, stopped or not, so that it never runs out
under an owner who would go on. Two ways lead around it, and each write looks whether one was taken: a fork has the
handle without the lock, and a file put in the place of ours has no lock at all.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

_BUSY_TIMEOUT_S = 5.0


class Durability(StrEnum):
    """What an acknowledged write survives: the death of the process, or of the machine's power."""

    PROCESS = "process"
    POWER = "power"


class RecordError(Exception):
    """A store cannot be used. The text names the file and what to do."""


class RecordLocked(RecordError):  # noqa: N818  (named by what happened)
    """Another process owns the file."""


class RecordDamaged(RecordError):  # noqa: N818
    """The file is not a sound database. It was not written to."""


class RecordNewer(RecordError):  # noqa: N818
    """The file was written by a newer version."""


class Database:
    """An open SQLite file.

    Args:
        path: the file; it is created with its schema if it does not exist.
        migrations: SQL scripts; script n takes the schema from version n to n + 1.
        durability: `PROCESS` is synchronous=NORMAL, `POWER` is FULL.
        busy_timeout_s: how long to wait for another process to let go of the file.

    Raises:
        RecordError: if it cannot be opened; nothing was written to it.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        durability: Durability,
        *,
        busy_timeout_s: float = _BUSY_TIMEOUT_S,
    ) -> None:
        self.path = path
        self._owner = os.getpid()
        existed = path.exists()
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=busy_timeout_s)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        try:
            self._prepare(migrations, durability, existed=existed)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._explained(error) from error
            raise
        self._open, self._identity = True, _identity(path)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside one immediate transaction; it is committed at the end or rolled back.

        Raises:
            RecordError: if the write did not become durable; nothing of it is then stored.
        """
        self._refuse_fork()
        if not self._in_place():
            raise RecordError(
                f"{self.path} is not the file any more that this process opened; who put another in its place owns it"
            )
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException as error:
            # SQLite has rolled back by itself where the disk was full or failed.
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):  # the error that led here is the one to tell
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._explained(error) from error
            raise

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query.

        Raises:
            RecordError: if they cannot be read.
        """
        self._refuse_fork()
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._explained(error) from error

    @property
    def owned(self) -> bool:
        """Whether this process may write: it has the file open, and it is still the one at the path."""
        return self._open and os.getpid() == self._owner and self._in_place()

    def close(self) -> None:
        """Close the file. The write-ahead log is folded in and removed."""
        if os.getpid() == self._owner:  # closing writes, so a fork leaves it alone
            self._open = False
            self._connection.close()

    def _in_place(self) -> bool:
        return _identity(self.path) == self._identity

    def _refuse_fork(self) -> None:
        if os.getpid() != self._owner:
            raise RecordError(f"{self.path.name} was opened by process {self._owner}; a fork may not use it")

    def _prepare(self, migrations: Sequence[str], durability: Durability, *, existed: bool) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode=EXCLUSIVE")
        execute("PRAGMA journal_mode=WAL")
        execute(f"PRAGMA synchronous={'FULL' if durability is Durability.POWER else 'NORMAL'}")
        if existed:
            self._check()
        self._migrate(migrations)

    def _check(self) -> None:
        verdict = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise RecordDamaged(f"{self.path} is damaged ({verdict}); keep it, and start a new session")

    def _migrate(self, migrations: Sequence[str]) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(migrations):
            raise RecordNewer(f"{self.path} has schema {version}, this version knows {len(migrations)}; upgrade GEODE")
        if version < len(migrations):
            script = ";\n".join(migrations[version:])
            self._connection.executescript(f"BEGIN;{script};PRAGMA user_version={len(migrations)};COMMIT;")

    def _explained(self, error: sqlite3.Error) -> RecordError:
        text = str(error)
        if "locked" in text or "busy" in text:
            return RecordLocked(f"{self.path} is in use by another process; wait for it or stop it, then try again")
        if isinstance(error, sqlite3.DatabaseError) and ("malformed" in text or "not a database" in text):
            return RecordDamaged(f"{self.path} is damaged ({text}); keep it, and start a new session")
        return RecordError(f"{self.path} cannot be used ({text}); check the disk and the folder's permissions")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
