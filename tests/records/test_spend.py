"""The ledger of spending: nothing of what may have been billed is lost, and nothing is counted twice."""

import multiprocessing
import os
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geode.clock import ManualClock, SystemClock
from geode.llm.usage import CostOrigin, Usage
from geode.records.database import RecordDamaged, RecordError, RecordLocked, RecordNewer
from geode.records.spend import Scope, Spender, Spending, SpendLedger

MODEL = "anthropic/claude-opus-5-5"
ME = Spender(session="S", experiment="e", episode_key="k", command="C")
CENT = Decimal("0.01")


def costing(usd: float | None) -> Usage:
    return Usage(uncached_input_tokens=10, output_tokens=2, cost_usd=usd, cost_origin=CostOrigin.COMPUTED)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SpendLedger]:
    made = SpendLedger(tmp_path / "spend.db", ManualClock())
    yield made
    made.close()


def test_a_request_counts_as_its_most_until_it_is_settled(ledger: SpendLedger) -> None:
    """Else two requests side by side would both find the money that one of them is about to spend."""
    entry = ledger.reserve(ME, MODEL, CENT)
    assert ledger.spent(Scope.COMMAND, "C") == CENT
    ledger.settle(entry, costing(0.004))
    assert ledger.spent(Scope.COMMAND, "C") == Decimal("0.004")
    assert ledger.spent(Scope.SESSION, "S") == ledger.spent(Scope.DAY, "2030-01-01") == Decimal("0.004")


@pytest.mark.parametrize("usage", [None, costing(None)])
def test_what_nobody_knows_counts_as_the_most(ledger: SpendLedger, usage: Usage | None) -> None:
    """A cost that was not said is no zero."""
    ledger.settle(ledger.reserve(ME, MODEL, CENT), usage)
    (row,) = ledger.all()
    assert (row.cost_usd, row.counted_usd, row.ended) == (None, CENT, True)
    assert ledger.spent(Scope.COMMAND, "C") == CENT


def test_a_request_is_settled_once(ledger: SpendLedger) -> None:
    """A second word about it, after a cancellation for instance, changes nothing."""
    entry = ledger.reserve(ME, MODEL, CENT)
    ledger.settle(entry, costing(0.002))
    ledger.settle(entry, None)
    assert ledger.spent(Scope.COMMAND, "C") == Decimal("0.002")


def test_a_row_holds_who_spent_on_what(ledger: SpendLedger) -> None:
    """Spend is shown by role, model, experiment, session and day out of these rows alone."""
    ledger.settle(ledger.reserve(ME, MODEL, CENT), costing(0.004))
    (row,) = ledger.all()
    assert (row.spender, row.model, row.most_usd) == (ME, MODEL, CENT)
    assert row.usage == costing(0.004)
    assert list(ledger.all("2030-01-02")) == []


def test_prices_of_three_decimals_are_exact_for_a_single_token(ledger: SpendLedger) -> None:
    """Jev costs 0.042 US dollars a million tokens; micro-dollars would make nothing of one of them."""
    for _ in range(3):
        ledger.settle(ledger.reserve(ME, MODEL, CENT), costing(0.042 / 1_000_000))
    assert ledger.spent(Scope.SESSION, "S") == Decimal("0.000000126")


def test_a_request_whose_process_died_is_unknown_and_still_counted(tmp_path: Path) -> None:
    """It may have been billed, and nobody will ever say for how much."""
    path, clock = tmp_path / "spend.db", SystemClock()
    child = multiprocessing.get_context("spawn").Process(target=die_over_a_request, args=(path,))
    child.start()
    child.join()
    ledger = SpendLedger(path, clock)
    (row,) = ledger.all()
    assert not row.open_at(clock.now())
    assert (row.ended, row.counted_usd) == (False, CENT)
    mine = ledger.reserve(ME, MODEL, CENT)
    assert [row.open_at(clock.now()) for row in ledger.all()] == [False, True]
    assert not list(ledger.all())[mine - 1].open_at(clock.now() + timedelta(hours=2)), "no request lasts so long"


