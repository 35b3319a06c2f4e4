"""`geode ask --judge`, as it is installed: who judges, what it costs, and what an answer counts for that fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from geode.dev.fake_provider.script import Call, Failure, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from tests.done.command import Ran, geode
from tests.doubles.provider import keys_of

GPT, CLAUDE = "openai/gpt-6-sol", "anthropic/claude-opus-5-5"


@pytest.fixture(scope="module")
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


def verdict(met: int) -> Step:
    entry = {"rationale": "As the record shows.", "score": met}
    return Step(calls=(Call(name="give_judgment", arguments={"request_met": entry, "claims_hold": entry}),))


def play(double: FakeProvider, *judged: Step, route: Route = Route.ANTHROPIC) -> None:
    double.play(Script(by_route={route: judged}, then=Step(text="All is done.")))


def ask(home: Path, double: FakeProvider, judge: str, *more: str) -> Ran:
    words = ("ask", "Is it done?", "--model", GPT, "--judge", judge, "--root", str(home / "root"))
    return geode(home, *words, *more, more=keys_of(double))


@pytest.mark.slow
def test_the_judge_sends_an_answer_back_and_its_cost_is_told_and_in_the_ledger(
    tmp_path: Path, double: FakeProvider
) -> None:
    play(double, verdict(0), verdict(1))
    ran = ask(tmp_path, double, CLAUDE)
    assert (ran.code, ran.out) == (0, "All is done.\n"), ran.err
    costs = geode(tmp_path, "costs", "--by", "role", "--root", str(tmp_path / "root"))
    (line,) = [line for line in costs.out.splitlines() if line.startswith("judge")]
    told = ran.err.split(", judge ")[1].split(" USD")[0]
    assert float(told) > 0
    assert told in line


@pytest.mark.slow
def test_an_answer_that_the_judge_could_not_be_asked_about_is_not_verified(
    tmp_path: Path, double: FakeProvider
) -> None:
    play(double, *[Step(failure=Failure.BAD_KEY)] * 4)
    ran = ask(tmp_path, double, CLAUDE)
    assert (ran.code, ran.out) == (3, "All is done.\n")
    assert "[not verified: llm gave no value for request_met (infrastructure)." in ran.err


@pytest.mark.slow
def test_the_decision_model_judges_where_it_is_named(tmp_path: Path, double: FakeProvider) -> None:
    answers = {name: {"type": "noul", "noul": 0.1} for name in ("request_met", "claims_hold")}
    play(double, *[Step(answers=answers)] * 3, route=Route.OPENROUTER)
    ran = ask(tmp_path, double, "jev", "--json")
    assert (ran.code, ran.json["stop"], ran.json["repairs_used"]) == (3, "not_verified", 2), ran.err
    cost = ran.json["judge"]
    assert isinstance(cost, dict)
    assert isinstance(cost["cost_usd"], float)


@pytest.mark.slow
def test_a_session_that_met_its_budget_is_resumed_with_its_judge(tmp_path: Path, double: FakeProvider) -> None:
    play(double, verdict(1))
    stopped = ask(tmp_path, double, CLAUDE, "--budget", "0.0001")
    assert stopped.code == 1
    assert len(double.requests) == 0
    resume = ("sessions", "resume", "last", "--budget", "5", "--root", str(tmp_path / "root"))
    ran = geode(tmp_path, *resume, more=keys_of(double))
    assert (ran.code, ran.out) == (0, "All is done.\n"), ran.err
    assert ", judge 0." in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "said"),
    [("nobody", "there is no judge 'nobody'"), ("openai/gpt-6-astra", "are both of the family openai")],
)
def test_who_may_not_judge_is_refused_before_anybody_is_asked(
    tmp_path: Path, double: FakeProvider, judge: str, said: str
) -> None:
    play(double)
    ran = ask(tmp_path, double, judge)
    assert (ran.code, len(double.requests)) == (1, 0)
    assert said in ran.err
    assert not (tmp_path / "root" / "sessions").exists()
