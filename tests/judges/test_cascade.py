import pytest

from geode.clock import ManualClock
from geode.llm.errors import BudgetReached
from judges.cascade import Band, Cascade, Stage, account_of
from judges.judgment import Judgment, NoValue, Unscored
from judges.ledger import is_settled
from tests.judges.jev_house import RUBRIC
from tests.judges.scripted import Scripted, sure
from tests.judges.views import view

EPISODE = view()
LOW = Band(highest=0.5)


def cascade(*engines: Scripted, **bands: Band) -> Cascade:
    stages = [Stage(name=engine.name, engine=engine, escalate=bands.get(engine.name)) for engine in engines]
    return Cascade(stages, ManualClock())


def rules(**says: object) -> Scripted:
    return Scripted(says, "rules")  # type: ignore[arg-type]


def jev(**says: object) -> Scripted:
    return Scripted(says, "jev", model="openrouter/typesafe/jev-1.13", cost_usd=0.001)  # type: ignore[arg-type]


def llm(**says: object) -> Scripted:
    return Scripted(says, "llm", model="anthropic/claude-opus-5-5", cost_usd=0.1)  # type: ignore[arg-type]


def values(judgment: Judgment) -> dict[str, float]:
    return {name: entry.value for name, entry in judgment.scored.items()}


async def test_each_stage_is_asked_only_for_what_is_left() -> None:
    first, second, third = rules(done=1), jev(care=sure(4, 0.9)), llm(fault=2, care=9, done=0)
    judgment = await cascade(first, second, third).judge(EPISODE, RUBRIC)
    assert (first.asked_for, second.asked_for) == ([("done", "care", "fault")], [("care", "fault")])
    assert third.asked_for == [("fault",)]
    assert values(judgment) == {"done": 1, "care": 4, "fault": 2}
    assert judgment.decided_by == {"done": "rules", "care": "jev", "fault": "llm"}
    assert [asked.engine for asked in judgment.asked] == ["jev", "llm"]


async def test_nobody_is_asked_once_all_is_decided() -> None:
    third = llm()
    judgment = await cascade(rules(done=1, care=1, fault=0), third).judge(EPISODE, RUBRIC)
    assert (third.asked_for, judgment.asked, judgment.cost_usd) == ([], (), 0)


@pytest.mark.parametrize(("certainty", "by"), [(0.0, "llm"), (0.5, "llm"), (0.51, "jev"), (None, "jev")])
async def test_a_value_whose_certainty_is_in_the_band_goes_on(certainty: float | None, by: str) -> None:
    """Both ends are included; a value without a certainty is in no band."""
    engines = jev(done=1, care=sure(4, certainty), fault=0), llm(care=9)
    judgment = await cascade(*engines, jev=LOW).judge(EPISODE, RUBRIC)
    assert judgment.decided_by["care"] == by
    assert values(judgment)["care"] == (9 if by == "llm" else 4)


async def test_an_uncertain_value_does_not_stand_where_the_last_stage_has_none() -> None:
    engines = jev(done=1, care=sure(4, 0.1), fault=0), llm(care=Unscored.REFUSED)
    judgment = await cascade(*engines, jev=LOW).judge(EPISODE, RUBRIC)
    entry = judgment.dimensions["care"]
    assert isinstance(entry, NoValue)
    assert (entry.reason, judgment.decided_by["care"]) == (Unscored.REFUSED, "llm")


async def test_a_stage_that_is_down_is_told_of_where_another_judged_in_its_place() -> None:
    engines = jev(done=1, care=Unscored.INFRASTRUCTURE, fault=Unscored.INFRASTRUCTURE), llm(care=9, fault=0)
    judgment = await cascade(*engines).judge(EPISODE, RUBRIC)
    assert judgment.notes == ("jev had no value for 2 dimensions: infrastructure",)
    assert judgment.decided_by == {"done": "jev", "care": "llm", "fault": "llm"}


