"""The ledger of spending: a row for each request that may be billed, written before it is sent and settled after it.

All processes of a state root share `spend.db`. A row counts as what it cost, and as the most that it can cost as long
as nobody knows: while the request is under way, when its process died over it, and when the provider did not say. So no
cap is passed by what is not known. The ledger can be made anew from the timelines (`geode.records.spend_rebuilt`).

Money is kept in whole nano-dollars: a price a million tokens of up to three decimals is then exact for one token.

SQLite keeps it in a rollback journal without syncing: a row survives the death of its process, and nobody waits for the
disk. Losing power may damage the file, which is then moved away and made anew. No write-ahead log, for the race of
SQLite that `geode.records.database` tells of.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from pathlib import Path

from geode.clock import Clock, rfc3339
from geode.llm.usage import CostOrigin, Usage
from geode.records.database import RecordDamaged, RecordError, RecordLocked, RecordNewer

_VERSION = 1
_NANO = 1_000_000_000
_BUSY_TIMEOUT_S = 5.0
_REQUEST_S_MAX = 3_600.0  # longer than any request lasts: an older one without an end has lost its process
_USAGE = (
    "uncached_input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens",
)  # fmt: skip

_SCHEMA = """
CREATE TABLE requests (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    day TEXT NOT NULL,
    session TEXT NOT NULL,
    role TEXT NOT NULL,
    experiment TEXT NOT NULL,
    episode_key TEXT NOT NULL,
    command TEXT NOT NULL,
    model TEXT NOT NULL,
    pid INTEGER NOT NULL,
    most INTEGER,
    ended INTEGER NOT NULL,
    cost INTEGER,
    origin TEXT NOT NULL,
    uncached_input_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_read_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER
);
CREATE TABLE totals (scope TEXT NOT NULL, name TEXT NOT NULL, counted INTEGER NOT NULL, PRIMARY KEY (scope, name))
    WITHOUT ROWID;
