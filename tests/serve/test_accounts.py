"""Which caps hold for which session, and what each says when it is met."""

from decimal import Decimal
from pathlib import Path

import pytest

from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.config.settings import BadSettings
from geode.executor.policy import Mode
from geode.llm.errors import BudgetReached
from geode.llm.usage import Usage
from geode.records.purse import Account
from geode.records.spend import Scope
from geode.serve.accounts import Accounts

MODEL = "anthropic/claude-opus-5-5"


def make_accounts(folder: Path, budget: str = "") -> Accounts:
    if budget:
        (folder / "budget.yaml").write_text(f"schema: geode.budget/1\n{budget}\n")
    return Accounts(StateRoot(folder), ManualClock())


@pytest.mark.parametrize(
    ("mode", "account", "told"),
    [
        (Mode.REPL, Account(session_usd=0.5), "--budget=0.50 .*geode sessions resume S --budget USD"),
        (Mode.REPL, Account(), "session_usd=1.00 .*raise session_usd in budget.yaml .*geode sessions resume S"),
        (Mode.EXPERIMENT, Account(command="C", command_usd=0.5), "budget.cost_usd=0.50 .*run the same command again"),
        (Mode.EXPERIMENT, Account(), "day_usd=2.00 .*wait for the next day .*run the same command again"),
    ],
)
def test_the_lowest_cap_is_met_and_says_what_to_type(tmp_path: Path, mode: Mode, account: Account, told: str) -> None:
    """An episode has its ruler's caps in place of the operator's cap on a session."""
    purse = make_accounts(tmp_path, "session_usd: 1\nday_usd: 2").purse(account, "S", mode)

    def spend() -> None:
        for _ in range(9):
            purse.settle(purse.reserve(MODEL, 0.3), Usage(cost_usd=0.3))

    with pytest.raises(BudgetReached, match=told):
        spend()
    assert purse.ledger.spent(Scope.SESSION, "S") <= min(cap.usd for cap in purse.caps)


def test_what_judges_without_a_session_is_told_of_its_option(tmp_path: Path) -> None:
    """`geode judge` has no budget.cost_usd that anybody could raise."""
    purse = make_accounts(tmp_path).purse(Account(role="judge", command="C", command_usd=0.5), "", Mode.EXPERIMENT)
    with pytest.raises(BudgetReached, match=r"^--budget=0\.50 .*this alone is above the cap: raise --budget"):
        purse.reserve(MODEL, 0.6)


def test_a_day_is_capped_over_all_sessions(tmp_path: Path) -> None:
    """Who starts a second session has no second allowance."""
    accounts = make_accounts(tmp_path, "day_usd: 1")
    first, second = (accounts.purse(Account(), name, Mode.REPL) for name in "AB")
    first.settle(first.reserve(MODEL, 0.6), Usage(cost_usd=0.6))
    with pytest.raises(BudgetReached, match=r"day_usd=1.00 US dollars: 0.60 are spent"):
        second.reserve(MODEL, 0.6)


def test_without_caps_all_is_written_and_nothing_refused(tmp_path: Path) -> None:
    """`geode costs` shows what was spent, capped or not."""
    purse = make_accounts(tmp_path).purse(Account(role="target", experiment="e"), "S", Mode.EXPERIMENT)
    purse.settle(purse.reserve(MODEL, None), Usage(cost_usd=99.0))
    (row,) = purse.ledger.all()
    assert (row.cost_usd, row.spender.experiment) == (Decimal("99.0"), "e")


def test_a_file_of_caps_that_cannot_be_used_stops_the_process_that_would_spend(tmp_path: Path) -> None:
    """Whoever wrote it thinks that it holds."""
    with pytest.raises(BadSettings, match="line 2: there is no key 'dayly_usd'"):
        make_accounts(tmp_path, "dayly_usd: 1")
