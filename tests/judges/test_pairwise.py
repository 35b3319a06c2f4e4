import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from geode.dev.fake_provider.script import Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from judges.independence import Independent, NotIndependent
from judges.judgment import Judgment, Unscored
from judges.pairwise import Winner, compare_pair, pairwise_rubric
from judges.rubric import Rubric
from judges.view import EpisodeView
from tests.judges import jev_house, llm_house
from tests.judges.jev_house import CARE
from tests.judges.scripted import Said, Scripted
from tests.judges.views import call, view

A = replace(view(call("shell", "3 passed", command="pytest")), episode="a")
B = replace(view(answer="It should work."), episode="b", target="zai/glm-5.3")


class Preferring(Scripted):
    """Says what `prefers` makes of the record that it is shown."""

    prefers: Callable[[str], Said]

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        self.says = {"better": self.prefers(view.steps[0].text)}
        return await super().judge(view, rubric, repetition=repetition)


def preferring(prefers: Callable[[str], Said]) -> Preferring:
    engine = Preferring({}, model="openai/gpt-6-astra")
    engine.prefers = prefers
    return engine


@pytest.fixture
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


@pytest.mark.parametrize(
    ("prefers", "winner"),
    [
        (lambda first: 1 if "pytest" in first else -1, Winner.A),
        (lambda first: -1 if "pytest" in first else 1, Winner.B),
        (lambda _: 0, Winner.TIE),
        (lambda first: 1 if "pytest" in first else 0, Winner.TIE),
        (lambda first: 1 if "pytest" in first else Unscored.REFUSED, Winner.UNDECIDED),
    ],
)
async def test_orders_that_agree_decide(prefers: Callable[[str], Said], winner: Winner) -> None:
    assert (await compare_pair(preferring(prefers), A, B, CARE)).winner is winner


@pytest.mark.parametrize("place", [1, -1])
async def test_a_judge_that_favours_a_place_decides_nothing(place: int) -> None:
    """The first or the second, whoever stands there."""
    compared = await compare_pair(preferring(lambda _: place), A, B, CARE)
    assert compared.winner is Winner.TIE
    assert compared.note == "the two orders do not agree: the place decided, not the episode"
    assert len(compared.judgments) == 2


async def test_both_orders_hold_the_same_two_episodes() -> None:
    engine = preferring(lambda _: 0)
    await compare_pair(engine, A, B, CARE)
    forth, back = engine.views
    inside = [[next(iter(json.loads(step.text).values())) for step in shown.steps] for shown in (forth, back)]
    assert inside[0] == inside[1][::-1]
    assert [next(iter(json.loads(step.text))) for step in back.steps] == ["first_episode", "second_episode"]


async def test_the_guard_of_independence_sees_both_targets() -> None:
    engine = Independent(Scripted({}, model="openrouter/z-ai/glm-5.3"))
    with pytest.raises(NotIndependent, match=r"'zai/glm-5\.3'"):
        await compare_pair(engine, A, B, CARE)


def test_the_better_end_is_told() -> None:
    """Of a fault less is better."""
    assert "which means lower?" in pairwise_rubric(CARE).dimensions[0].question


async def test_a_language_model_compares(double: FakeProvider) -> None:
    house = llm_house.House(double, llm_house.OPENAI)
    first, second = ({"better": {"rationale": "It ran the tests.", "score": label}} for label in ("first", "second"))
    house.play(llm_house.call(first), llm_house.call(second))
    assert (await compare_pair(house.open(), A, B, CARE)).winner is Winner.A
    assert house.asking(0) == house.asking(1)


async def test_a_decision_model_compares(double: FakeProvider) -> None:
    house = jev_house.House(double, Route.TYPESAFE)
    double.play(Script(steps=(_chosen("second"), _chosen("first"))))
    assert (await compare_pair(house.open(), A, B, CARE)).winner is Winner.B


def _chosen(label: str) -> Step:
    shares = {"first": 0.05, "equal": 0.05, "second": 0.05, "cannot_tell": 0.0}
    return Step(answers={"better": {**shares, label: 0.9}})
