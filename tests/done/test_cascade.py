"""Done line 4 of the judges: a cascade of rules, jev and llm says who decided how much, its cost, and what it saved.

Against the strict double: once from the inside, with replies that are written down, and once as it is typed.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from geode.clock import ManualClock
from geode.dev.fake_provider.script import Call, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from judges.cascade import account_of
from judges.catalogue import EngineParts, choice_of, open_engine
from judges.judgment import Judgment
from judges.ledger import read_judgments
from judges.rubric import Dimension, Direction, Rubric
from tests.done.command import geode
from tests.doubles.judging import swept_root
from tests.doubles.provider import keys_of
from tests.doubles.purses import OpenPurse
from tests.judges.jev_house import CARE, DONE
from tests.judges.views import call, view

LOOPS = Dimension(name="stuck_in_loops", question="Did it go round in circles?", direction=Direction.LOWER)
LOOPS = LOOPS.model_copy(update={"anchors": {1: "Never.", 10: "All the time."}})
RUBRIC = Rubric(name="three", dimensions=(LOOPS, CARE, DONE))
LLM = "anthropic/claude-opus-5-5"
SURE, UNSURE = {"0": 0.97, "1": 0.01, "2": 0.01, "3": 0.01}, {"0": 0.3, "1": 0.3, "2": 0.2, "3": 0.2}
EPISODES, HARD = 10, (2, 5, 8)


@pytest.fixture
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


async def test_each_item_is_decided_by_the_first_that_can(double: FakeProvider) -> None:
    """Of 30 items rules decide those of one dimension, jev all but the three that it is not certain of, llm these."""
    decisions = tuple(
        Step(answers={"care": UNSURE if n in HARD else SURE, "done": 0.98 if n % 2 else 0.03}) for n in range(EPISODES)
    )
    reply = Call(name="give_judgment", arguments={"care": {"rationale": "Two slips.", "score": 7}})
    double.play(Script(by_route={Route.OPENROUTER: decisions, Route.ANTHROPIC: (Step(calls=(reply,)),) * len(HARD)}))
    purse = OpenPurse()
    judgments = await judged(double, purse)
    assert double.steps_left == 0

    assert [judgment.decided_by["care"] for judgment in judgments] == [
        "llm" if n in HARD else "jev" for n in range(EPISODES)
    ]
    assert [judgment.scored["care"].value == 7 for judgment in judgments] == [n in HARD for n in range(EPISODES)]
    account = account_of(judgments, ("rules", "jev", "llm"))
    decided = {stage.stage: (stage.decided, stage.scored, stage.requests) for stage in account.stages}
    assert decided == {"rules": (10, 10, 0), "jev": (17, 17, 10), "llm": (3, 3, 3)}

    paid = dict.fromkeys((LLM, "openrouter/typesafe/jev-1.13"), 0.0)
    for reservation, usage in purse.settled:
        assert usage is not None
        assert usage.cost_usd
        paid[reservation.model] += usage.cost_usd
    costs = {stage.stage: stage.cost_usd for stage in account.stages}
    assert costs == pytest.approx({"rules": 0, "jev": paid["openrouter/typesafe/jev-1.13"], "llm": paid[LLM]})
    assert account.cost_usd == pytest.approx(sum(paid.values()))
    assert account.rests_on == len(HARD)
    assert account.last_alone_usd == pytest.approx(paid[LLM] / len(HARD) * EPISODES)
    assert account.cost_usd is not None
    assert account.last_alone_usd is not None
    assert account.cost_usd < account.last_alone_usd


async def judged(double: FakeProvider, purse: OpenPurse) -> list[Judgment]:
    stages = {
        "rules": {"engine": "rules"},
        "jev": {"engine": "jev", "route": "openrouter"},
        "llm": {"engine": "llm", "model": LLM},
    }
    choice = choice_of("cascade", {"engine": "cascade", "stages": stages, "escalate": {"jev": {"highest": 0.4}}})
    engine = open_engine(choice, EngineParts(clock=ManualClock(), environment=keys_of(double), purse=purse))
    episode = view(call("shell", "3 passed", command="pytest"), target="openai/gpt-6-astra")
    return [await engine.judge(replace(episode, episode=f"e{n}"), RUBRIC) for n in range(EPISODES)]


@pytest.mark.slow
def test_as_it_is_typed(double: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = swept_root(tmp_path_factory.mktemp("swept"))
    keys, home = keys_of(double), root.path.parent
    words = ("quick", "--engine", "cascade", f"stages.llm.model={LLM}", "--rubric", "safety", "--root", str(root.path))
    ran = geode(home, "judge", *words, "--json", more=keys)
    assert ran.code == 0, ran.err
    account = ran.json["cascade"]
    assert isinstance(account, dict)
    assert isinstance(account["stages"], list)
    kept = [judgment for file in root.episodes.rglob("judgments.jsonl") for judgment in read_judgments(file)]
    by = [stage for judgment in kept for stage in judgment.decided_by.values()]
    assert {stage["stage"]: stage["decided"] for stage in account["stages"]} == {  # type: ignore[index, call-overload]
        name: by.count(name) for name in ("rules", "jev", "llm")
    }
    assert len(by) == 4 * 18
    assert account["cost_usd"] == pytest.approx(sum(judgment.cost_usd or 0 for judgment in kept))
    assert account["episodes"] == 4

    again = geode(home, "judge", *words, "--json", more=keys)
    assert (again.json["found"], again.json["requests"]) == (4, 0)
    shown = geode(home, "judge", *words, "escalate.jev.highest=1.0", more=keys)
    assert "llm alone would have cost about" in shown.out
