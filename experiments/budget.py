"""What one command may spend at the most, so that no cap is passed.

Calls, and the money of models that nobody bills, are held by the episode: one starts only if its worst case still fits.
The money of billed models is held by the call (`geode.records.purse`): an episode starts while any is left, and a call
that could pass the cap is not sent. The episode that meets it so is no outcome: it is set aside, and run afresh by the
next command.

How far money is held by the episode depends on the adapter. One that bounds each call beforehand
(`geode.llm.messages.BoundsCost`) keeps an episode within its limit, and the command within its cap. One that does not
may let the last call of an episode pass both. A model whose price is not known ends the run with its first episode. A
call to which a sub-agent had no answer is not seen, and counts as nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from experiments.episode import EpisodeRecord
from experiments.plan import EpisodeSpec
from experiments.roles import Role
from experiments.run_spec import BudgetChoice
from geode.clock import Clock
from geode.llm.spending import is_billed
from geode.loop.turn import TurnStop
from geode.records.database import RecordError
from geode.records.spend import Scope, SpendLedger
from geode.scaffold import Scaffold
from geode.serve.accounts import AGAIN
from geode.serve.delegation import DEPTH_MAX
from geode.tools.delegate import NAME as DELEGATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Money and model calls. Money is decimal: ten times 0.1 is 1."""

    cost_usd: Decimal = Decimal(0)
    calls: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(cost_usd=self.cost_usd + other.cost_usd, calls=self.calls + other.calls)


@dataclass(frozen=True, slots=True)
class CommandPurse:
    """What the sessions of one command spend on billed models, in whatever process: each asks before each call."""

    ledger: SpendLedger
    command: str

    def spent_usd(self) -> Decimal:
        """Return what is spent, or held by calls under way.

        Raises:
            RecordError: if nobody can say.
        """
        return self.ledger.spent(Scope.COMMAND, self.command)


@dataclass(slots=True)
class Budget:
    """The account of one command. Its time runs from when it is made. Not for several threads.

    Without a `purse` no money is held call by call.

    Ask `admit` before an episode starts, and tell `settle` how it ended. Episodes that run side by side count together:
    each holds back its worst case until it is settled. So a refusal may pass: while `worth_waiting` says so, wait until
    another episode is settled, and ask again.
    """

    choice: BudgetChoice
    clock: Clock
    purse: CommandPurse | None = None
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
        return f"budget.seconds={self.choice.seconds or 0:g} are over; {AGAIN}, or raise budget.seconds"

    def admit(self, spec: EpisodeSpec) -> str | None:
        """Hold back the worst case of an episode, which may then start; or say why it may not, and what to do."""
        worst = self._worst(spec)
        if refusal := self._refusal(self.spent + self.reserved, worst) or self._no_money(spec):
            return refusal
        self._held[spec.episode_key] = worst
        return None

    def worth_waiting(self, spec: EpisodeSpec) -> bool:
        """Whether running episodes hold back what a refused one needs: it may be admitted once they are settled."""
        return not (self._refusal(self.spent, self._worst(spec)) or self._no_money(spec))

    def settle(self, episode_key: str, record: EpisodeRecord | None) -> None:
        """Count what an admitted episode spent. None: it is lost; its worst case stays spent, for nobody knows."""
        held = self._held.pop(episode_key)
        self.spent += held if record is None else self._spent_by(record, held)

    def release(self, episode_key: str) -> None:
        """Give back what an admitted episode holds: it did not start, for instance because another command ran it."""
        del self._held[episode_key]

    def _by_calls(self, roles: Mapping[str, str]) -> bool:
        return self.purse is not None and is_billed(roles[Role.TARGET])

    def _worst(self, spec: EpisodeSpec) -> Amount:
        worst = worst_case(spec)
        return replace(worst, cost_usd=Decimal(0)) if self._by_calls(spec.roles) else worst

    def _no_money(self, spec: EpisodeSpec) -> str | None:
        """Say that nothing is left for an episode whose money is held call by call; None if it may begin."""
        cap = self.choice.cost_usd
        if cap is None or self.purse is None or not self._by_calls(spec.roles):
            return None
        try:
            spent = self.purse.spent_usd()
        except RecordError as problem:
            return f"budget.cost_usd={cap:g} cannot be held: {problem}"
        if spent < _money(cap):
            return None
        return f"budget.cost_usd={cap:g}: {spent:.4g} US dollars are spent; {AGAIN}, or raise budget.cost_usd"

    def _spent_by(self, record: EpisodeRecord, held: Amount) -> Amount:
        if not record.session_id:
            return Amount()  # no session was opened, so nothing was asked of a model
        if not record.usage:
            return held  # the session broke, and what it had used went with it
        answered = sum(usage.calls for usage in record.usage.values())
        # Calls of sub-agents are among the answered ones, and hide by their number that the last one was not.
        calls = max(record.rounds, answered + (record.stop_reason == TurnStop.MODEL_FAILED))
        if self._by_calls(record.roles):
            return Amount(calls=calls)
        if unpriced := unpriced_models(record):
            self._unpriced = unpriced[0]
        if unpriced or calls > answered or record.known_cost_usd is None:
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
                f" and the next one may need {worst.calls} more; {AGAIN}, or raise budget.calls"
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
                f" running episodes, and the next one may cost {worst.cost_usd:g} more; {AGAIN}, or raise"
                " budget.cost_usd"
            )
        return None


