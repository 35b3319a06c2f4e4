"""Done line 5 of the judges, on the real engine: of a judge with 30 % malformed replies exactly those are unscored.

What statistics and the gate make of it stands in `test_malformed_judge`.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from geode.dev.fake_provider.script import Step
from geode.dev.fake_provider.server import FakeProvider
from judges.judgment import NoValue, Unscored
from tests.judges.jev_house import RUBRIC
from tests.judges.llm_house import MODELS, SOUND, House, call, said
from tests.judges.views import view

BROKEN = ("{", "I would give it a 7.", '{"care": 10}', '{"care": {"rationale": "x", "score": NaN}}', "[ERROR] 500")
EPISODES, MALFORMED = 20, frozenset({0, 3, 4, 11, 12, 19})


@pytest.fixture
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


@pytest.mark.parametrize("model", MODELS)
async def test_exactly_the_malformed_items_are_unscored(double: FakeProvider, model: str) -> None:
    """Each was asked for once more; one that is sound the second time has its value."""
    house = House(double, model)
    steps: list[Step] = []
    for n in range(EPISODES):
        broken = BROKEN[n % len(BROKEN)]
        if n in MALFORMED:
            steps += [said(broken), call(broken)]
        elif n == 7:
            steps += [call(broken), call(scored(n))]
        else:
            steps.append(call(scored(n)))
    house.play(*steps)
    engine = house.open()
    judgments = [await engine.judge(replace(view(), episode=f"e{n}"), RUBRIC) for n in range(EPISODES)]
    assert double.steps_left == 0
    for n, judgment in enumerate(judgments):
        if n in MALFORMED:
            reasons = [entry.reason for entry in judgment.dimensions.values() if isinstance(entry, NoValue)]
            assert reasons == [Unscored.PARSE_FAILURE] * 3
        else:
            assert judgment.scored["care"].value == 1 + n % 10
            assert len(judgment.scored) == 3
        assert len(judgment.asked) == (2 if n in MALFORMED or n == 7 else 1)
    values = [judgment.scored["care"].value for judgment in judgments if judgment.scored]
    sound = [1 + n % 10 for n in range(EPISODES) if n not in MALFORMED]
    assert sum(values) / len(values) == sum(sound) / len(sound)


def scored(n: int) -> object:
    return {**SOUND, "care": {"rationale": "As it is.", "score": 1 + n % 10}}
