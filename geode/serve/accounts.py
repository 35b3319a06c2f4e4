"""Who pays for a session: its purse, with every cap that holds for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from geode.clock import Clock
from geode.config.budget_file import BudgetFile, read_budget
from geode.config.paths import StateRoot
from geode.executor.policy import Mode
from geode.llm.admission import JUDGE
from geode.records.database import RecordError
from geode.records.purse import Account, Cap, LedgerPurse
from geode.records.spend import Scope, Spending, SpendLedger
from geode.records.spend_rebuilt import recorded_spending

AGAIN = "run the same command again to go on with a fresh budget"


def open_ledger(root: StateRoot, clock: Clock) -> SpendLedger:
    """Return the ledger of a state root; if there is none, it is made of what the sessions have on record."""
    return SpendLedger(root.spend, clock, lambda: recorded_spending(root))


def spendings(root: StateRoot, clock: Clock) -> Sequence[Spending]:
    """Return all that was spent, for whoever only reads: where nothing ever was, no ledger is made.

    Raises:
        RecordError: if the ledger cannot be read.
    """
    if not root.spend.exists() and next(recorded_spending(root), None) is None:
        return ()
    ledger = open_ledger(root, clock)
    try:
        return tuple(ledger.all())
    finally:
        ledger.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the judge of a session has cost. `cost_usd` is None if nobody knows all of it."""

    cost_usd: float | None


@dataclass(slots=True)
class Accounts:
    """The purses of a process, over one ledger. The operator's caps are read once.

    Raises:
        BadSettings: if the file of caps cannot be used.
    """

    root: StateRoot
    clock: Clock
    ledger: SpendLedger = field(init=False)
    _file: BudgetFile = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = open_ledger(self.root, self.clock)
        self._file = read_budget(self.root.budget)

    def purse(self, account: Account, session: str, mode: Mode) -> LedgerPurse:
        """Return the purse of the session in the folder `session`."""
        caps = tuple(_caps(account, self._file, session, mode))
        return LedgerPurse(ledger=self.ledger, spender=account.spender(session), caps=caps)

    def judged(self, session: str) -> Judged | None:
        """Return what the judge of the session in the folder `session` has cost; None if none was ever asked."""
        if not self.root.spend.exists():
            return None
        try:
            spent = [row.cost_usd for row in self.ledger.all(session=session) if row.spender.role == JUDGE]
        except RecordError:
            return Judged(cost_usd=None)  # the session is over, and its answer is worth more than this figure
        finally:
            self.ledger.close()
        if not spent:
            return None
        known = [cost for cost in spent if cost is not None]
        return Judged(cost_usd=float(sum(known)) if len(known) == len(spent) else None)


def _caps(account: Account, file: BudgetFile, session: str, mode: Mode) -> Iterator[Cap]:
    if account.command_usd is not None:
        # A command that judges what has run holds no session, and takes its cap as an option.
        name = "budget.cost_usd" if session else "--budget"
        yield Cap(
            scope=Scope.COMMAND,
            usd=_money(account.command_usd),
            name=name,
            advice=f"{AGAIN}, or raise {name}",
            raising=f"raise {name}",
        )
    go_on = f"geode sessions resume {session}"
    if account.session_usd is not None:
        advice = f"go on with more: {go_on} --budget USD (what the session may spend in all)"
        usd = _money(account.session_usd)
        yield Cap(scope=Scope.SESSION, usd=usd, name="--budget", advice=advice, raising=advice)
    # An episode has the limits of its scaffold and its ruler: the operator's file is no part of what is measured.
    if file.session_usd is not None and mode is not Mode.EXPERIMENT:
        advice = f"raise session_usd in budget.yaml under the state root, then: {go_on}"
        usd = _money(file.session_usd)
        yield Cap(scope=Scope.SESSION, usd=usd, name="session_usd", advice=advice, raising=advice)
    if file.day_usd is not None:
        go_on = "run the same command again" if mode is Mode.EXPERIMENT else go_on
        raising = "raise day_usd in budget.yaml under the state root"
        advice = f"{raising}, or wait for the next day (UTC), then: {go_on}"
        yield Cap(scope=Scope.DAY, usd=_money(file.day_usd), name="day_usd", advice=advice, raising=raising)


def _money(usd: float) -> Decimal:
    return Decimal(repr(usd))
