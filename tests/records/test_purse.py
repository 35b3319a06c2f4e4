"""A purse: no call that could pass a cap is sent, and the refusal says what to do."""

from decimal import Decimal
from pathlib import Path

import pytest

from geode.clock import ManualClock
from geode.llm.errors import BudgetReached
from geode.llm.spending import Purse
from geode.llm.usage import CostOrigin, Usage
from geode.records.purse import Cap, LedgerPurse
from geode.records.spend import Scope, Spender, SpendLedger

MODEL = "anthropic/claude-opus-5-5"
COMMAND = Cap(
    scope=Scope.COMMAND, usd=Decimal("0.01"), name="budget.cost_usd", advice="run it again", raising="raise the cap"
)


def spent(usd: float) -> Usage:
    return Usage(uncached_input_tokens=1, output_tokens=1, cost_usd=usd, cost_origin=CostOrigin.COMPUTED)


def make_purse(path: Path, *caps: Cap, session: str = "S", notes: list[str] | None = None) -> LedgerPurse:
    written = [] if notes is None else notes
    return LedgerPurse(
        ledger=SpendLedger(path, ManualClock()),
        spender=Spender(session=session, command="C"),
        caps=caps,
        note=lambda about, text: written.append(f"{about}: {text}"),
    )


def test_a_call_that_could_pass_the_cap_is_refused_with_the_figures(tmp_path: Path) -> None:
    """The text is all that a person sees of it: the cap, what is spent, what the call may cost, and what to type."""
    purse: Purse = make_purse(tmp_path / "spend.db", COMMAND)
    purse.settle(purse.reserve(MODEL, 0.006), spent(0.004))
    with pytest.raises(BudgetReached) as refused:
        purse.reserve(MODEL, 0.0061)
    assert str(refused.value) == (
        "budget.cost_usd=0.01 US dollars: 0.004 are spent or held by calls under way, and the next call of"
        " anthropic/claude-opus-5-5 may cost 0.0061; run it again"
    )
    purse.reserve(MODEL, 0.006)  # to the cap, and not past it


def test_a_call_that_is_above_the_cap_alone_is_not_waited_for(tmp_path: Path) -> None:
    """Running the same command again would refuse it again, for ever."""
    with pytest.raises(BudgetReached, match=r"0\.0101; this alone is above the cap: raise the cap, or set max_"):
        make_purse(tmp_path / "spend.db", COMMAND).reserve(MODEL, 0.0101)


def test_a_decision_model_is_not_told_to_write_less(tmp_path: Path) -> None:
    """It writes no text: there is no such setting of it."""
    with pytest.raises(BudgetReached, match=r"this alone is above the cap: raise the cap$"):
        make_purse(tmp_path / "spend.db", COMMAND).reserve("typesafe/jev-1.13.0", 0.0101)


def test_a_name_that_is_no_models_is_refused_like_any_other(tmp_path: Path) -> None:
    """Whoever asks is told of the cap, and of nothing else."""
    with pytest.raises(BudgetReached, match="this alone is above the cap"):
        make_purse(tmp_path / "spend.db", COMMAND).reserve("nobody", 0.0101)


def test_purses_of_one_command_share_its_money(tmp_path: Path) -> None:
    """Episodes that run side by side, in whatever process, have one budget; each holds what it may spend."""
    first, second = (make_purse(tmp_path / "spend.db", COMMAND, session=name) for name in "AB")
    held = first.reserve(MODEL, 0.006)
    with pytest.raises(BudgetReached, match="0\\.006 are spent or held"):
        second.reserve(MODEL, 0.006)
    first.settle(held, spent(0.001))
    second.reserve(MODEL, 0.006)


def test_a_model_without_a_price_is_refused_under_a_cap(tmp_path: Path) -> None:
    """Nobody could say whether the cap holds."""
    with pytest.raises(BudgetReached, match="no price is known for 'openrouter/some/model'"):
        make_purse(tmp_path / "spend.db", COMMAND).reserve("openrouter/some/model", None)
    uncapped = make_purse(tmp_path / "spend.db")
    uncapped.settle(uncapped.reserve("openrouter/some/model", None), spent(0.1))
    (row,) = uncapped.ledger.all()
    assert row.counted_usd == Decimal("0.1")


def test_a_ledger_that_cannot_be_written_stops_a_call_only_under_a_cap(tmp_path: Path) -> None:
    """With a cap nobody could say whether it holds; without one a call is worth more than a line about it."""
    (tmp_path / "spend.db").write_bytes(b"no database, and longer than the header of one" * 20)
    with pytest.raises(BudgetReached, match=r"the ledger of spending cannot be written: .*move it away"):
        make_purse(tmp_path / "spend.db", COMMAND).reserve(MODEL, 0.001)
    notes: list[str] = []
    uncapped = make_purse(tmp_path / "spend.db", notes=notes)
    for _ in range(2):
        uncapped.settle(uncapped.reserve(MODEL, 0.001), spent(0.001))
    assert len(notes) == 1
    assert notes[0].startswith("spending: what this session spends is not in the ledger: ")
