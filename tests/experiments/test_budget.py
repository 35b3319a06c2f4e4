"""The account of one command: no cap is passed, whatever episodes cost, however many run, and whichever are lost."""

import json
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.budget import Amount, Budget, CommandPurse, too_small, worst_case
from experiments.episode import EpisodeRecord, RoleUsage
from experiments.plan import EpisodeSpec
from experiments.records import Caps
from experiments.run_episode import EpisodeParts, run_episode
from experiments.run_spec import BudgetChoice
from geode.clock import ManualClock, SystemClock
from geode.config.paths import StateRoot
from geode.config.settings import read_settings
from geode.llm.messages import ModelResponse, StepSnapshot
from geode.llm.usage import Usage
from geode.records.spend import Spender, SpendLedger
from geode.scaffold import LoopLimits, Scaffold, SubAgentContract, ToolChoice, ToolPlan
from geode.serve.services import Session, SharedServices
from tests.doubles.cells import make_cells
from tests.doubles.models import PricedModel, calls
from tests.doubles.openers import make_task

((RECORD,),) = ([stored.record for stored in cell.episodes] for cell in make_cells({"base": {"csv_a": "P"}}))


def make_spec(number: int = 0, *, rounds: int = 40, cost_usd: float = 5.0, caps: Caps | None = None) -> EpisodeSpec:
    scaffold = Scaffold(
        tools=ToolPlan(tools=(ToolChoice(name="read_file"),)), limits=LoopLimits(rounds=rounds, cost_usd=cost_usd)
    )
    return EpisodeSpec(
        episode_key=f"{number:064x}",
        scaffold_id=scaffold.scaffold_id,
        suite="workspace",
        task_id="csv_a",
        family="csv",
        task_hash="0" * 64,
        seed=0,
        repetition=number,
        roles={"target": "anthropic/priced"},
        caps=caps or Caps(),
        scaffold=scaffold,
    )


def ended(spec: EpisodeSpec, *, cost_usd: float, calls: int, rounds: int | None = None) -> EpisodeRecord:
    """The record of an episode of `spec` that used this."""
    usage = {"target": RoleUsage(cost_usd=cost_usd, calls=calls, output_tokens=10 * calls)}
    used = {"usage": usage, "rounds": calls if rounds is None else rounds}
    return RECORD.model_copy(update={"episode_key": spec.episode_key, "roles": spec.roles, **used})


def free(record: EpisodeRecord) -> EpisodeRecord:
    """The same by a model that is billed to nobody, so that a cost of 0 is known."""
    return record.model_copy(update={"roles": {"target": "simulated/apprentice"}})


SHARES = st.floats(0, 1)
EPISODES = st.lists(
    st.tuples(st.integers(1, 60), st.sampled_from([0.0, 0.1, 0.7, 5.0]), SHARES, SHARES, st.booleans()), max_size=40
)
"""For each: rounds and dollars that it may use, which share of both it uses, and whether it is lost."""


@given(EPISODES, st.integers(1, 6), st.integers(60, 300), st.floats(5, 20), st.randoms(use_true_random=False))
def test_no_cap_is_passed_and_no_episode_is_refused_that_fits(
    episodes: list[tuple[int, float, float, float, bool]], at_once: int, calls_max: int, usd_max: float, chance: object
) -> None:
    """Checked after each step of a run with many episodes side by side, some of which are lost."""
    budget = Budget(BudgetChoice(calls=calls_max, cost_usd=usd_max), ManualClock())
    caps = Amount(cost_usd=Decimal(repr(usd_max)), calls=calls_max)
    running: dict[str, EpisodeRecord | None] = {}

    def settle_one() -> None:
        key = chance.choice(sorted(running))  # type: ignore[attr-defined]
        budget.settle(key, running.pop(key))

    for number, (rounds, usd, of_rounds, of_usd, lost) in enumerate(episodes):
        spec = make_spec(number, rounds=rounds, cost_usd=usd)
        while len(running) == at_once:
            settle_one()
        while (refusal := budget.admit(spec)) is not None and budget.worth_waiting(spec):
            settle_one()
        taken = budget.spent + budget.reserved
        if refusal is not None:
            together = budget.spent + worst_case(spec)
            assert together.calls > caps.calls or together.cost_usd > caps.cost_usd
            break
        assert taken.calls <= caps.calls
        assert taken.cost_usd <= caps.cost_usd
        used = free(ended(spec, cost_usd=usd * of_usd, calls=int(rounds * of_rounds)))
        running[spec.episode_key] = None if lost else used
    while running:
        settle_one()
    assert budget.reserved == Amount()
    assert budget.spent.calls <= caps.calls
    assert budget.spent.cost_usd <= caps.cost_usd


