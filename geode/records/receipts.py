"""Effect receipts: what is known of every effect that the host admitted, whatever happened to the process since."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from geode.clock import Clock, rfc3339
from geode.events import CallEnd
from geode.records.database import Database, Durability, RecordError

_MIGRATIONS = (
    """
    CREATE TABLE receipts (
        path TEXT NOT NULL, round INTEGER NOT NULL, call_id TEXT NOT NULL, attempt INTEGER NOT NULL,
        tool TEXT NOT NULL, arguments TEXT NOT NULL, arguments_hash TEXT NOT NULL, intent TEXT NOT NULL,
        state TEXT NOT NULL, admitted_at TEXT NOT NULL, ended_at TEXT, note TEXT NOT NULL DEFAULT '',
        settled_by TEXT NOT NULL DEFAULT '', PRIMARY KEY (path, round, call_id, attempt));
    """,
)
_KEY = "path = ? AND round = ? AND call_id = ? AND attempt = ?"
_COLUMNS = (
    "path, round, call_id, attempt, tool, arguments, arguments_hash, intent, state, admitted_at, ended_at, note,"
    " settled_by"
)


class ReceiptState(StrEnum):
    """The life of an effect. `NOT_STARTED` is an admitted effect whose process ended before it began."""

    ADMITTED = "admitted"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptKey:
    """Names one effect of a session. `path` is the sub-agent path, empty for the session itself."""

    round: int
    call_id: str
    path: str = ""
    attempt: int = 1

    @property
    def values(self) -> tuple[str, int, str, int]:
        """The key in the order of the table's columns."""
        return (self.path, self.round, self.call_id, self.attempt)

    def __str__(self) -> str:
        """How a person names it: `3/call_1`, with the sub-agent path before and a second attempt after it."""
        again = f"#{self.attempt}" if self.attempt > 1 else ""
        return f"{self.path}:{self.round}/{self.call_id}{again}" if self.path else f"{self.round}/{self.call_id}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectReceipt:
    """What is known of one effect. `intent` is what the tool noted before it began, for its own probe."""

    key: ReceiptKey
    tool: str
    arguments: str
    arguments_hash: str
    intent: str
    state: ReceiptState
    admitted_at: str
    ended_at: str | None
    note: str
    settled_by: str


_FROM: dict[CallEnd, ReceiptState] = {
    CallEnd.NOT_STARTED: ReceiptState.ADMITTED,
    CallEnd.SUCCEEDED: ReceiptState.STARTED,
    CallEnd.FAILED: ReceiptState.STARTED,
    CallEnd.UNCERTAIN: ReceiptState.STARTED,
}
SETTLED = (ReceiptState.SUCCEEDED, ReceiptState.FAILED, ReceiptState.NOT_STARTED)
"""What an uncertain effect can be settled as."""


class EffectReceiptStore:
    """The receipts of one session. Each method is one durable transaction; a receipt never goes back."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    @classmethod
    def open(cls, path: Path, clock: Clock, durability: Durability = Durability.PROCESS) -> Self:
        """Open or create the store. Effects that a dead process left open get their honest end first.

        Started without an end becomes *uncertain*, admitted without a start becomes *not started*.
        """
        database = Database(path, _MIGRATIONS, durability)
        try:
            with database.write() as connection:
                at = rfc3339(clock.now())
                for end in (CallEnd.UNCERTAIN, CallEnd.NOT_STARTED):
                    connection.execute(
                        "UPDATE receipts SET state = ?, ended_at = ?, note = 'the process ended' WHERE state = ?",
                        (end.value, at, _FROM[end].value),
                    )
        except BaseException:
            database.close()
            raise
        return cls(database, clock)

    def admit(self, key: ReceiptKey, *, tool: str, arguments: str, arguments_hash: str, intent: str) -> None:
        """Record that the effect may begin.

        Raises:
            RecordError: if the key is taken: a result is never attached to another call, and no effect runs twice.
        """
        with self._db.write() as connection:
            admitted = connection.execute(
                "INSERT INTO receipts (path, round, call_id, attempt, tool, arguments, arguments_hash, intent, state,"
                " admitted_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'admitted', ?)"
                " ON CONFLICT (path, round, call_id, attempt) DO NOTHING",
                (*key.values, tool, arguments, arguments_hash, intent, rfc3339(self._clock.now())),
            ).rowcount
            if admitted != 1:
                raise RecordError(
                    f"call {key.call_id!r} of round {key.round} was already admitted; it is not run again"
                )

    def started(self, key: ReceiptKey) -> None:
        """Record that the effect begins with the next instruction."""
        self._move(key, ReceiptState.ADMITTED, ReceiptState.STARTED)

    def ended(self, key: ReceiptKey, end: CallEnd, note: str = "") -> None:
        """Record how the effect ended, or that an admitted one never began.

        Raises:
            RecordError: if it cannot end so from where it is.
        """
        self._move(key, _FROM[end], ReceiptState(end.value), note=note)

    def settle(self, key: ReceiptKey, end: ReceiptState, *, by: str, note: str) -> None:
        """Decide an uncertain effect: `by` is `probe` or `operator`, `note` is why.

        Raises:
            RecordError: if the receipt is not uncertain, or `end` is not one that is known.
        """
        if end not in SETTLED:
            raise RecordError(f"an effect is settled as {', '.join(SETTLED)}, not as {end.value}")
        self._move(key, ReceiptState.UNCERTAIN, end, note=note, by=by)

    def all(self, *states: ReceiptState) -> Sequence[EffectReceipt]:
        """Return the receipts in these states (all, if none is named), oldest first."""
        wanted = [state.value for state in states or tuple(ReceiptState)]
        marks = ", ".join("?" * len(wanted))
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM receipts WHERE state IN ({marks}) ORDER BY rowid",
            wanted,
        )
        return [_receipt(row) for row in rows]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _move(self, key: ReceiptKey, start: ReceiptState, end: ReceiptState, *, note: str = "", by: str = "") -> None:
        ended_at = None if end is ReceiptState.STARTED else rfc3339(self._clock.now())
        with self._db.write() as connection:
            changed = connection.execute(
                f"UPDATE receipts SET state = ?, ended_at = ?, note = ?, settled_by = ? WHERE {_KEY} AND state = ?",
                (end.value, ended_at, note, by, *key.values, start.value),
            ).rowcount
            if changed != 1:
                raise RecordError(
                    f"call {key.call_id!r} of round {key.round} is not {start.value}, so it cannot become {end.value}"
                )


def _receipt(row: tuple[Any, ...]) -> EffectReceipt:
    path, round_, call_id, attempt, tool, arguments, arguments_hash, intent, state, admitted, ended, note, by = row
    return EffectReceipt(
        key=ReceiptKey(path=path, round=round_, call_id=call_id, attempt=attempt),
        tool=tool,
        arguments=arguments,
        arguments_hash=arguments_hash,
        intent=intent,
        state=ReceiptState(state),
        admitted_at=admitted,
        ended_at=ended,
        note=note,
        settled_by=by,
    )