def die_over_a_request(path: Path) -> None:
    SpendLedger(path, SystemClock()).reserve(ME, MODEL, CENT)
    os._exit(9)


def spend_many(path: Path, command: str) -> None:
    ledger = SpendLedger(path, SystemClock(), busy_timeout_s=60.0)
    for _ in range(50):
        ledger.settle(ledger.reserve(Spender(session=command, command="all"), MODEL, CENT), costing(0.001))
    ledger.close()


def test_processes_share_the_ledger(tmp_path: Path) -> None:
    """Workers of a sweep spend from one budget; the file is made by whoever comes first."""
    path, context = tmp_path / "spend.db", multiprocessing.get_context("spawn")
    children = [context.Process(target=spend_many, args=(path, f"s{number}")) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    ledger = SpendLedger(path, SystemClock())
    assert [child.exitcode for child in children] == [0, 0, 0, 0]
    assert ledger.spent(Scope.COMMAND, "all") == Decimal("0.2")
    assert len(list(ledger.all())) == 200


def test_a_ledger_that_is_held_too_long_says_so(ledger: SpendLedger) -> None:
    """A request is not kept waiting for a process that hangs."""
    ledger.reserve(ME, MODEL, CENT)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    ledger.close()
    impatient = SpendLedger(ledger.path, ManualClock(), busy_timeout_s=0.02)
    with pytest.raises(RecordLocked, match="held by another process"):
        impatient.reserve(ME, MODEL, CENT)
    other.execute("ROLLBACK")
    other.close()
    assert impatient.reserve(ME, MODEL, CENT) == 2


@pytest.mark.parametrize("content", [b"no database at all, and longer than a header" * 9, None])
def test_a_ledger_that_cannot_be_used_is_named_with_what_to_do(tmp_path: Path, content: bytes | None) -> None:
    """Nothing is written over what may be mended."""
    path = tmp_path / "spend.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    kind, text = (RecordError, "check the disk") if content is None else (RecordDamaged, "move it away")
    with pytest.raises(kind, match=text):
        SpendLedger(path, ManualClock()).reserve(ME, MODEL, CENT)
    assert content is None or path.read_bytes() == content


def test_a_newer_ledger_is_refused(ledger: SpendLedger) -> None:
    """Its rows may mean what nobody here knows."""
    ledger.reserve(ME, MODEL, CENT)
    ledger.close()
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("PRAGMA user_version=2")
    connection.close()
    with pytest.raises(RecordNewer, match="upgrade"):
        ledger.reserve(ME, MODEL, CENT)


def test_a_new_ledger_begins_with_what_the_records_know(tmp_path: Path) -> None:
    """Else deleting it would give back the money of the day."""
    clock = ManualClock()
    known = Spending(at=clock.now(), spender=ME, model=MODEL, usage=costing(0.5))
    ledger = SpendLedger(tmp_path / "spend.db", clock, lambda: (known,))
    assert ledger.spent(Scope.DAY, "2030-01-01") == Decimal("0.5")
    ledger.close()
    assert ledger.spent(Scope.DAY, "2030-01-01") == Decimal("0.5"), "once, not at each opening"


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.decimals(0, 2, places=6),
            st.one_of(st.none(), st.floats(0, 2).map(lambda usd: round(usd, 6))),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_totals_are_the_sum_of_what_the_rows_count(
    tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[Decimal, float | None, bool]]
) -> None:
    """Caps are held by the totals, which are kept apart from the rows so that a request need not add them all up."""
    ledger = SpendLedger(tmp_path_factory.mktemp("ledger") / "spend.db", ManualClock())
    for most, cost, ends in requests:
        entry = ledger.reserve(ME, MODEL, most)
        if ends:
            ledger.settle(entry, costing(cost))
    assert ledger.spent(Scope.SESSION, "S") == sum((row.counted_usd for row in ledger.all()), Decimal(0))
    ledger.close()
