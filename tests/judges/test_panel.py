import pytest

from geode.clock import ManualClock
from geode.llm.errors import BudgetReached
from judges.judgment import Judgment, NoValue, Unscored
from judges.ledger import is_settled
from judges.panel import Panel, Rule
from tests.judges.jev_house import RUBRIC
from tests.judges.scripted import Said, Scripted
from tests.judges.views import view


def panel(*says: Said, dimension: str = "care", quorum: int | None = None, spread_max: float = 0.25) -> Panel:
    """A panel whose members differ in one dimension."""
    rest = {"done": 1, "care": 4, "fault": 0}
    members = {f"m{n}": Scripted({**rest, dimension: said}, f"m{n}", model=f"zai/m{n}") for n, said in enumerate(says)}
    return Panel(members, ManualClock(), Rule(quorum=quorum, spread_max=spread_max))


async def judged(asked: Panel) -> Judgment:
    return await asked.judge(view(), RUBRIC)


@pytest.mark.parametrize(("says", "value"), [((3, 9, 4), 4), ((3, 4), 3.5), ((3, 9, Unscored.REFUSED), 6)])
async def test_a_score_is_the_median_of_those_who_have_a_value(says: tuple[Said, ...], value: float) -> None:
    assert (await judged(panel(*says))).scored["care"].value == value


@pytest.mark.parametrize(("says", "value"), [((1, 1, 0), 1), ((0, 0, 1), 0), ((0, 0, Unscored.ABSTAINED), 0)])
async def test_a_flag_is_the_value_of_the_majority(says: tuple[Said, ...], value: float) -> None:
    assert (await judged(panel(*says, dimension="done"))).scored["done"].value == value


async def test_a_choice_has_no_middle() -> None:
    """The median of none, small and grave would be a fault that nobody saw."""
    entry = (await judged(panel(0, 1, 2, dimension="fault"))).dimensions["fault"]
    assert isinstance(entry, NoValue)
    assert entry.reason is Unscored.ABSTAINED
    assert entry.raw == "the members are split: m0 0, m1 1, m2 2"


async def test_fewer_than_a_quorum_are_no_value() -> None:
    """A majority of the members by default, whoever of them has one."""
    entry = (await judged(panel(4, Unscored.REFUSED, Unscored.REFUSED))).dimensions["care"]
    assert isinstance(entry, NoValue)
    assert entry.reason is Unscored.REFUSED
    assert (await judged(panel(4, Unscored.REFUSED, Unscored.REFUSED, quorum=1))).scored["care"].value == 4


@pytest.mark.parametrize(("says", "told"), [((1, 3, 3), False), ((1, 4, 4), True)])
async def test_opinions_that_lie_far_apart_are_told(says: tuple[Said, ...], told: bool) -> None:
    notes = (await judged(panel(*says))).notes
    assert bool(notes) is told
    assert not told or notes == ("the members disagree on care: m0 1, m1 4, m2 4",)


async def test_an_outvoted_member_is_told_of() -> None:
    assert (await judged(panel(1, 1, 0, dimension="done"))).notes == ("the members disagree on done: m0 1, m1 1, m2 0",)


async def test_all_requests_are_on_record_by_member() -> None:
    judgment = await judged(panel(1, 2, 3))
    assert [(asked.engine, asked.model) for asked in judgment.asked] == [(f"m{n}", f"zai/m{n}") for n in range(3)]
    assert judgment.cost_usd == pytest.approx(0.03)


async def test_a_panel_that_runs_out_of_money_says_nothing() -> None:
    """With fewer members it would be another panel."""
    members = {"a": Scripted({"care": 4}, "a", model="zai/a"), "b": Scripted({}, "b", out_of_money=True)}
    judgment = await judged(Panel(members, ManualClock(), Rule(quorum=1)))
    assert not judgment.scored
    assert not is_settled(judgment)
    assert judgment.cut_by == "no money is left"
    with pytest.raises(BudgetReached):
        await judged(Panel({"b": members["b"], "a": members["a"]}, ManualClock()))


async def test_a_panel_asks_nobody_behind_a_member_that_ran_out_of_money() -> None:
    first, second = Scripted({"care": 4}, "a", model="zai/a", cut_by="the cap is reached"), Scripted({"care": 4}, "b")
    judgment = await judged(Panel({"a": first, "b": second}, ManualClock()))
    assert (judgment.cut_by, second.asked_for) == ("the cap is reached", [])
    assert not judgment.scored


def test_what_makes_no_panel_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        panel(1)
    with pytest.raises(ValueError, match="the quorum 3 is not between 1 and the 2 members"):
        panel(1, 2, quorum=3)


def test_its_identity_holds_members_and_rule() -> None:
    ids = {panel(1, 2).engine_id, panel(1, 2, 3).engine_id, panel(1, 2, spread_max=0.5).engine_id}
    assert len(ids | {panel(1, 2, quorum=1).engine_id}) == 4
