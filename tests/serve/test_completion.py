"""The judge of a session's completion check: kept with the session, paid as the judge, and never a pass when down."""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pytest

from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.dev.fake_provider.script import Call, Failure, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.executor.policy import Mode
from geode.llm.errors import ConfigurationError, CredentialMissing
from geode.loop.turn import TurnStop
from geode.records.purse import Account
from geode.scaffold import Scaffold, ToolChoice, ToolPlan
from geode.serve import completion
from geode.serve.accounts import Judged, spendings
from geode.serve.completion import completion_offer
from geode.serve.services import Session, SharedServices
from tests.doubles.models import ScriptedModel, says
from tests.doubles.provider import keys_of

CLAUDE = "anthropic/claude-opus-5-5"


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return "asyncio", {}  # replies come over a socket


@pytest.fixture
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


def verdict(met: int) -> Step:
    entry = {"rationale": "As the record shows.", "score": met}
    return Step(calls=(Call(name="give_judgment", arguments={"request_met": entry, "claims_hold": entry}),))


def services(tmp_path: Path, environment: Mapping[str, str]) -> SharedServices:
    return SharedServices(Settings(root=StateRoot(tmp_path / "root"), tracking_uri=None, environment=environment))


def opened(of: SharedServices, tmp_path: Path, *answers: str, **more: Any) -> Session:
    (tmp_path / "workspace").mkdir(exist_ok=True)
    check = completion_offer().check(CLAUDE)
    more.setdefault("mode", Mode.REPL)
    return of.create_session(
        scaffold=Scaffold(tools=ToolPlan(tools=(ToolChoice(name="read_file"),)), completion=check),
        model="simulated/apprentice",
        workspace=tmp_path / "workspace",
        folder=tmp_path / "root" / "sessions" / "s",
        adapter=ScriptedModel([says(answer) for answer in answers]),
        **more,
    )


async def test_it_sends_an_answer_back_and_is_paid_on_the_session_as_the_judge(
    tmp_path: Path, double: FakeProvider
) -> None:
    double.play(Script(steps=(verdict(0), verdict(1))))
    shared = services(tmp_path, keys_of(double))
    assert shared.judged("s") is None
    session = opened(shared, tmp_path, "half", "whole")
    result = await session.arun("Do it.")
    session.close()
    assert (result.text, result.verified, result.repairs_used) == ("whole", True, 1)
    rows = spendings(shared.settings.root, shared.clock)
    assert [(row.spender.session, row.spender.role, row.model) for row in rows] == [("s", "judge", CLAUDE)] * 2
    assert shared.judged("s") == Judged(cost_usd=float(sum(row.cost_usd or 0 for row in rows)))
    assert shared.judged("another") is None


async def test_a_session_that_is_opened_again_has_its_judge_again(tmp_path: Path, double: FakeProvider) -> None:
    session = opened(services(tmp_path, keys_of(double)), tmp_path)
    session.close()
    with pytest.raises(CredentialMissing, match="ANTHROPIC_API_KEY"):
        services(tmp_path, {}).reopen_session(session.folder.path, tmp_path / "workspace")
    double.play(Script(steps=(verdict(1),)))
    again = services(tmp_path, keys_of(double)).reopen_session(
        session.folder.path, tmp_path / "workspace", adapter=ScriptedModel([says("done")])
    )
    result = await again.arun("Do it.")
    again.close()
    assert (result.verified, len(double.requests)) == (True, 1)


async def test_one_that_is_down_or_may_not_spend_passes_nothing(tmp_path: Path, double: FakeProvider) -> None:
    """What it could not be asked about is delivered, and called what it is: not verified."""
    double.play(Script(then=Step(failure=Failure.BAD_KEY)))
    session = opened(services(tmp_path, keys_of(double)), tmp_path, "done", account=Account(session_usd=5))
    down = await session.arun("Do it.")
    session.close()
    assert (down.text, down.verified, down.stop) == ("done", False, TurnStop.ESCALATED)
    asked = len(double.requests)
    poor = services(tmp_path, keys_of(double)).reopen_session(
        session.folder.path, tmp_path / "workspace", adapter=ScriptedModel([says("done")]), budget_usd=0.0001
    )
    capped = await poor.arun("Once more.")
    poor.close()
    assert (capped.verified, len(double.requests)) == (False, asked)
    assert "--budget=0.0001" in capped.detail


async def test_a_ledger_that_cannot_be_read_makes_the_cost_of_a_judge_unknown_and_no_other_figure(
    tmp_path: Path, double: FakeProvider
) -> None:
    double.play(Script(steps=(verdict(1),)))
    shared = services(tmp_path, keys_of(double))
    session = opened(shared, tmp_path, "done")
    await session.arun("Do it.")
    session.close()
    shared.settings.root.spend.write_bytes(b"no database" * 1000)
    assert shared.judged("s") == Judged(cost_usd=None)
    assert services(tmp_path, {}).judged("s") is None


def test_what_cannot_judge_is_refused_before_the_session_begins(tmp_path: Path) -> None:
    with pytest.raises(CredentialMissing):
        opened(services(tmp_path, {}), tmp_path)
    assert not (tmp_path / "root" / "sessions").exists()


def test_an_experiment_opens_its_own(tmp_path: Path) -> None:
    """Its judge is that of the role, and counted as such: none is opened beside it, so that no key is needed here."""
    opened(services(tmp_path, {}), tmp_path, mode=Mode.EXPERIMENT).close()


def test_without_an_offer_nothing_is_bound_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "entry_points", EntryPoints().select)
    with pytest.raises(ConfigurationError, match=r"install geode-agent again"):
        completion_offer()
