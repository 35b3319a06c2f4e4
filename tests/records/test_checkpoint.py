"""Facts of `geode.records.checkpoint`: what was acknowledged reads back, what failed is not there, and a save costs
what is new.
"""

import dataclasses
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, ToolUse, encode_message
from geode.llm.usage import Usage
from geode.records.checkpoint import Progress, SessionCheckpoint, StoredSession
from geode.records.cognitive import CognitiveState, PlanStep
from geode.records.database import RecordDamaged, RecordError, RecordNewer
from tests.doubles.effects import fill_up

PROMPT = Message(role=Speaker.USER, blocks=(TextBlock(text="go", origin=Origin.USER),))
CALL = Message(role=Speaker.ASSISTANT, blocks=(ToolUse(call_id="c1", name="t", arguments="{}"),))
RESULT = Message(role=Speaker.USER, blocks=(ToolResult(call_id="c1", text="r"),))
NO_STATE = CognitiveState()


def open_(path: Path, session: str = "S1") -> SessionCheckpoint:
    checkpoint = SessionCheckpoint.open(path / "session.db", session)
    checkpoint.load()
    return checkpoint


def reopened(path: Path) -> StoredSession:
    checkpoint = SessionCheckpoint.open(path / "session.db", "S1")
    stored = checkpoint.load()
    checkpoint.close()
    return stored


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[SessionCheckpoint]:
    opened = open_(tmp_path)
    yield opened
    opened.close()


def test_a_new_session_is_empty(checkpoint: SessionCheckpoint) -> None:
    assert checkpoint.load() == StoredSession()


def test_everything_that_was_saved_reads_back(tmp_path: Path) -> None:
    checkpoint = open_(tmp_path)
    cognitive = CognitiveState(goal="go", plan=(PlanStep(text="one"),))
    checkpoint.save_messages([encode_message(PROMPT)], Progress(turn=1, in_turn=True), {"hook": 1}, cognitive)
    checkpoint.save_pending(encode_message(CALL), 1, Progress(turn=1, round=1, in_turn=True))
    checkpoint.save_complete(encode_message(RESULT), Progress(turn=1, round=1, tool_calls=1), {"hook": [2]}, cognitive)
    checkpoint.save_messages([], Progress(turn=1, round=2, repairs_used=1), {"hook": [3]}, cognitive)
    checkpoint.close()
    assert reopened(tmp_path) == StoredSession(
        messages=(PROMPT, CALL, RESULT),
        progress=Progress(turn=1, round=2, repairs_used=1),
        guards={"hook": [3]},
        cognitive=cognitive,
    )


def test_a_guard_that_forgot_everything_gets_nothing_back(tmp_path: Path) -> None:
    """An old memory in place of none would be a guard that remembers what it never saw."""
    checkpoint = open_(tmp_path)
    checkpoint.save_messages([], Progress(), {"hook": 1}, NO_STATE)
    checkpoint.save_messages([], Progress(), {}, NO_STATE)
    checkpoint.close()
    assert reopened(tmp_path).guards == {}


def test_several_messages_become_durable_together(tmp_path: Path) -> None:
    """A cut answer without the words that say so would be taken for a whole one after a restart."""
    checkpoint = open_(tmp_path)
    checkpoint.save_messages([encode_message(PROMPT)], Progress(turn=1), {}, NO_STATE)
    checkpoint._db._connection.execute(
        "CREATE TRIGGER full BEFORE INSERT ON messages WHEN NEW.seq = 3 BEGIN SELECT RAISE(ABORT, 'no room'); END"
    )
    with pytest.raises(RecordError, match="no room"):
        checkpoint.save_messages([encode_message(CALL), encode_message(RESULT)], Progress(turn=2), {}, NO_STATE)
    checkpoint.close()
    assert reopened(tmp_path) == StoredSession(messages=(PROMPT,), progress=Progress(turn=1))


@pytest.mark.parametrize("save", ["messages", "pending", "complete"])
def test_what_could_not_be_saved_is_not_taken_for_saved(tmp_path: Path, save: str) -> None:
    """A failed save must neither leave a part, nor make the next one skip what it believes is stored, nor shift it."""
    checkpoint = open_(tmp_path)
    checkpoint.save_messages([encode_message(PROMPT)], Progress(turn=1), {"h": 1}, NO_STATE)
    big = encode_message(Message(role=Speaker.USER, blocks=(TextBlock(text="x" * 200_000),)))
    later = Progress(turn=1, round=9, repairs_used=2)
    fill_up(checkpoint._db._connection)
    attempts: dict[str, Callable[[], None]] = {
        "messages": lambda: checkpoint.save_messages([big], later, {"h": 2}, CognitiveState(goal="g")),
        "pending": lambda: checkpoint.save_pending(big, 1, later),
        "complete": lambda: checkpoint.save_complete(big, later, {"h": 2}, CognitiveState(goal="g")),
    }
    with pytest.raises(RecordError, match="full"):
        attempts[save]()
    checkpoint._db._connection.execute("PRAGMA max_page_count=100000")
    checkpoint.save_messages([encode_message(CALL)], later, {"h": 2}, CognitiveState(goal="g"))
    checkpoint.close()
    assert reopened(tmp_path) == StoredSession(
        messages=(PROMPT, CALL), progress=later, guards={"h": 2}, cognitive=CognitiveState(goal="g")
    )