def test_money_is_added_as_people_add_it() -> None:
    """Ten times a tenth fits into one, which floating point denies."""
    budget = Budget(BudgetChoice(cost_usd=1.0), ManualClock())
    assert [budget.admit(make_spec(number, cost_usd=0.1)) for number in range(10)] == [None] * 10
    refusal = budget.admit(make_spec(10, cost_usd=0.1))
    assert refusal is not None
    assert refusal.startswith("budget.cost_usd=1: 1.0 US dollars are spent or held back")


def test_the_worst_case_is_the_lower_of_scaffold_and_ruler() -> None:
    assert worst_case(make_spec()) == Amount(cost_usd=Decimal("5.0"), calls=40)
    tight = make_spec(caps=Caps(rounds=7, cost_usd=0.25))
    assert worst_case(tight) == Amount(cost_usd=Decimal("0.25"), calls=7)


@cache
def calls_by_hand(rounds: int, per_round: int, agent_rounds: int, agent_per_round: int, levels: int) -> int:
    """What the words say: each round is a call and delegates as often as it may, to who has what is left."""
    if not levels:
        return rounds
    below = [
        calls_by_hand(min(agent_rounds, max(1, left)), agent_per_round, agent_rounds, agent_per_round, levels - 1)
        for left in range(rounds)
    ]
    return sum(1 + per_round * calls for calls in below)


@pytest.mark.parametrize(("nested", "levels"), [(False, 1), (True, 3)])
@pytest.mark.parametrize(("rounds", "agent_rounds"), [(1, 5), (6, 3), (3, 6)])
def test_sub_agents_make_rounds_of_their_own(nested: bool, levels: int, rounds: int, agent_rounds: int) -> None:
    """They are calls of the episode, though none of its rounds; who may not delegate has nobody below."""
    agent = SubAgentContract(
        name="helper",
        tools=("read_file", "delegate_task") if nested else ("read_file",),
        limits=LoopLimits(rounds=agent_rounds, calls_per_round=2),
    )
    tools = (ToolChoice(name="read_file"), ToolChoice(name="delegate_task"))
    limits = LoopLimits(rounds=rounds, calls_per_round=3)
    spec = make_spec().model_copy(
        update={"scaffold": Scaffold(tools=ToolPlan(tools=tools), sub_agents=(agent,), limits=limits)}
    )
    assert worst_case(spec).calls == calls_by_hand(rounds, 3, agent_rounds, 2, levels)
    without = spec.scaffold.model_copy(update={"tools": ToolPlan(tools=tools[:1])})
    assert worst_case(spec.model_copy(update={"scaffold": without})).calls == rounds


