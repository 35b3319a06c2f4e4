"""Done line 7, as far as it can be counted: what a durable round stores, and that it does not grow with the history.

Times are in `benchmarks/loop.py`; a test on a shared machine cannot hold them.
"""

import sqlite3
from pathlib import Path

import pytest

from benchmarks.loop import durable_rounds

STORED_MAX = 2_048


def test_a_round_stores_at_most_two_kilobytes_and_no_more_when_the_history_is_long(tmp_path: Path) -> None:
    """Peers that rewrite the history store megabytes for the same 20 bytes of result."""
    _, short = durable_rounds(tmp_path / "short", 100)
    _, long = durable_rounds(tmp_path / "long", 400)
    assert (long - short) / 300 <= STORED_MAX
    assert long / 400 <= 1.2 * short / 100


def test_a_round_adds_its_own_rows_and_touches_no_other(tmp_path: Path) -> None:
    """Saving costs what is new: two messages, one batch, one receipt."""
    rounds = 50
    durable_rounds(tmp_path, rounds)
    with sqlite3.connect(tmp_path / "session.db") as session, sqlite3.connect(tmp_path / "effects.db") as effects:
        (messages,) = session.execute("SELECT count(*) FROM messages").fetchone()
        (batches,) = session.execute("SELECT count(*) FROM batches").fetchone()
        (receipts,) = effects.execute("SELECT count(*) FROM receipts").fetchone()
    session.close()
    effects.close()
    # The prompt, a call and its result each round, and the answers: the first, and one for each of two repairs.
    assert messages == pytest.approx(1 + 2 * rounds + 5, abs=1)
    assert (batches, receipts) == (rounds, rounds)