def worst_case(spec: EpisodeSpec) -> Amount:
    """Return the most that an episode can use: its scaffold's limits or the ruler's caps, whichever are lower.

    A round is one model call. The completion check asks no model in an episode, and a repair or a continuation is
    another round. Sub-agents spend their parent's money, but make rounds of their own.
    """
    limits, caps = spec.scaffold.limits, spec.caps
    calls = _calls_max(spec.scaffold, min(limits.rounds, caps.rounds))
    return Amount(cost_usd=_money(min(limits.cost_usd, caps.cost_usd)), calls=calls)


def _calls_max(scaffold: Scaffold, rounds: int) -> int:
    """Return how many model calls so many rounds can come to, if each of them delegates as often as it may.

    A sub-agent has at most the rounds that its parent has left, and always one.
    """
    agents = scaffold.sub_agents if DELEGATE in {choice.name for choice in scaffold.tools.tools} else ()
    if not agents:
        return rounds
    of_agent = max(agent.limits.rounds for agent in agents)
    per_round = max(agent.limits.calls_per_round for agent in agents)
    nested = any(DELEGATE in agent.tools for agent in agents)
    below = list(range(of_agent + 1))  # calls by rounds: who cannot delegate makes one a round
    for depth in range(DEPTH_MAX - 1 if nested else 0, -1, -1):
        calls = [0]
        for left in range(rounds if depth == 0 else of_agent):
            often = per_round if depth else scaffold.limits.calls_per_round
            calls.append(calls[left] + 1 + often * below[min(of_agent, max(1, left))])
        below = calls
    return below[rounds]


def too_small(choice: BudgetChoice, spec: EpisodeSpec) -> str | None:
    """Say why an episode can never start under this budget, and what to change; None if it can."""
    worst = worst_case(spec)
    if choice.calls is not None and worst.calls > choice.calls:
        return _cannot_start("calls", choice.calls, f"{worst.calls} model calls", worst.calls, "rounds")
    if is_billed(spec.roles[Role.TARGET]):
        return None
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
    """Return the models of an episode whose price nobody knows: not one of their calls has a cost.

    A model with a price can have calls of unknown cost, too: a request that was lost may be billed.
    """
    return tuple(
        record.roles.get(role, role)
        for role, usage in record.usage.items()
        if not usage.cost_usd and (usage.unpriced_calls or (usage.calls and is_billed(record.roles.get(role, role))))
    )


def _money(cost_usd: float) -> Decimal:
    return Decimal(repr(cost_usd))
