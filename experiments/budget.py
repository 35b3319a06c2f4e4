"""What one command may spend at the most. An episode starts only if its worst case still fits, so no cap is passed.

The caps hold for one command: what earlier commands spent, or another one beside it, is not counted. Calls are those of
the loop, one a round; a route that sends a request twice counts once. Money is what the records say, nominal prices of
simulated models included. An episode can pass its own limit on cost by no more than its adapter misjudges one call
(`geode.llm.messages.BoundsCost`); behind a model without known prices money cannot be held, and the run stops after it.
"""

from dataclasses import dataclass, field
from decimal import Decimal

from experiments.episode import EpisodeRecord
from experiments.plan import EpisodeSpec
from experiments.run_spec import BudgetChoice
from geode.clock import Clock

_FREE = ("simulated/", "recorded/")  # routes whose calls are billed to nobody, so that a cost of 0 is a known one


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Money and model calls. Money is decimal: ten times 0.1 is 1."""

    cost_usd: Decimal = Decimal(0)
    calls: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(cost_usd=self.cost_usd + other.cost_usd, calls=self.calls + other.calls)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(cost_usd=self.cost_usd - other.cost_usd, calls=self.calls - other.calls)


@dataclass(slots=True)
class Budget:
    """The account of one command. Its time runs from when it is made. Not for several threads.

    Ask `admit` before an episode starts, and tell `settle` how it ended. Episodes that run side by side count together:
    each holds back its worst case until it is settled. So a refusal may pass: while `worth_waiting` says so, wait until
    another episode is settled, and ask again.
    """

    choice: BudgetChoice
    clock: Clock
    spent: Amount = field(default=Amount(), init=False)
    deadline_s: float | None = field(default=None, init=False)
    """When everything ends, in the clock's `monotonic_s`; None is never. Running episodes are cancelled then."""
    _held: dict[str, Amount] = field(default_factory=dict, init=False)
    _unpriced: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if self.choice.seconds is not None:
            self.deadline_s = self.clock.monotonic_s() + self.choice.seconds

    @property
    def reserved(self) -> Amount:
        """What the running episodes hold back."""
        return sum(self._held.values(), Amount())

    @property
    def out_of_time(self) -> str:
        """What is to be said when the deadline is reached."""
        return f"budget.seconds={self.choice.seconds or 0:g} are over; {_AGAIN}, or raise budget.seconds"

    def admit(self, spec: EpisodeSpec) -> str | None:
        """Hold back the worst case of an episode, which may then start; or say why it may not, and what to do."""
        worst = worst_case(spec)
        if refusal := self._refusal(self.spent + self.reserved, worst):
            return refusal
        self._held[spec.episode_key] = worst
        return None

    def worth_waiting(self, spec: EpisodeSpec) -> bool:
        """Whether running episodes hold back what a refused one needs: it may be admitted once they are settled."""
        return not self._refusal(self.spent, worst_case(spec))

    def settle(self, episode_key: str, record: EpisodeRecord | None) -> None:
        """Count what an admitted episode spent. None: it is lost; its worst case stays spent, for nobody knows."""
        held = self._held.pop(episode_key)
        self.spent += held if record is None else self._spent_by(record, held)

    def release(self, episode_key: str) -> None:
        """Give back what an admitted episode holds: it did not start, for instance because another command ran it."""
        del self._held[episode_key]

    def _spent_by(self, record: EpisodeRecord, held: Amount) -> Amount:
        if not record.session_id:
            return Amount()  # no session was opened, so nothing was asked of a model
        if not record.usage:
            return held  # the session broke, and what it had used went with it
        answered = sum(usage.calls for usage in record.usage.values())
        calls = max(record.rounds, answered)
        if unpriced := unpriced_models(record):
            self._unpriced = unpriced[0]
        if unpriced or calls > answered:
            # A call without an answer may be billed all the same.
            return Amount(cost_usd=max(held.cost_usd, _money(record.cost_usd)), calls=calls)
        return Amount(cost_usd=_money(record.cost_usd), calls=calls)

    def _refusal(self, taken: Amount, worst: Amount) -> str | None:
        choice = self.choice
        if self.deadline_s is not None and self.clock.monotonic_s() >= self.deadline_s:
            return self.out_of_time
        if choice.calls is not None and taken.calls + worst.calls > choice.calls:
            return (
                f"budget.calls={choice.calls}: {taken.calls} model calls are spent or held back by running episodes,"
                f" and the next one may need {worst.calls} more; {_AGAIN}, or raise budget.calls"
            )
        if choice.cost_usd is None:
            return None
        if self._unpriced:
            return (
                f"budget.cost_usd={choice.cost_usd:g} cannot be held: no price is known for {self._unpriced!r}, so"
                " nobody knows what its episodes cost; cap budget.calls instead"
            )
        if taken.cost_usd + worst.cost_usd > _money(choice.cost_usd):
            return (
                f"budget.cost_usd={choice.cost_usd:g}: {taken.cost_usd:.4g} US dollars are spent or held back by"
                f" running episodes, and the next one may cost {worst.cost_usd:g} more; {_AGAIN}, or raise"
                " budget.cost_usd"
            )
        return None


_AGAIN = "run the same command again to go on with a fresh budget"


def worst_case(spec: EpisodeSpec) -> Amount:
    """Return the most that an episode can use: its scaffold's limits or the ruler's caps, whichever are lower.

    A round is one model call. The completion check asks no model in an episode, and a repair or a continuation is
    another round.
    """
    limits, caps = spec.scaffold.limits, spec.caps
    return Amount(cost_usd=_money(min(limits.cost_usd, caps.cost_usd)), calls=min(limits.rounds, caps.rounds))


def too_small(choice: BudgetChoice, spec: EpisodeSpec) -> str | None:
    """Say why an episode can never start under this budget, and what to change; None if it can."""
    worst = worst_case(spec)
    if choice.calls is not None and worst.calls > choice.calls:
        return _cannot_start("calls", choice.calls, f"{worst.calls} model calls", worst.calls, "rounds")
    if choice.cost_usd is not None and worst.cost_usd > _money(choice.cost_usd):
        return _cannot_start("cost_usd", choice.cost_usd, f"{worst.cost_usd:f} US dollars", worst.cost_usd, "cost_usd")
    return None


def _cannot_start(key: str, cap: float, worst: str, needed: int | Decimal, limit: str) -> str:
    return (
        f"budget.{key}={cap:g}: one episode alone may need {worst}, so it could pass this cap. Raise budget.{key} to"
        f" {needed:g} or more; or lower what an episode may use: limits.{limit} (that is another scaffold) or"
        f" caps.{limit} (that is another ruler)"
    )


def unpriced_models(record: EpisodeRecord) -> tuple[str, ...]:
    """Return the models of an episode that used tokens at a cost of 0 and are not free: their price is not known."""
    return tuple(
        record.roles.get(role, role)
        for role, usage in record.usage.items()
        if usage.calls and not usage.cost_usd and not record.roles.get(role, role).startswith(_FREE)
    )


def _money(cost_usd: float) -> Decimal:
    return Decimal(repr(cost_usd))
