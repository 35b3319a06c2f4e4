"""The checkpoint: what a session needs to go on after its process died. A round appends its own messages.

Two writes a round: the model's message with the batch that it asked for, *before* any tool runs, and the results after.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from geode.llm.messages import Message, decode_message
from geode.llm.usage import Usage
from geode.records.cognitive import CognitiveState
from geode.records.database import Database, Durability, RecordDamaged, RecordError, RecordNewer

SESSION_SCHEMA = "geode.session/1"

_MIGRATIONS = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE messages (seq INTEGER PRIMARY KEY, turn INTEGER NOT NULL, round INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE TABLE batches (round INTEGER PRIMARY KEY, calls INTEGER NOT NULL, complete INTEGER NOT NULL);
    CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """,
)
_ENCODER = json.JSONEncoder(separators=(",", ":"))  # `json.dumps` builds one for each call
_OPEN_BATCH = "INSERT INTO batches VALUES (:round, :calls, 0)"
_CLOSE_BATCH = "UPDATE batches SET complete = 1 WHERE round = :round"
_SAVE_STATE = "INSERT INTO state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

Guards = Mapping[str, JsonValue]
"""What the hooks remember, by the name of the hook."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """Where a session stands. Counters of a prompt are reset when the next one begins, never by a restart.

    `round` counts over the whole session, so that a round's number names it; `turn_first_round` is where the
    prompt began. `elapsed_s` is the time that the prompt has used in all processes so far. `cost_usd` lacks the cost of
    `unpriced_calls`, which nobody knows.
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
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    simulated: bool = False
    in_turn: bool = False

    def begin_turn(self) -> None:
        """Start counting for a new prompt; budgets are per prompt. It is in its turn once it is saved."""
        turn, round_ = self.turn + 1, self.round
        kept = self.elided_messages
        for spec in fields(self):
            setattr(self, spec.name, spec.default)
        self.turn, self.round, self.turn_first_round, self.elided_messages = turn, round_, round_ + 1, kept

    def count(self, usage: Usage) -> None:
        """Add the usage of one request. What is not known adds nothing, but an unknown cost is remembered."""
        self.uncached_input_tokens += usage.uncached_input_tokens or 0
        self.cache_write_tokens += usage.cache_write_tokens or 0
        self.cache_read_tokens += usage.cache_read_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.reasoning_tokens += usage.reasoning_tokens or 0
        self.cost_usd += usage.cost_usd or 0.0
        self.unpriced_calls += usage.cost_usd is None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMessage:
    """A stored message, and where in the session it was said."""

    turn: int
    round: int
    message: Message


