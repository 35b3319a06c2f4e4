"""Facts of sessions on a provider's model: what was asked for is sent, kept, and handed on to sub-agents."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.dev.fake_provider.script import Call, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.executor.policy import Mode
from geode.llm.binding import Effort, ModelOptions
from geode.llm.errors import CredentialMissing
from geode.llm.messages import Delta, DeltaKind
from geode.records.folder import SessionFolder
from geode.scaffold import LoopLimits, Scaffold, SubAgentContract, ToolChoice, ToolPlan
from geode.serve.services import Session, SharedServices
from geode.serve.session_spec import SessionSpec
from tests.doubles.provider import keys_of

OPUS = "anthropic/claude-opus-5-5"
HELPER = SubAgentContract(name="helper", tools=("read_file",))


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return "asyncio", {}  # replies come over a socket


@pytest.fixture
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


def services(tmp_path: Path, environment: Mapping[str, str]) -> SharedServices:
    return SharedServices(Settings(root=StateRoot(tmp_path / "root"), tracking_uri=None, environment=environment))


def opened(tmp_path: Path, environment: Mapping[str, str], model: str = OPUS, **more: Any) -> Session:
    (tmp_path / "workspace").mkdir(exist_ok=True)
    more.setdefault("mode", Mode.REPL)
    tools = ToolPlan(tools=(ToolChoice(name="read_file"), ToolChoice(name="delegate_task")))
    return services(tmp_path, environment).create_session(
        scaffold=Scaffold(tools=tools, sub_agents=(HELPER,)),
        model=model,
        workspace=tmp_path / "workspace",
        folder=tmp_path / "root" / "sessions" / "s",
        **more,
    )


async def test_what_was_asked_for_is_sent_and_holds_when_the_session_is_opened_again(
    tmp_path: Path, double: FakeProvider
) -> None:
    """A tool loop keeps one thinking configuration (PROVIDERS 19), also over a restart."""
    double.play(Script(steps=(Step(text="one"), Step(text="two"))))
    options = ModelOptions(effort=Effort.LOW, max_output_tokens=5_000)
    session = opened(tmp_path, keys_of(double), options=options)
    await session.arun("first")
    session.close()
    again = services(tmp_path, keys_of(double)).reopen_session(session.folder.path, tmp_path / "workspace")
    await again.arun("second")
    again.close()
    sent = [(request.body["max_tokens"], request.body["output_config"]["effort"]) for request in double.requests]
    assert sent == [(5_000, "low"), (5_000, "low")]


def test_a_session_that_was_stored_without_options_has_none(tmp_path: Path) -> None:
    session = opened(tmp_path, {}, model="simulated/apprentice")
    session.close()
    body = SessionFolder(session.folder.path).read_state()
    del body["options"]
    assert SessionSpec.from_json(body).options == ModelOptions()


async def test_a_sub_agent_is_asked_by_the_same_route_and_nobody_watches_it_write(
    tmp_path: Path, double: FakeProvider
) -> None:
    task = Call(name="delegate_task", arguments={"agent": "helper", "task": "Look."})
    double.play(Script(steps=(Step(calls=(task,)), Step(text="It is empty."), Step(text="done"))))
    shown: list[Delta] = []

    def watch(delta: Delta) -> None:
        shown.append(delta)

    options = ModelOptions(effort=Effort.MAX)
    session = opened(tmp_path, keys_of(double), mode=Mode.EXPERIMENT, options=options, on_delta=watch)
    result = await session.arun("Ask your helper.")
    session.close()
    assert result.text == "done"
    child = double.requests[1].body
    assert (child["model"], child["output_config"]["effort"]) == ("claude-opus-5-5", "max")
    assert "Look." in json.dumps(child["messages"])
    assert "".join(delta.text for delta in shown if delta.kind is DeltaKind.TEXT) == "done"


@pytest.mark.parametrize(
    ("model", "asked", "context"),
    [
        ("openrouter/some/model", 150_000, 112_000),
        ("openrouter/some/model", 20_000, 20_000),
        (OPUS, 150_000, 150_000),
        ("simulated/apprentice", 150_000, 150_000),
    ],
)
def test_the_context_is_within_the_scaffolds_limit_and_within_the_window(
    tmp_path: Path, double: FakeProvider, model: str, asked: int, context: int
) -> None:
    """Compaction has to begin before the provider refuses."""
    session = services(tmp_path, keys_of(double)).create_session(
        mode=Mode.REPL,
        scaffold=Scaffold(tools=ToolPlan(tools=()), limits=LoopLimits(context_tokens=asked)),
        model=model,
        workspace=tmp_path,
        folder=tmp_path / "root" / "sessions" / "s",
    )
    assert session.loop.left.context_tokens == context
    session.close()


def test_without_a_key_nothing_of_a_session_is_made(tmp_path: Path) -> None:
    with pytest.raises(CredentialMissing, match="ANTHROPIC_API_KEY"):
        opened(tmp_path, {})
    assert not (tmp_path / "root").exists()
