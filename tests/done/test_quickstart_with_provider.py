"""Done line 4: a preset on a provider's model gives tokens and cost by role; a cap stops before it is passed, and the
same command goes on later, with nothing counted twice. Against the strict double, through the real SDK.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from experiments.episode import EpisodeRecord
from geode.clock import SystemClock
from geode.config.paths import StateRoot
from geode.dev.fake_provider.script import Call, Figures, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from geode.records.spend import Spending, SpendLedger
from tests.done.command import Ran, geode

pytestmark = pytest.mark.slow

MODEL = "anthropic/claude-opus-5-5"
QUICKSTART = ("run", "experiment=quickstart", "role/target=anthropic_default")
EPISODES, ROUNDS = 6, 3  # of the preset; of the script's agent in each
FIGURES = Figures(input_tokens=100, cache_read_tokens=20, output_tokens=10, reasoning_tokens=4)
LOOKS = Step(calls=(Call(name="list_files", arguments={"path": "."}),), figures=FIGURES)
LONG = replace(LOOKS, figures=Figures(input_tokens=3_500, cache_read_tokens=0, cache_write_tokens=0, output_tokens=10))
"""After it the next call may be dear: it reads all that again, perhaps at the double price of a new cache."""
DONE = Step(text="I looked at the files and changed nothing.", figures=FIGURES)


@pytest.fixture
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


def run(home: Path, double: FakeProvider, *arguments: str) -> Ran:
    reached = {
        "ANTHROPIC_API_KEY": double.key(Route.ANTHROPIC),
        "ANTHROPIC_BASE_URL": double.base_url(Route.ANTHROPIC),
    }
    return geode(home, *arguments, "--root", str(home / "root"), more=reached)


def price(double: FakeProvider) -> Decimal:
    """What the double's own count of answers comes to, by the catalogue's prices in plain sight."""
    usd_a_million = {"input": Decimal(4), "cache_read": Decimal("0.2"), "output": Decimal(20)}
    one = 100 * usd_a_million["input"] + 20 * usd_a_million["cache_read"] + 10 * usd_a_million["output"]
    return one / 1_000_000 * sum(request.status == 200 for request in double.requests)


def ledger(home: Path) -> list[Spending]:
    opened = SpendLedger(StateRoot(home / "root").spend, SystemClock())
    with closing(opened):
        return list(opened.all())


def spent(rows: list[Spending]) -> Decimal:
    return sum((row.counted_usd for row in rows), Decimal(0))


def episodes(home: Path) -> list[EpisodeRecord]:
    found = (home / "root").glob("episodes/*/*/episode.json")
    return [EpisodeRecord.model_validate_json(path.read_bytes()) for path in found]


def metrics(home: Path) -> dict[str, float]:
    """The figures of the one cell, out of MLflow's own store."""
    with closing(sqlite3.connect(StateRoot(home / "root").mlflow_database)) as store:
        sql = "SELECT key, value FROM latest_metrics m JOIN tags t USING (run_uuid) WHERE t.key = 'geode.cell'"
        return dict(store.execute(sql.replace("SELECT key", "SELECT m.key").replace(", value", ", m.value")))


def test_a_preset_on_a_provider_gives_tokens_and_cost_by_role(tmp_path: Path, double: FakeProvider) -> None:
    """In the episode, in MLflow, in the warehouse and in the ledger: the same figures, which are the provider's."""
    double.play(Script(steps=(LOOKS, LOOKS, DONE) * EPISODES))
    ran = run(tmp_path, double, *QUICKSTART, "--json")
    assert ran.code == 0, ran.err + ran.out
    calls = EPISODES * ROUNDS
    assert len(double.requests) == calls
    cost = price(double)
    found = metrics(tmp_path)
    assert found["cost_usd.target"] == pytest.approx(float(cost))
    tokens = {kind: found[f"tokens.target.{kind}"] for kind in ("input", "cached", "output", "reasoning")}
    assert tokens == {"input": 120 * calls, "cached": 20 * calls, "output": 10 * calls, "reasoning": 4 * calls}
    assert sum(record.usage["target"].cost_usd for record in episodes(tmp_path)) == pytest.approx(float(cost))
    rows = ledger(tmp_path)
    assert (len(rows), spent(rows)) == (calls, cost)
    assert {(row.model, row.spender.role, row.spender.experiment) for row in rows} == {(MODEL, "target", "quickstart")}
    costs = run(tmp_path, double, "costs", "--by", "experiment", "--json").json
    assert costs["lines"] == [costs["total"] | {"name": "quickstart"}]  # type: ignore[operator]
    assert costs["total"]["cost_usd"] == pytest.approx(float(cost))  # type: ignore[call-overload, index]
    assert run(tmp_path, double, *QUICKSTART, "--json").json["to_run"] == 0
    assert len(double.requests) == calls, "what is on record is not asked for again"