SPEC = make_spec()
UNBILLED = SPEC.model_copy(update={"roles": {"target": "simulated/apprentice"}})
USED = ended(SPEC, cost_usd=0.5, calls=6)
SPENT: dict[str, tuple[EpisodeRecord | None, str, int]] = {
    "what it used": (USED, "0.5", 6),
    "everything, if it is lost": (None, "5.0", 40),
    "everything, if its session broke": (USED.model_copy(update={"usage": {}, "rounds": 0}), "5.0", 40),
    "nothing, if no session was opened": (USED.model_copy(update={"usage": {}, "session_id": ""}), "0", 0),
    "all money, if a call was never answered": (ended(SPEC, cost_usd=0.5, calls=6, rounds=7), "5.0", 7),
    "all money, if the last call failed and sub-agents made others": (
        ended(SPEC, cost_usd=0.5, calls=6, rounds=3).model_copy(update={"stop_reason": "model_failed"}),
        "5.0",
        7,
    ),
}


@pytest.mark.parametrize("what", SPENT)
def test_an_episode_is_counted_with(what: str) -> None:
    """A call without an answer may be billed; what nobody knows counts as the worst."""
    record, cost_usd, calls_made = SPENT[what]
    budget = Budget(BudgetChoice(), ManualClock())
    assert budget.admit(SPEC) is None
    assert budget.reserved == worst_case(SPEC)
    budget.settle(SPEC.episode_key, record)
    assert (budget.spent, budget.reserved) == (Amount(cost_usd=Decimal(cost_usd), calls=calls_made), Amount())


def test_an_episode_that_did_not_start_gives_back_what_it_held() -> None:
    budget = Budget(BudgetChoice(calls=40), ManualClock())
    assert budget.admit(SPEC) is None
    budget.release(SPEC.episode_key)
    assert (budget.spent, budget.reserved) == (Amount(), Amount())
    assert budget.admit(SPEC) is None


def test_a_cost_that_nobody_knows_stops_a_run_whose_money_is_capped() -> None:
    """An unknown price is no price of 0. What is simulated really costs nothing."""
    unpriced = ended(SPEC, cost_usd=0.0, calls=6)
    budget = Budget(BudgetChoice(cost_usd=100.0), ManualClock())
    assert budget.admit(SPEC) is None
    budget.settle(SPEC.episode_key, unpriced)
    refusal = budget.admit(make_spec(1))
    assert refusal is not None
    assert "no price is known for 'anthropic/priced'" in refusal
    assert "cap budget.calls instead" in refusal
    simulated = Budget(BudgetChoice(cost_usd=100.0), ManualClock())
    assert simulated.admit(SPEC) is None
    simulated.settle(SPEC.episode_key, free(unpriced))
    assert simulated.spent == Amount(calls=6)
    assert simulated.admit(make_spec(1)) is None


def test_time_runs_from_the_making_of_the_account() -> None:
    clock = ManualClock(elapsed_s=7.0)
    budget = Budget(BudgetChoice(seconds=5.0), clock)
    assert budget.deadline_s == 12.0
    clock.advance(4.9)
    assert budget.admit(SPEC) is None
    clock.advance(0.1)
    refusal = budget.admit(make_spec(1))
    assert refusal is not None
    assert refusal.startswith("budget.seconds=5 are over; run the same command again")
    assert not budget.worth_waiting(make_spec(1))
    assert Budget(BudgetChoice(), clock).deadline_s is None


def test_a_refusal_passes_if_running_episodes_hold_back_more_than_they_use() -> None:
    budget = Budget(BudgetChoice(calls=60), ManualClock())
    other = make_spec(1)
    assert budget.admit(SPEC) is None
    refusal = budget.admit(other)
    assert refusal is not None
    assert "40 model calls are spent or held back by running episodes, and the next one may need 40 more" in refusal
    assert budget.worth_waiting(other)
    budget.settle(SPEC.episode_key, USED)
    assert budget.admit(other) is None


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (BudgetChoice(calls=39), "budget.calls=39: one episode alone may need 40 model calls"),
        (BudgetChoice(calls=39), "Raise budget.calls to 40 or more; or lower what an episode may use: limits.rounds"),
        (BudgetChoice(cost_usd=4.5), "Raise budget.cost_usd to 5.0 or more"),
    ],
)
def test_a_budget_below_one_episode_says_what_to_change(choice: BudgetChoice, told: str) -> None:
    assert told in str(too_small(choice, UNBILLED))