async def test_notes_of_a_stage_name_it() -> None:
    engine = Scripted({"done": 1, "care": 1, "fault": 1}, "jev", notes=("asked in 2 requests",))
    assert (await cascade(engine).judge(EPISODE, RUBRIC)).notes == ("jev: asked in 2 requests",)


async def test_a_stage_that_speaks_for_nothing_of_the_rest_abstains() -> None:
    late = Scripted({"done": 1}, "late", refuses="done")
    judgment = await cascade(rules(done=1), late, llm(care=2, fault=1)).judge(EPISODE, RUBRIC)
    assert judgment.decided_by == {"done": "rules", "care": "llm", "fault": "llm"}


async def test_money_that_ends_midway_leaves_the_episode_to_be_judged_again() -> None:
    broke = llm()
    broke.out_of_money = True
    judgment = await cascade(jev(done=1), broke).judge(EPISODE, RUBRIC)
    assert not is_settled(judgment)
    assert [asked.engine for asked in judgment.asked] == ["jev"]
    assert judgment.decided_by == {"done": "jev"}
    assert judgment.cut_by == "no money is left"
    with pytest.raises(BudgetReached):
        await cascade(rules(done=1), broke).judge(EPISODE, RUBRIC)


async def test_behind_a_stage_that_ran_out_of_money_nobody_is_asked_and_no_uncertain_value_stands() -> None:
    first, last = jev(done=1, care=sure(4, 0.1), fault=Unscored.INFRASTRUCTURE), llm(care=2, fault=1)
    first.cut_by = "the cap is reached"
    judgment = await cascade(first, last, jev=LOW).judge(EPISODE, RUBRIC)
    assert (last.asked_for, judgment.cut_by) == ([], "the cap is reached")
    assert list(judgment.scored) == ["done"]


async def test_its_account_says_who_decided_how_much_at_which_cost() -> None:
    """The last stage alone is estimated from its own requests, and says on how many that rests."""
    first, second, third = rules(done=1), jev(care=sure(4, 0.9), fault=1), llm(care=2)
    asking = cascade(first, second, third, jev=LOW)
    judgments = [await asking.judge(EPISODE, RUBRIC)]
    second.says = {"care": sure(4, 0.1), "fault": 1}
    judgments.append(await asking.judge(EPISODE, RUBRIC))
    judgments.append(await asking.judge(EPISODE, RUBRIC))
    second.says = {"care": sure(4, 0.9), "fault": 1}
    judgments.append(await asking.judge(EPISODE, RUBRIC))
    account = account_of(judgments, ("rules", "jev", "llm"))
    assert [(s.stage, s.decided, s.episodes, s.requests) for s in account.stages] == [
        ("rules", 4, 0, 0),
        ("jev", 6, 4, 4),
        ("llm", 2, 2, 2),
    ]
    assert [stage.cost_usd for stage in account.stages] == pytest.approx([0, 0.004, 0.2])
    assert account.cost_usd == pytest.approx(0.204)
    assert (account.last_alone_usd, account.rests_on) == (pytest.approx(0.4), 2)


async def test_an_unknown_cost_makes_no_figure_up() -> None:
    last = llm(care=2, fault=0)
    last.cost_usd = None
    account = account_of([await cascade(rules(done=1), last).judge(EPISODE, RUBRIC)], ("rules", "llm"))
    assert (account.cost_usd, account.last_alone_usd, account.rests_on) == (None, None, 1)
    nobody = account_of([], ("rules", "llm"))
    assert (nobody.cost_usd, nobody.last_alone_usd, nobody.rests_on) == (0, None, 0)


def test_its_identity_holds_stages_order_and_bands() -> None:
    one, two = jev(), llm()
    ids = {cascade(one, two).engine_id, cascade(two, one).engine_id, cascade(one, two, jev=LOW).engine_id}
    assert len(ids) == 3


def test_what_makes_no_cascade_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one stage"):
        cascade()
    with pytest.raises(ValueError, match="nobody that it could escalate to"):
        cascade(jev(), jev=LOW)
    with pytest.raises(ValueError, match="is empty"):
        Band(lowest=0.6, highest=0.5)