def test_a_cap_of_one_cent_sends_nothing_that_could_pass_it(tmp_path: Path, double: FakeProvider) -> None:
    """One answer of this model may cost more than that: the command says so, and what to type."""
    ran = run(tmp_path, double, *QUICKSTART, "budget.cost_usd=0.01")
    assert ran.code == 4, ran.err + ran.out
    assert "Stopped: budget.cost_usd=0.01 US dollars: 0.00 are spent" in ran.out
    assert "this alone is above the cap: raise budget.cost_usd, or set max_output_tokens lower" in ran.out
    assert "6 of 6 episodes are still to run; what is done is kept." in ran.out
    assert double.requests == ()
    assert spent(ledger(tmp_path)) == 0


@pytest.mark.parametrize("executor", ["local", "workers"])
def test_a_cap_stops_in_the_middle_and_more_money_goes_on(tmp_path: Path, double: FakeProvider, executor: str) -> None:
    """Each command spends at most one cent by the ledger, which has the double's count; all episodes come to an end."""
    double.play(Script(steps=(LOOKS, LOOKS, DONE, LOOKS, LONG), then=DONE))
    cap = Decimal("0.01")
    command = (
        *QUICKSTART, "repeats=1", "--json", "role.target.model=anthropic/claude-haiku-4-5-20251001",
        "role.target.max_output_tokens=50", f"budget.cost_usd={cap}", f"executor={executor}",
        *(("executor.workers=2",) if executor == "workers" else ()),
    )  # fmt: skip
    ends: list[int] = []
    seen = 0
    while not ends or ends[-1] == 4:
        ran = run(tmp_path, double, *command)
        ends.append(ran.code)
        rows = ledger(tmp_path)
        assert len(rows) == len(double.requests), "one row a request, and none twice"
        mine = rows[seen:]
        assert len({row.spender.command for row in mine}) <= 1
        assert 0 < spent(mine) <= cap, ran.err
        seen = len(rows)
        assert len(ends) < 9, "it never comes to its end"
    assert ends[-1] == 0, ran.err
    assert len(ends) > 1, "the cap was never met"
    finished = episodes(tmp_path)
    assert [record.stop_reason for record in finished] == ["completed"] * 3
    counted = sum(Decimal(repr(record.usage["target"].cost_usd)) for record in finished)
    assert metrics(tmp_path)["cost_usd.target"] == pytest.approx(float(counted))
    assert list((tmp_path / "root" / "set_aside").iterdir()), "an episode that met the cap is no outcome"
    if executor == "local":  # which of two workers meets it, and how far that had come, nobody knows
        assert counted < spent(rows), "what it had spent is spent, and is in no episode"
    by_session = {row.spender.session for row in rows}
    assert by_session == {record.episode_key for record in finished}


def test_a_session_that_met_its_cap_goes_on_when_there_is_money(tmp_path: Path, double: FakeProvider) -> None:
    """Its prompt stays open, nothing of it is asked or counted twice, and a ledger that is lost is made anew."""
    dear = replace(LONG, figures=replace(LONG.figures, input_tokens=7_000))
    double.play(Script(steps=(LOOKS, dear, DONE)))
    model = ("--model", "anthropic/claude-haiku-4-5-20251001", "--max-output-tokens", "50")
    asked = run(tmp_path, double, "ask", "What is here?", *model, "--budget", "0.015", "--json")
    assert (asked.code, asked.json["stop"]) == (1, "budget_reached"), asked.err
    session = str(asked.json["session"])
    assert f"geode sessions resume {session} --budget USD" in str(asked.json["detail"])
    assert Decimal(0) < spent(ledger(tmp_path)) <= Decimal("0.015")
    again = run(tmp_path, double, "sessions", "resume", session, "--json")
    assert (again.code, again.json["stop"]) == (1, "budget_reached"), "the cap is kept with the session"
    more = run(tmp_path, double, "sessions", "resume", session, "--json", "--budget", "0.05")
    assert (more.code, more.json["stop"]) == (0, "completed"), more.err
    rows = ledger(tmp_path)
    assert len(rows) == len(double.requests) == 3
    assert {row.spender.session for row in rows} == {session}
    costs = run(tmp_path, double, "costs", "--by", "session", "--json").json
    (tmp_path / "root" / "spend.db").unlink()
    assert run(tmp_path, double, "costs", "--by", "session", "--json").json == costs


def test_a_served_model_that_differs_is_no_score(tmp_path: Path, double: FakeProvider) -> None:
    """PROVIDERS 26: the run fails and says why; what was paid for is in the ledger all the same."""
    other = replace(DONE, served_model="claude-opus-5")
    double.play(Script(steps=(other,), then=DONE))
    ran = run(tmp_path, double, *QUICKSTART, "repeats=1", "--json")
    assert ran.code == 1, ran.err
    reason = str(ran.json["invalid_reasons"])
    assert "ServedModelDiffers" in reason
    assert "'claude-opus-5'" in reason
    assert sorted(record.outcome.kind.value for record in episodes(tmp_path)) == ["FAIL", "FAIL", "INVALID"]
    assert (len(ledger(tmp_path)), spent(ledger(tmp_path))) == (3, price(double))