class SessionCheckpoint:
    """The durable conversation, counters, guards and cognitive state of one session.

    Each `save_*` is one transaction. If it raises `RecordError`, nothing of it is stored and the caller must not act.
    """

    def __init__(self, database: Database) -> None:
        self._db = database
        self._saved: dict[str, str] = {}
        self._next: int = database.rows("SELECT coalesce(max(seq), 0) + 1 FROM messages")[0][0]

    @classmethod
    def open(cls, path: Path, session_id: str | None, durability: Durability = Durability.PROCESS) -> Self:
        """Open or create the checkpoint of `session_id`; None opens what there is, whosever it is.

        Raises:
            RecordError: if the file is locked, damaged, newer, or another session's.
        """
        database = Database(path, _MIGRATIONS, durability)
        try:
            stored: dict[str, str] = dict(database.rows("SELECT key, value FROM meta"))
            if not stored and session_id is None:
                raise RecordDamaged(f"{path} is empty; restore it from a copy, or start a new session")
            if not stored:
                with database.write() as connection:
                    connection.executemany(
                        "INSERT INTO meta VALUES (?, ?)", [("schema", SESSION_SCHEMA), ("session_id", session_id)]
                    )
            elif stored.get("schema") != SESSION_SCHEMA:
                raise RecordNewer(
                    f"{path} has schema {stored.get('schema')!r}, this version reads {SESSION_SCHEMA!r}; upgrade GEODE"
                )
            elif session_id not in (None, stored.get("session_id")):
                raise RecordError(f"{path} belongs to session {stored.get('session_id')}, not to {session_id}")
        except BaseException:
            database.close()
            raise
        return cls(database)

    def load(self) -> StoredSession:
        """Return what was saved; for a new session, the empty one.

        Raises:
            RecordError: if it cannot be read, or holds what no version of GEODE wrote.
        """
        state: dict[str, str] = dict(self._db.rows("SELECT key, value FROM state"))
        bodies = self._db.rows("SELECT body FROM messages ORDER BY seq")
        try:
            stored = StoredSession(
                messages=tuple(decode_message(body) for (body,) in bodies),
                progress=Progress(**json.loads(state.get("progress", "{}"))),
                guards=json.loads(state.get("guards", "{}")),
                cognitive=CognitiveState.model_validate_json(state.get("cognitive", "{}")),
            )
        except (ValueError, TypeError) as error:
            raise self._damaged(error) from error
        self._saved = state
        return stored

    def placed_messages(self) -> tuple[PlacedMessage, ...]:
        """Return the conversation with where each message was said.

        Raises:
            RecordError: as `load` does.
        """
        rows = self._db.rows("SELECT turn, round, body FROM messages ORDER BY seq")
        try:
            return tuple(PlacedMessage(turn=t, round=r, message=decode_message(body)) for t, r, body in rows)
        except ValueError as error:
            raise self._damaged(error) from error

    def save_messages(
        self, bodies: Sequence[str], progress: Progress, guards: Guards, cognitive: CognitiveState
    ) -> None:
        """Append encoded messages that leave no tool to run (a prompt, an answer, the host's words), or none."""
        self._save(bodies, progress, _state(guards, cognitive))

    def save_pending(self, body: str, calls: int, progress: Progress) -> None:
        """Append the model's message and open its batch of `calls` tool calls. No tool may run before this returned."""
        self._save((body,), progress, {}, (_OPEN_BATCH, calls))

    def save_complete(self, body: str, progress: Progress, guards: Guards, cognitive: CognitiveState) -> None:
        """Append the results of the open batch and close it, with the state of the guards after it."""
        self._save((body,), progress, _state(guards, cognitive), (_CLOSE_BATCH, 0))

    @property
    def owned(self) -> bool:
        """Whether the session is this process's: it has the checkpoint open, and nobody put another in its place."""
        return self._db.owned

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _damaged(self, error: Exception) -> RecordDamaged:
        return RecordDamaged(
            f"{self._db.path} holds a record that cannot be read ({error}); keep it, and start a new session"
        )

    def _save(
        self, bodies: Sequence[str], progress: Progress, state: Mapping[str, str], batch: tuple[str, int] | None = None
    ) -> None:
        rows = {"progress": _encode_progress(progress), **state}
        changed = {key: value for key, value in rows.items() if self._saved.get(key) != value}
        with self._db.write() as connection:
            for seq, body in enumerate(bodies, start=self._next):
                place = (progress.turn, progress.round)
                connection.execute("INSERT INTO messages VALUES (?, ?, ?, ?)", (seq, *place, body))
            for row in changed.items():
                connection.execute(_SAVE_STATE, row)
            if batch is not None:
                sql, calls = batch
                connection.execute(sql, {"round": progress.round, "calls": calls})
        # Only what became durable counts as saved.
        self._next += len(bodies)
        self._saved.update(changed)


def _state(guards: Guards, cognitive: CognitiveState) -> dict[str, str]:
    return {"guards": _ENCODER.encode(guards), "cognitive": cognitive.model_dump_json()}


def _encode_progress(progress: Progress) -> str:
    # dataclasses.asdict copies deeply and costs ten times this.
    return _ENCODER.encode({name: getattr(progress, name) for name in _PROGRESS_FIELDS})


_PROGRESS_FIELDS = tuple(spec.name for spec in fields(Progress))