def test_a_budget_of_exactly_one_episode_lets_it_start() -> None:
    assert too_small(BudgetChoice(calls=40, cost_usd=5.0), UNBILLED) is None


def test_a_billed_episode_may_begin_below_its_worst_case() -> None:
    """Its money is held call by call, so that one cent is a budget, too; its calls are not."""
    assert too_small(BudgetChoice(cost_usd=0.01), SPEC) is None
    assert "Raise budget.calls to 40" in str(too_small(BudgetChoice(calls=39, cost_usd=0.01), SPEC))


def test_a_billed_episode_begins_while_the_purse_of_the_command_holds_money(tmp_path: Path) -> None:
    """What other processes of the command spend counts, too, and what episodes say of their cost does not once more."""
    ledger = SpendLedger(tmp_path / "spend.db", ManualClock())
    budget = Budget(BudgetChoice(cost_usd=0.01), ManualClock(), CommandPurse(ledger, "C"))
    first, second, third = (make_spec(number) for number in range(3))
    assert budget.admit(first) is None
    assert budget.admit(second) is None, "both may run: each call is held"
    entry = ledger.reserve(Spender(session="S", command="C"), "anthropic/priced", Decimal("0.01"))
    assert "budget.cost_usd=0.01: 0.01 US dollars are spent" in str(budget.admit(third))
    ledger.settle(entry, Usage(cost_usd=0.004))
    budget.settle(first.episode_key, ended(first, cost_usd=0.004, calls=1))
    assert budget.admit(third) is None
    assert budget.spent == Amount(calls=1)
    ledger.reserve(Spender(session="S", command="another"), "anthropic/priced", Decimal(5))
    budget.release(third.episode_key)
    assert budget.admit(third) is None, "another command has a budget of its own"
    ledger.close()


class PricedSessions:
    """Opens production sessions on a model with prices."""

    def __init__(self, root: Path, model: PricedModel) -> None:
        self._services, self._model = SharedServices(read_settings(root, {}), SystemClock()), model

    def create_session(self, **parts: Any) -> Session:
        return self._services.create_session(**parts, adapter=self._model)


def costing(snapshot: StepSnapshot) -> ModelResponse:
    asked = calls((f"c{snapshot.round}", "read_file", json.dumps({"path": "start", "start_line": snapshot.round})))
    return replace(asked, usage=replace(asked.usage, cost_usd=0.3 if snapshot.round % 2 else 0.1))


@pytest.mark.parametrize(("rounds", "cost_usd"), [(100, 2.0), (5, 2.0), (100, 0.29), (1, 0.3)])
async def test_an_episode_of_the_production_loop_stays_within_its_worst_case(
    tmp_path: Path, rounds: int, cost_usd: float
) -> None:
    """A model that never ends and has prices; what the record says it used is what the account counts."""
    spec = make_spec(rounds=rounds, cost_usd=cost_usd)
    parts = EpisodeParts(
        root=StateRoot(tmp_path), opener=PricedSessions(tmp_path, PricedModel([costing], 0.3)), clock=SystemClock()
    )
    budget = Budget(BudgetChoice(calls=rounds, cost_usd=cost_usd), SystemClock())
    assert budget.admit(spec) is None
    record = await run_episode(parts, spec, make_task(tmp_path / "tasks", "csv_a", "0" * 64), tmp_path / "episode")
    budget.settle(spec.episode_key, record)
    assert record.stop_reason in {"cost_limit", "round_limit"}
    assert budget.spent == Amount(cost_usd=Decimal(repr(record.cost_usd)), calls=record.rounds)
    assert budget.spent.cost_usd <= worst_case(spec).cost_usd
    assert budget.spent.calls <= worst_case(spec).calls