def test_a_round_is_pending_once(checkpoint: SessionCheckpoint) -> None:
    checkpoint.save_pending(encode_message(CALL), 1, Progress(round=1))
    with pytest.raises(RecordError, match="UNIQUE"):
        checkpoint.save_pending(encode_message(CALL), 1, Progress(round=1))


def test_a_save_costs_what_is_new(tmp_path: Path) -> None:
    """Contract 6: a round appends its own messages and never rewrites the history. Counted in rows and bytes."""
    checkpoint = open_(tmp_path)
    connection, log = checkpoint._db._connection, tmp_path / "session.db-wal"
    connection.execute("PRAGMA wal_autocheckpoint=0")
    rows, written = [], []
    for round_ in range(1, 1_001):
        before = (connection.total_changes, log.stat().st_size)
        progress = Progress(turn=1, round=round_, in_turn=True)
        checkpoint.save_pending(encode_message(CALL), 1, progress)
        checkpoint.save_complete(encode_message(RESULT), progress, {"hook": round_}, NO_STATE)
        rows.append(connection.total_changes - before[0])
        written.append(log.stat().st_size - before[1])
    checkpoint.close()
    # Two messages, one batch opened and closed, counters once (they did not change in between), one guard memory.
    assert rows[10:] == [6] * 990
    frame = 4096 + 24
    assert max(written[900:]) <= max(written[10:100]) + frame
    assert sum(written[900:]) <= 1.05 * sum(written[10:110])


def test_state_that_did_not_change_is_not_written(checkpoint: SessionCheckpoint) -> None:
    cognitive = CognitiveState(goal="g" * 2_000)
    checkpoint.save_messages([], Progress(turn=1), {"h": [1] * 500}, cognitive)
    before = checkpoint._db._connection.total_changes
    checkpoint.save_messages([encode_message(PROMPT)], Progress(turn=1), {"h": [1] * 500}, cognitive)
    assert checkpoint._db._connection.total_changes - before == 1


def test_a_reopened_session_does_not_write_again_what_it_holds(tmp_path: Path) -> None:
    first = open_(tmp_path)
    first.save_messages([encode_message(PROMPT)], Progress(turn=1), {"h": 1}, NO_STATE)
    first.close()
    again = open_(tmp_path)
    before = again._db._connection.total_changes
    again.save_messages([encode_message(CALL)], Progress(turn=1), {"h": 1}, NO_STATE)
    assert again._db._connection.total_changes - before == 1
    again.close()
    assert reopened(tmp_path).messages == (PROMPT, CALL)


def alter(path: Path, sql: str) -> None:
    with sqlite3.connect(path / "session.db") as raw:
        raw.execute(sql)
    raw.close()


def test_the_file_of_another_session_is_refused(tmp_path: Path) -> None:
    open_(tmp_path).close()
    with pytest.raises(RecordError, match="belongs to session S1, not to S2"):
        open_(tmp_path, "S2")
    open_(tmp_path).close()


def test_a_newer_session_is_refused(tmp_path: Path) -> None:
    open_(tmp_path).close()
    alter(tmp_path, "UPDATE meta SET value = 'geode.session/2' WHERE key = 'schema'")
    with pytest.raises(RecordNewer, match=r"'geode\.session/2', this version reads 'geode\.session/1'; upgrade GEODE"):
        open_(tmp_path)


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE messages SET body = 'junk'",
        'UPDATE messages SET body = \'{"role":"system","blocks":[]}\'',
        "UPDATE state SET value = '{\"mood\":1}' WHERE key = 'progress'",
        "UPDATE state SET value = '[' WHERE key = 'guards'",
        "UPDATE state SET value = '{\"goal\":1}' WHERE key = 'cognitive'",
    ],
)
def test_a_record_that_no_version_wrote_is_told_as_damage(tmp_path: Path, harm: str) -> None:
    """R25: the file is sound for SQLite, and still nothing that a session may go on from."""
    checkpoint = open_(tmp_path)
    checkpoint.save_messages([encode_message(PROMPT)], Progress(), {"h": 1}, CognitiveState(goal="g"))
    checkpoint.close()
    alter(tmp_path, harm)
    again = SessionCheckpoint.open(tmp_path / "session.db", "S1")
    with pytest.raises(RecordDamaged, match=r"(?s)session\.db holds a record that cannot be read .*keep it"):
        again.load()
    again.close()


# Progress

COUNTS = st.integers(0, 10**9)


def test_a_new_prompt_has_new_budgets_and_old_round_numbers() -> None:
    """R41: repairs are per prompt. Rounds count on, because a round's number names its receipts."""
    everything = {
        field.name: True if field.type in ("bool", bool) else 7.0 if field.type in ("float", float) else 7
        for field in dataclasses.fields(Progress)
    }
    progress = Progress(**everything)  # type: ignore[arg-type]
    progress.begin_turn()
    kept = {"turn": 8, "round": 7, "turn_first_round": 8, "elided_messages": 7}
    assert progress == Progress(**kept)  # type: ignore[arg-type]
    assert progress.rounds == 0


@given(st.lists(st.builds(Usage, uncached_input_tokens=COUNTS, cache_read_tokens=COUNTS, output_tokens=COUNTS)))
def test_usage_adds_up_by_class(usages: list[Usage]) -> None:
    progress = Progress()
    for usage in usages:
        progress.count(usage)
    assert progress.tokens == sum(usage.total_tokens for usage in usages)
    assert progress.cache_read_tokens == sum(usage.cache_read_tokens for usage in usages)
