"""The checkpoint: what a session needs to go on after its process died. A round appends its own messages.

Two writes a round: the model's message with the batch that it asked for, *before* any tool runs, and the results after.
"""

import json
import sqlite3
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from geode.llm.messages import Message, Usage, decode_message
from geode.records.cognitive import CognitiveState
from geode.records.database import Database, Durability, RecordError

SESSION_SCHEMA = "geode.session/1"

_MIGRATIONS = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE messages (seq INTEGER PRIMARY KEY, turn INTEGER NOT NULL, round INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE TABLE batches (round INTEGER PRIMARY KEY, calls INTEGER NOT NULL, complete INTEGER NOT NULL);
    CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """,
)
_SAVE_STATE = "INSERT INTO state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


@dataclass(slots=True, kw_only=True)
class Progress:
    """Where a session stands. Counters of a prompt are reset when the next one begins, never by a restart.

    `round` counts over the whole session, so that a round's number names it; `turn_first_round` is where the
    prompt began. `elapsed_s` is the time that the prompt has used in all processes so far.
    """

    turn: int = 0
    round: int = 0
    turn_first_round: int = 1
    repairs_used: int = 0
    continuations_used: int = 0
    empty_in_a_row: int = 0
    cut_in_a_row: int = 0
    elided_messages: int = 0
    elapsed_s: float = 0.0
    model_calls: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    refused_calls: int = 0
    latency_ms: int = 0
    uncached_input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    simulated: bool = False
    in_turn: bool = False

    def begin_turn(self) -> None:
        """Start counting for a new prompt; budgets are per prompt."""
        turn, round_ = self.turn + 1, self.round
        kept = self.elided_messages
        for spec in fields(self):
            setattr(self, spec.name, spec.default)
        self.turn, self.round, self.turn_first_round, self.elided_messages = turn, round_, round_ + 1, kept
        self.in_turn = True

    def count(self, usage: Usage) -> None:
        """Add the usage of one model call."""
        self.uncached_input_tokens += usage.uncached_input_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.cache_read_tokens += usage.cache_read_tokens
        self.output_tokens += usage.output_tokens
        self.cost_usd += usage.cost_usd

    @property
    def tokens(self) -> int:
        """All tokens that the prompt has used."""
        return self.uncached_input_tokens + self.cache_write_tokens + self.cache_read_tokens + self.output_tokens

    @property
    def rounds(self) -> int:
        """The rounds of this prompt so far."""
        return self.round - self.turn_first_round + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """What a checkpoint gives back."""

    messages: tuple[Message, ...] = ()
    progress: Progress = field(default_factory=Progress)
    guards: dict[str, JsonValue] = field(default_factory=dict)
    cognitive: CognitiveState = field(default_factory=CognitiveState)


class SessionCheckpoint:
    """The durable conversation, counters, guards and cognitive state of one session.

    Each `save_*` is one transaction. If it raises `RecordError`, nothing of it is stored and the caller must not act.
    """

    def __init__(self, database: Database) -> None:
        self._db = database
        self._saved: dict[str, str] = {}
        self._next: int = database.rows("SELECT coalesce(max(seq), 0) + 1 FROM messages")[0][0]

    @classmethod
    def open(cls, path: Path, session_id: str, durability: Durability = Durability.PROCESS) -> Self:
        """Open or create the checkpoint of `session_id`.

        Raises:
            RecordError: if the file is locked, damaged, newer, or another session's.
        """
        database = Database(path, _MIGRATIONS, durability)
        try:
            stored: dict[str, str] = dict(database.rows("SELECT key, value FROM meta"))
            if not stored:
                with database.write() as connection:
                    connection.executemany(
                        "INSERT INTO meta VALUES (?, ?)", [("schema", SESSION_SCHEMA), ("session_id", session_id)]
                    )
            elif stored.get("session_id") != session_id:
                raise RecordError(f"{path} belongs to session {stored.get('session_id')}, not to {session_id}")
        except BaseException:
            database.close()
            raise
        return cls(database)

    def load(self) -> StoredSession:
        """Return what was saved; for a new session, the empty one."""
        state: dict[str, str] = dict(self._db.rows("SELECT key, value FROM state"))
        self._saved = dict(state)
        return StoredSession(
            messages=tuple(decode_message(body) for (body,) in self._db.rows("SELECT body FROM messages ORDER BY seq")),
            progress=Progress(**json.loads(state["progress"])) if "progress" in state else Progress(),
            guards=json.loads(state["guards"]) if "guards" in state else {},
            cognitive=CognitiveState.model_validate_json(state["cognitive"])
            if "cognitive" in state
            else CognitiveState(),
        )

    def save_message(self, body: str, progress: Progress, cognitive: CognitiveState | None = None) -> None:
        """Append one encoded message that asks for no tool: a prompt, an answer, an instruction of the host."""
        with self._db.write() as connection:
            self._append(connection, body, progress)
            if cognitive is not None:
                self._put(connection, "cognitive", cognitive.model_dump_json())

    def save_pending(self, body: str, calls: int, progress: Progress) -> None:
        """Append the model's message and open its batch of `calls` tool calls. No tool may run before this returned."""
        with self._db.write() as connection:
            self._append(connection, body, progress)
            connection.execute("INSERT INTO batches VALUES (?, ?, 0)", (progress.round, calls))

    def save_complete(
        self, body: str, progress: Progress, guards: dict[str, JsonValue], cognitive: CognitiveState | None = None
    ) -> None:
        """Append the results of the open batch and close it, with the state of the guards after it."""
        with self._db.write() as connection:
            self._append(connection, body, progress)
            connection.execute("UPDATE batches SET complete = 1 WHERE round = ?", (progress.round,))
            if guards:
                self._put(connection, "guards", json.dumps(guards, separators=(",", ":")))
            if cognitive is not None:
                self._put(connection, "cognitive", cognitive.model_dump_json())

    def save_state(self, progress: Progress, guards: dict[str, JsonValue], cognitive: CognitiveState) -> None:
        """Save counters, guards and cognitive state without a message."""
        with self._db.write() as connection:
            self._put(connection, "progress", _encode_progress(progress))
            self._put(connection, "guards", json.dumps(guards, separators=(",", ":")))
            self._put(connection, "cognitive", cognitive.model_dump_json())

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _append(self, connection: sqlite3.Connection, body: str, progress: Progress) -> None:
        connection.execute(
            "INSERT INTO messages VALUES (?, ?, ?, ?)", (self._next, progress.turn, progress.round, body)
        )
        self._next += 1
        self._put(connection, "progress", _encode_progress(progress))

    def _put(self, connection: sqlite3.Connection, key: str, value: str) -> None:
        if self._saved.get(key) != value:
            connection.execute(_SAVE_STATE, (key, value))
            self._saved[key] = value


def _encode_progress(progress: Progress) -> str:
    # dataclasses.asdict copies deeply and costs ten times this.
    return json.dumps({name: getattr(progress, name) for name in _PROGRESS_FIELDS}, separators=(",", ":"))


_PROGRESS_FIELDS = tuple(spec.name for spec in fields(Progress))
