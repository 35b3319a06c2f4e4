"""Done line 2 of the judges: `geode judge RUN --engine jev`, with the network cut in the middle, goes on where it was.

As it is typed, against the strict double, through both routes: nothing is judged or paid for twice.
"""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geode.clock import SystemClock
from geode.config.config_dir import config_dir
from geode.config.paths import StateRoot
from geode.dev.fake_provider.script import Failure, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from geode.llm.usage import CostOrigin
from geode.records.spend import Spending, SpendLedger
from judges.catalogue import EngineParts, open_engine, read_choice
from judges.jev_wire import WAYS
from judges.judgment import Judgment
from judges.ledger import is_settled, read_judgments
from tests.done.command import Ran, geode, start
from tests.doubles.judging import swept_root
from tests.doubles.provider import keys_of

pytestmark = pytest.mark.slow

ITEMS = 8  # four episodes, judged twice each
CUT = Step(failure=Failure.DROPPED)
_BANDS = (f"1e-{exponent}" for exponent in range(10, 100))


class House:
    """One swept root for all tests: by a band of its own, each asks as an engine of its own."""

    def __init__(self, root: StateRoot, double: FakeProvider, band: str) -> None:
        self.root, self.double = root, double
        self.keys = keys_of(double)
        self._band = band
        self._before = len(self._costs())

    def words(self, route: Route, *more: str) -> tuple[str, ...]:
        asked = ("judge", "quick", f"abstain_below.score={self._band}", "--engine", "jev", "--route", route)
        return (*asked, "--repeat", "2", "--root", str(self.root.path), *more)

    def judge(self, route: Route, *more: str) -> Ran:
        return geode(self.root.path.parent, *self.words(route, *more), more=self.keys)

    def start(self, route: Route, *more: str) -> "subprocess.Popen[str]":
        return start(self.root.path.parent, *self.words(route, *more), more=self.keys)

    def engine_id(self, route: Route) -> str:
        choice = read_choice(config_dir() / "judge", "jev", [f"abstain_below.score={self._band}", f"route={route}"])
        return open_engine(choice, EngineParts(clock=SystemClock(), environment=self.keys)).engine_id

    def given(self, route: Route) -> list[Judgment]:
        """All judgments that were kept."""
        kept = (judgment for file in self._ledgers() for judgment in read_judgments(file))
        return [judgment for judgment in kept if judgment.engine_id == self.engine_id(route)]

    def settled(self, route: Route) -> list[Judgment]:
        """Those of them that say something."""
        return [judgment for judgment in self.given(route) if is_settled(judgment)]

    @property
    def answered(self) -> int:
        """How many requests the provider answered, and billed."""
        return sum(request.error is None for request in self.double.requests)

    @property
    def paid(self) -> list[Spending]:
        """What the ledger of all spending knows the cost of."""
        return self._costs()[self._before :]

    def _ledgers(self) -> list[Path]:
        return sorted(self.root.episodes.rglob("judgments.jsonl"))

    def _costs(self) -> list[Spending]:
        with closing(SpendLedger(self.root.spend, SystemClock())) as ledger:
            return [row for row in ledger.all() if row.cost_usd is not None]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> StateRoot:
    return swept_root(tmp_path_factory.mktemp("swept"))


@pytest.fixture
def house(root: StateRoot) -> Iterator[House]:
    with FakeProvider() as double:
        yield House(root, double, next(_BANDS))


@pytest.mark.parametrize("route", WAYS, ids=str)
def test_a_network_that_is_cut_in_the_middle_costs_nothing_twice(house: House, route: Route) -> None:
    house.double.play(Script(steps=(Step(),) * 3, then=CUT))
    first = house.judge(route, "--json")
    assert first.code == 1, first.err
    assert (house.answered, len(house.settled(route)), first.json["left"]) == (3, 3, ITEMS - 3)

    house.double.play(Script())
    second = house.judge(route, "--json")
    assert second.code == 0, second.err
    assert (second.json["found"], second.json["left"], second.json["requests"]) == (3, 0, ITEMS - 3)
    assert house.answered == len(house.double.requests) == ITEMS - 3

    kept = house.settled(route)
    assert len({judgment.key for judgment in kept}) == len(kept) == ITEMS
    assert Counter(judgment.repetition for judgment in kept) == {0: 4, 1: 4}
    assert [len(judgment.asked) for judgment in kept] == [1] * ITEMS
    origin = CostOrigin.REPORTED if route is Route.OPENROUTER else CostOrigin.COMPUTED
    assert {judgment.asked[0].cost_origin for judgment in kept} == {origin}
    assert {(row.spender.role, row.model) for row in house.paid} == {("judge", WAYS[route].model)}
    assert len(house.paid) == ITEMS
    costs = sum(judgment.cost_usd or 0 for judgment in kept)
    assert float(sum(row.cost_usd or 0 for row in house.paid)) == pytest.approx(costs, abs=1e-8)

    third = house.judge(route, "--json")
    assert (third.code, third.json["found"], third.json["requests"]) == (0, ITEMS, 0)
    assert len(house.double.requests) == ITEMS - 3


def test_a_command_that_is_killed_asks_again_for_no_more_than_what_was_under_way(house: House) -> None:
    """The provider may have answered a request whose reply nobody was there to keep; no other is sent twice."""
    route = Route.OPENROUTER
    house.double.play(Script(latency_ms=300))
    killed = house.start(route, "--concurrency", "1")
    assert house.double.wait(3, timeout_s=60)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    before, kept = house.answered, len(house.settled(route))
    assert kept in (before - 1, before)

    again = house.judge(route, "--json")
    assert again.code == 0, again.err
    assert again.json["found"] == kept
    assert house.answered == before + ITEMS - kept
    assert len({judgment.key for judgment in house.settled(route)}) == len(house.settled(route)) == ITEMS


def test_a_judge_that_is_down_is_no_score(house: House) -> None:
    """It says why, and that the same command goes on."""
    house.double.play(Script(then=Step(failure=Failure.BAD_KEY)))
    down = house.judge(Route.TYPESAFE)
    assert down.code == 1
    assert "AuthenticationFailed" in down.out
    assert "the same command goes on" in down.out
    assert house.double.key(Route.TYPESAFE) not in down.out + down.err
    assert house.given(Route.TYPESAFE) != []
    assert all(judgment.scored == {} for judgment in house.given(Route.TYPESAFE))


def test_a_key_that_is_missing_is_named_before_anything_is_asked(house: House) -> None:
    """PROVIDERS 30: that the other route has one changes nothing."""
    del house.keys["OPENROUTER_API_KEY"]
    refused = house.judge(Route.OPENROUTER)
    assert (refused.code, len(house.double.requests)) == (2, 0)
    assert "OPENROUTER_API_KEY" in refused.err