"""
_INSERT = "INSERT INTO requests VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SETTLE = (
    "UPDATE requests SET ended = 1, cost = ?, origin = ?, uncached_input_tokens = ?, cache_write_tokens = ?,"
    " cache_read_tokens = ?, output_tokens = ?, reasoning_tokens = ? WHERE id = ?"
)
_SELECT = (
    "SELECT at, day, session, role, experiment, episode_key, command, model, pid, most, ended, cost, origin,"
    " uncached_input_tokens, cache_write_tokens, cache_read_tokens, output_tokens, reasoning_tokens"
    " FROM requests WHERE day >= ? AND (? = '' OR session = ?) ORDER BY id"
)
_ADD = (
    "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT (scope, name) DO UPDATE SET counted = counted + excluded.counted"
)


class Scope(StrEnum):
    """What a cap holds for."""

    SESSION = "session"
    DAY = "day"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """Who spends.

    `session` is the name of the session's folder, so that for an episode it is its key; a sub-agent spends as the
    session that it works for. `command` names one run of `geode`.
    """

    session: str
    role: str = "target"
    experiment: str = ""
    episode_key: str = ""
    command: str = ""

    def scopes(self, day: str) -> tuple[tuple[Scope, str], ...]:
        """Return whose totals a request of this spender is in."""
        named = ((Scope.SESSION, self.session), (Scope.DAY, day), (Scope.COMMAND, self.command))
        return tuple((scope, name) for scope, name in named if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """One request, as the ledger has it. Money in US dollars; `cost_usd` is None as long as nobody knows."""

    at: datetime
    spender: Spender
    model: str
    usage: Usage | None
    most_usd: Decimal | None = None
    pid: int = 0
    ended: bool = True

    def open_at(self, now: datetime) -> bool:
        """Whether the request may still be under way: its process lives, and has not had it for too long."""
        return not self.ended and now - self.at < timedelta(seconds=_REQUEST_S_MAX) and _lives(self.pid)

    @property
    def cost_usd(self) -> Decimal | None:
        """What it cost."""
        return None if self.usage is None or self.usage.cost_usd is None else _decimal(self.usage.cost_usd)

    @property
    def counted_usd(self) -> Decimal:
        """What it counts as under a cap."""
        return (self.most_usd or Decimal(0)) if self.cost_usd is None else self.cost_usd


@dataclass(slots=True)
class SpendLedger:
    """The ledger of a state root. It is opened when it is first needed, and made if it is not there.

    `make_anew` yields what is known of requests that were sent before the file was made.

    Every method raises `RecordError` if the file cannot be read or written; nothing of the call is then stored.
    """

    path: Path
    clock: Clock
    make_anew: Callable[[], Iterable[Spending]] = tuple
    busy_timeout_s: float = _BUSY_TIMEOUT_S
    _connection: sqlite3.Connection | None = field(default=None, init=False)
    _owner: int = field(default=0, init=False)
    _checked: bool = field(default=False, init=False)

    def reserve(self, spender: Spender, model: str, most_usd: Decimal | None, allowed: "Allowed | None" = None) -> int:
        """Add a request that is about to be sent, and return its number; ask `allowed` first, in the same transaction.

        `allowed` is given what each scope has spent by then, and raises if the request must not be sent.
        """
        now = self.clock.now()
        most = None if most_usd is None else _nano(most_usd, ROUND_CEILING)
        day = f"{now:%Y-%m-%d}"
        with self._writing() as connection:
            if allowed is not None:
                allowed({scope: _total(connection, scope, name) for scope, name in spender.scopes(day)})
            sent = Spending(at=now, spender=spender, model=model, usage=None, pid=os.getpid(), ended=False)
            return _insert(connection, sent, most)

    def settle(self, entry: int, usage: Usage | None) -> None:
        """Say how a request ended, and count what it cost instead of its most; one that was settled stays as it is."""
        with self._writing() as connection:
            row = connection.execute(
                "SELECT day, session, command, coalesce(most, 0) FROM requests WHERE id = ? AND NOT ended", (entry,)
            ).fetchone()
            if row is None:
                return
            day, session, command, most = row
            cost = None if usage is None or usage.cost_usd is None else _nano(_decimal(usage.cost_usd))
            connection.execute(_SETTLE, (cost, *_usage_values(usage), entry))
            if cost is not None:
                spender = Spender(session=session, command=command)
                connection.executemany(_ADD, [(*scope, cost - most) for scope in spender.scopes(day)])

    def spent(self, scope: Scope, name: str) -> Decimal:
        """Return what is spent or held."""
        with self._explained():
            return _total(self._open(), scope, name)

    def all(self, since: str = "", session: str = "") -> Iterator[Spending]:
        """Return every request from the day `since` on (UTC, YYYY-MM-DD), in order; of one session, if it is named."""
        with self._explained():
            rows = self._open().execute(_SELECT, (since, session, session)).fetchall()
        return map(_spending, rows)

    def close(self) -> None:
        """Close the file. It is opened again when it is needed again."""
        if self._connection is not None and os.getpid() == self._owner:
            self._connection.close()
        self._connection = None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back by itself where the disk was full or failed.
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._owner == os.getpid():
            return self._connection
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise RecordError(f"{self.path} cannot be made ({error.strerror}); {_CHECK_DISK}") from error
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=self.busy_timeout_s)
        try:
            connection.execute("PRAGMA journal_mode=TRUNCATE")
            connection.execute("PRAGMA synchronous=OFF")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._owner = connection, os.getpid()
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise RecordNewer(f"{self.path} has schema {version}, this version knows {_VERSION}; upgrade GEODE")
        if version == _VERSION:
            verdict = "ok" if self._checked else connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise RecordDamaged(f"{self.path} is damaged ({verdict}); {_MAKE_ANEW}")
            self._checked = True
            return
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # nobody else has made it meanwhile
            for statement in _SCHEMA.split(";")[:-1]:
                connection.execute(statement)
            for known in self.make_anew():
                most = known.most_usd
                _insert(connection, known, None if most is None else _nano(most, ROUND_CEILING))
            connection.execute(f"PRAGMA user_version={_VERSION}")
        connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "locked" in text or "busy" in text:
                raise RecordLocked(
                    f"{self.path} is held by another process for more than {self.busy_timeout_s:g} s; see whether it"
                    " hangs, then try again"
                ) from error
            if isinstance(error, sqlite3.DatabaseError) and ("malformed" in text or "not a database" in text):
                raise RecordDamaged(f"{self.path} is damaged ({text}); {_MAKE_ANEW}") from error
            raise RecordError(f"{self.path} cannot be used ({text}); {_CHECK_DISK}") from error


_MAKE_ANEW = "move it away, and it is made anew from the records of the sessions"
_CHECK_DISK = "check the disk and the folder's permissions"
Allowed = Callable[[dict[Scope, Decimal]], None]


def _insert(connection: sqlite3.Connection, known: Spending, most: int | None) -> int:
    spender, day = known.spender, f"{known.at:%Y-%m-%d}"
    cost = None if known.cost_usd is None else _nano(known.cost_usd)
    values = (
        rfc3339(known.at), day, spender.session, spender.role, spender.experiment, spender.episode_key,
        spender.command, known.model, known.pid, most, known.ended, cost, *_usage_values(known.usage),
    )  # fmt: skip
    cursor = connection.execute(_INSERT, values)
    counted = (most or 0) if cost is None else cost
    connection.executemany(_ADD, [(*scope, counted) for scope in spender.scopes(day)])
    return int(cursor.lastrowid or 0)


def _usage_values(usage: Usage | None) -> tuple[str | int | None, ...]:
    known = usage or Usage()
    return (known.cost_origin.value, *(getattr(known, name) for name in _USAGE))


def _spending(row: Sequence[object]) -> Spending:
    at, _, session, role, experiment, episode_key, command, model, pid, most, ended, cost, origin, *tokens = row
    usage = Usage(
        **{name: None if count is None else int(str(count)) for name, count in zip(_USAGE, tokens, strict=True)},
        cost_usd=None if cost is None else int(str(cost)) / _NANO,
        cost_origin=CostOrigin(str(origin)),
    )
    return Spending(
        at=datetime.fromisoformat(str(at)),
        spender=Spender(
            session=str(session),
            role=str(role),
            experiment=str(experiment),
            episode_key=str(episode_key),
            command=str(command),
        ),
        model=str(model),
        usage=usage if ended else None,
        most_usd=None if most is None else Decimal(int(str(most))) / _NANO,
        pid=int(str(pid)),
        ended=bool(ended),
    )


def _total(connection: sqlite3.Connection, scope: Scope, name: str) -> Decimal:
    row = connection.execute("SELECT counted FROM totals WHERE scope = ? AND name = ?", (scope, name)).fetchone()
    return Decimal(row[0] if row else 0) / _NANO


def _decimal(usd: float) -> Decimal:
    return Decimal(repr(usd))


def _nano(usd: Decimal, rounding: str = ROUND_HALF_EVEN) -> int:
    return int((usd * _NANO).to_integral_value(rounding))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
