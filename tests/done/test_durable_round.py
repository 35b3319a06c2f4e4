"""Done line 5, as far as it can be counted: what a durable round stores and does, and that history makes neither grow.

Times are in `benchmarks/loop.py`; a test on a shared machine cannot hold them. What a round does is counted in calls of
functions.
"""

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from benchmarks.loop import GROWTH_MAX, at_both_ends, durable_rounds, guarded_rounds
from geode.records.database import Durability

STORED_MAX = 2_048
AUTHORITY_MAX = 2.5
"""What rules, approvals, a secret and three more hooks may cost, in rounds that have none of them."""


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


@pytest.fixture
def functions_called() -> Iterator[Callable[[], float]]:
    """How many functions this thread has called so far."""
    calls = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        del frame, argument
        calls += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(counted)
    yield lambda: calls
    sys.setprofile(before)


def test_a_round_under_the_whole_chain_of_authority_does_no_more_when_the_history_is_long(
    tmp_path: Path, functions_called: Callable[[], float]
) -> None:
    """Whatever looks through the history, the receipts or the stored approvals each round would show here."""
    rounds = 300
    guarded, patron = guarded_rounds(tmp_path / "guarded", rounds, Durability.PROCESS, functions_called)
    early, late = at_both_ends([guarded])
    assert late <= GROWTH_MAX * early
    plain, _ = durable_rounds(tmp_path / "plain", rounds, functions_called)
    assert late <= AUTHORITY_MAX * at_both_ends([plain])[1]
    assert patron.asked == 1


def test_every_round_of_the_measured_session_passed_what_it_is_said_to_pass(tmp_path: Path) -> None:
    """A chain that is not there costs nothing."""
    guarded_rounds(tmp_path, 20, Durability.PROCESS)
    timeline = tmp_path / "root" / "sessions" / "bench" / "timeline.jsonl"
    events = [json.loads(line) for line in timeline.read_text().splitlines()[1:]]
    ended = Counter((event["tool"], event["end"], event["rule"]) for event in events if event["kind"] == "call_ended")
    assert ended == {
        ("add", "succeeded", "policy.yaml, rules.1: allow add path 'sums/**'"): 10,
        ("book", "succeeded", "policy.yaml, rules.2: ask book path 'ledger/**'"): 10,
    }
    answers = [event["answer"] for event in events if event["kind"] == "approval_decided"]
    assert answers == ["session", *["stored"] * 9]
