"""Facts of `geode.serve.policy`: whose files count, and that the state root is nobody's to write."""

from pathlib import Path

import pytest

from geode.config.paths import StateRoot
from geode.executor.policy import Authority, Mode
from geode.executor.rulings import Policy
from geode.llm.messages import ModelResponse, StepSnapshot, ToolResult
from geode.records.timeline import read_timeline
from geode.serve.policy import Policies
from geode.tools.files import write_file_tool
from geode.tools.workspace import Workspace
from tests.doubles.models import calls, says
from tests.serve.test_delegation import anyio_backend, opened

__all__ = ["anyio_backend"]


def writes(policy: Policy, workspace: Path, path: str) -> Authority:
    spec = write_file_tool(Workspace(workspace))
    arguments = {"path": path, "content": ""}
    return policy.judge(spec, arguments, spec.claims(arguments)).ruling.authority


@pytest.mark.parametrize(
    ("root", "denied", "free"),
    [
        ("ws/state", "state/sessions/x/session.db", "other/x"),
        ("ws/.agent/state", ".agent/state/policy.yaml", ".agent/x"),
        ("ws", "anything", None),
        ("elsewhere", None, "elsewhere/sessions/x"),
        (".", None, "sessions/x"),
    ],
)
def test_the_state_root_is_never_written_by_a_tool_wherever_it_lies(
    tmp_path: Path, root: str, denied: str | None, free: str | None
) -> None:
    """A16: an agent that can write its own records can say what it likes of itself."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    policy = Policies.read(StateRoot((tmp_path / root).resolve())).of(Mode.EXPERIMENT, workspace)
    if denied is not None:
        assert writes(policy, workspace, denied) is Authority.DENY
    if free is not None:
        assert writes(policy, workspace, free) is Authority.ALLOW


def test_the_operators_file_is_read_once_and_a_projects_when_a_session_opens(tmp_path: Path) -> None:
    """What a running agent writes into either does not change what it may do."""
    root, workspace = tmp_path / "root", tmp_path / "ws"
    (workspace / ".geode").mkdir(parents=True)
    root.mkdir()
    (root / "policy.yaml").write_text("schema: geode.policy/1\nrules: [{deny: write_file, path: a}]\n")
    policies = Policies.read(StateRoot(root))
    (root / "policy.yaml").write_text("schema: geode.policy/1\n")
    (workspace / ".geode" / "policy.yaml").write_text("schema: geode.policy/1\nrules: [{deny: write_file, path: b}]\n")
    policy = policies.of(Mode.REPL, workspace)
    (workspace / ".geode" / "policy.yaml").unlink()
    assert [writes(policy, workspace, path).value for path in ("a", "b", "c")] == ["deny", "deny", "ask"]


async def test_a_child_has_its_parents_policy_whatever_became_of_the_file_since(tmp_path: Path) -> None:
    """A24: no right that the parent has not, also if something removed the project's rules in between."""
    file = tmp_path / "workspace" / ".geode" / "policy.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("schema: geode.policy/1\nrules: [{deny: write_file, path: frozen, modes: [experiment]}]\n")

    def removed(_: StepSnapshot) -> ModelResponse:
        file.unlink()
        return calls(("d", "delegate_task", '{"agent": "writer", "task": "Write."}'))

    writes_it = calls(("w", "write_file", '{"path": "frozen", "content": "x"}'))
    session, model = opened(tmp_path, [removed, writes_it, says("Could not."), says("done")])
    await session.arun("go")
    session.close()
    events = read_timeline(session.folder.timeline)
    assert any(event["kind"] == "notice" and event["about"] == "policy" for event in events)
    assert not (tmp_path / "workspace" / "frozen").exists()
    blocks = [block for message in model.asked[2].messages for block in message.blocks]
    (block,) = [block for block in blocks if isinstance(block, ToolResult)]
    assert block.text == (
        "refused at policy: a rule forbids it [.geode/policy.yaml, rules.0: deny write_file path 'frozen']"
    )
