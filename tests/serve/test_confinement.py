"""Facts of the sandbox of sessions: who has one by default, who may say otherwise, and what a session refuses."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.executor.approval import Approval, ApprovalRequest
from geode.executor.policy import Mode
from geode.llm.errors import ConfigurationError
from geode.records.timeline import read_timeline
from geode.serve.default import default_scaffold
from geode.serve.policy import Confinement, Policies
from geode.serve.services import Session, SharedServices
from geode.tools.environment import LOCAL, Environment
from geode.tools.sandbox import SandboxUse, bubblewrap, why_no_sandbox
from tests.doubles.models import ScriptedModel, calls, says
from tests.doubles.sandboxes import needs_bwrap, plain
from tests.serve.test_delegation import results, scaffold

OFF, AUTO, REQUIRE = SandboxUse
LOOK = calls(("s", "shell", json.dumps({"command": "pwd; ls /root /home"})))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _tried_anew() -> Iterator[None]:
    why_no_sandbox.cache_clear()
    yield
    why_no_sandbox.cache_clear()


class Yes:
    """Approves everything."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval.ONCE


def say(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text(f"schema: geode.policy/1\n{text}\n")


def services(tmp_path: Path) -> SharedServices:
    return SharedServices(Settings(root=StateRoot(tmp_path / "root"), tracking_uri=None, environment={}))


def opened(
    tmp_path: Path, mode: Mode, model: ScriptedModel, environment: Environment | None = None, name: str = "s"
) -> Session:
    (tmp_path / "ws").mkdir(exist_ok=True)
    return services(tmp_path).create_session(
        mode=mode,
        scaffold=scaffold(),
        model="simulated/script",
        workspace=tmp_path / "ws",
        folder=tmp_path / "root" / "sessions" / name,
        adapter=model,
        approver=Yes(),
        environment=environment,
    )


@pytest.mark.parametrize(
    ("own", "project", "mode", "use", "network"),
    [
        ("", "", Mode.REPL, AUTO, True),
        ("", "", Mode.DAEMON, AUTO, False),
        ("", "", Mode.EXPERIMENT, OFF, False),
        ("modes: {daemon: {sandbox: require, network: true}}", "", Mode.DAEMON, REQUIRE, True),
        ("modes: {repl: {sandbox: off}}", "", Mode.REPL, OFF, True),
        ("modes: {repl: {sandbox: off}}", "", Mode.IPC, AUTO, True),
        ("modes: {experiment: {sandbox: require}}", "", Mode.EXPERIMENT, REQUIRE, False),
        ("", "modes: {repl: {sandbox: require, network: false}}", Mode.REPL, REQUIRE, False),
        ("modes: {repl: {sandbox: off}}", "modes: {repl: {sandbox: auto}}", Mode.REPL, AUTO, True),
        # A project cannot loosen anything.
        ("", "modes: {repl: {sandbox: off}, daemon: {network: true}}", Mode.REPL, AUTO, True),
        ("", "modes: {daemon: {sandbox: off, network: true}}", Mode.DAEMON, AUTO, False),
        ("modes: {repl: {network: false}}", "modes: {repl: {network: true}}", Mode.REPL, AUTO, False),
    ],
)
def test_the_operator_says_it_for_a_mode_and_a_project_can_only_tighten(
    tmp_path: Path, *, own: str, project: str, mode: Mode, use: SandboxUse, network: bool
) -> None:
    """A17. By default everybody but an experiment, which has its own configuration, is confined where that works."""
    say(tmp_path / "root", own)
    say(tmp_path / "ws" / ".geode", project)
    found = Policies.read(StateRoot(tmp_path / "root")).confinement(mode, tmp_path / "ws")
    assert found == Confinement(use=use, network=network)


@needs_bwrap
@pytest.mark.parametrize("mode", [Mode.REPL, Mode.DAEMON])
async def test_a_session_executes_in_the_sandbox_and_is_opened_again_in_it(tmp_path: Path, mode: Mode) -> None:
    say(tmp_path / "root", "rules: [{allow: shell, command: pwd, modes: [daemon]}]")
    model = ScriptedModel([calls(("s", "shell", '{"command": "pwd"}')), says("done")])
    session = opened(tmp_path, mode, model)
    await session.arun("Where are you?")
    session.close()
    assert [result.text for result in results(model)] == ["exit code: 0\n/workspace"]
    assert session.spec.environment == bubblewrap(network=mode is Mode.REPL)
    again = services(tmp_path).reopen_session(session.folder.path, tmp_path / "ws", adapter=model)
    again.close()
    assert again.spec.environment == session.spec.environment


@needs_bwrap
async def test_git_runs_there_too(tmp_path: Path) -> None:
    """On the repository as the host has it."""
    say(tmp_path / "root", "rules: [{allow: shell, command: git *, modes: [daemon]}]")
    make = calls(("s", "shell", '{"command": "git init -q && git add . && git status --short"}'))
    model = ScriptedModel([make, calls(("g", "git_status", "{}")), says("done")])
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a").write_text("a")
    session = services(tmp_path).create_session(
        mode=Mode.DAEMON,
        scaffold=default_scaffold(),
        model="simulated/script",
        workspace=tmp_path / "ws",
        folder=tmp_path / "root" / "sessions" / "g",
        adapter=model,
    )
    await session.arun("What changed?")
    session.close()
    assert "A  a" in results(model)[0].text


def test_a_mode_that_requires_a_sandbox_refuses_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is none on the machine, or the session is to have none; and nothing was made by then."""
    say(tmp_path / "root", "modes: {repl: {sandbox: require}, experiment: {sandbox: require}}")
    monkeypatch.setenv("PATH", str(tmp_path))
    for mode, environment, why in (
        (Mode.REPL, None, "there is no program 'bwrap' on the PATH; install bubblewrap"),
        (Mode.EXPERIMENT, LOCAL, "this session executes outside of one"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            opened(tmp_path, mode, ScriptedModel([]), environment)
        assert str(refused.value) == (
            f"a sandbox is required in {mode} mode (modes.{mode}.sandbox in {tmp_path}/root/policy.yaml, or in the"
            f" .geode/policy.yaml of the project), and {why}"
        )
    assert not (tmp_path / "root" / "sessions").exists()
    opened(tmp_path, Mode.EXPERIMENT, ScriptedModel([]), plain()).close()


async def test_a_session_of_before_that_had_none_is_not_opened_again_where_one_is_required(tmp_path: Path) -> None:
    model = ScriptedModel([says("done")])
    session = opened(tmp_path, Mode.DAEMON, model, LOCAL)
    session.close()
    say(tmp_path / "root", "modes: {daemon: {sandbox: require}}")
    with pytest.raises(ConfigurationError, match="executes outside of one"):
        services(tmp_path).reopen_session(session.folder.path, tmp_path / "ws", adapter=model)


@pytest.mark.parametrize(("mode", "told"), [(Mode.REPL, True), (Mode.EXPERIMENT, False)])
async def test_where_there_is_none_the_session_works_and_its_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, told: bool
) -> None:
    """What ran is what is reported. An experiment's own configuration says it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    model = ScriptedModel([LOOK, says("done")])
    session = opened(tmp_path, mode, model)
    await session.arun("Look.")
    session.close()
    assert "/workspace" in results(model)[0].text
    events = read_timeline(session.folder.timeline)
    notices = [event for event in events if event["kind"] == "notice" and event["about"] == "sandbox"]
    assert bool(notices) is told
