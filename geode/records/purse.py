"""Whoever holds the money of a session: asks the ledger before each request, and keeps every cap that holds for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from pydantic import BaseModel, ConfigDict

from geode.config.budget_file import Usd
from geode.llm.catalog import is_decision_only
from geode.llm.errors import BudgetReached, ConfigurationError
from geode.llm.routes import parse_model
from geode.llm.spending import Reservation
from geode.llm.usage import Usage
from geode.records.database import RecordError
from geode.records.spend import Scope, Spender, SpendLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The most that may be spent in a scope. `name` is how it was set.

    `advice` says how to go on when it is met, `raising` how to raise it: nothing else helps where one call alone is
    above it.
    """

    scope: Scope
    usd: Decimal
    name: str
    advice: str
    raising: str


class Account(BaseModel):
    """On whose account a session spends, and its own caps. It is stored with the session, which keeps it for ever.

    `session_usd` is the most that the session may spend, `command_usd` what the command `command` may.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    role: str = "target"
    experiment: str = ""
    episode_key: str = ""
    command: str = ""
    session_usd: Usd | None = None
    command_usd: Usd | None = None

    def spender(self, session: str) -> Spender:
        """Return who spends in the session whose folder is named `session`."""
        return Spender(session=session, **self.model_dump(exclude={"session_usd", "command_usd"}))


def _nobody(about: str, text: str) -> None:
    del about, text


@dataclass(slots=True, kw_only=True)
class LedgerPurse:
    """A `geode.llm.spending.Purse` over the ledger, for one spender.

    Without caps a ledger that cannot be written stops nothing: it is told to `note` once, and the request is sent.
    With one it stops the request, because nobody can say whether the cap holds. A request whose end cannot be written
    stays counted as its most.
    """

    ledger: SpendLedger
    spender: Spender
    caps: tuple[Cap, ...] = ()
    note: Callable[[str, str], None] = field(default=_nobody)
    _noted: bool = field(default=False, init=False)

    def reserve(self, model: str, most_usd: float | None) -> Reservation:
        """See `Purse.reserve`."""
        most = None if most_usd is None else Decimal(repr(most_usd))
        if most is None and self.caps:
            raise BudgetReached(
                f"{self.caps[0].name} cannot be held: no price is known for {model!r}, so nobody knows what a call of"
                f" it may cost; choose a model with a price, or lift this cap ({self.caps[0].advice})"
            )

        def allowed(spent: dict[Scope, Decimal]) -> None:
            for cap in self.caps:
                taken = spent.get(cap.scope, Decimal(0))
                if taken + (most or Decimal(0)) > cap.usd:
                    raise BudgetReached(_refusal(cap, taken, model, most or Decimal(0)))

        entry = 0
        try:
            entry = self.ledger.reserve(self.spender, model, most, allowed if self.caps else None)
        except RecordError as problem:
            if self.caps:
                raise BudgetReached(
                    f"{self.caps[0].name} cannot be held, since the ledger of spending cannot be written: {problem}"
                ) from problem
            self._tell(problem)
        return Reservation(model=model, most_usd=most_usd, entry=entry)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """See `Purse.settle`."""
        if not reservation.entry:
            return
        try:
            self.ledger.settle(reservation.entry, usage)
        except RecordError as problem:
            self._tell(problem)

    def _tell(self, problem: RecordError) -> None:
        if not self._noted:
            self._noted = True
            self.note("spending", f"what this session spends is not in the ledger: {problem}")


def _refusal(cap: Cap, taken: Decimal, model: str, most: Decimal) -> str:
    advice = f"this alone is above the cap: {cap.raising}{', or set max_output_tokens lower' * _writes(model)}"
    return (
        f"{cap.name}={_shown(cap.usd)} US dollars: {_shown(taken)} are spent or held by calls under way, and the next"
        f" call of {model} may cost {_shown(most)}; {advice if most > cap.usd else cap.advice}"
    )


def _writes(model: str) -> bool:
    """Whether how much a model writes can be set. A refusal must not fail over a name that is no model's."""
    try:
        return not is_decision_only(parse_model(model))
    except ConfigurationError:
        return True


def _shown(usd: Decimal) -> str:
    """Show money to a hundredth of a cent at least, and no digit that says nothing."""
    text = f"{usd:.6f}".rstrip("0")
    return f"{text}00"[: max(len(text), text.index(".") + 3)]
