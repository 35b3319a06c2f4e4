"""Facts of hooks that a project brings along: inert until they are trusted, and missed aloud when they change."""

import json
from pathlib import Path

import pytest

from geode.config.paths import StateRoot
from geode.executor.policy import Mode
from geode.hooks.hook_file import HookFileError
from geode.llm.messages import ModelResponse, StepSnapshot
from geode.loop.turn import TurnResult
from geode.records.timeline import read_timeline
from geode.serve.project_hooks import find_project_hooks, project_paths, read_project_file
from geode.serve.services import Session
from geode.tools.mcp.trust import TrustStore
from tests.doubles.models import Reply, ScriptedModel, calls, says
from tests.serve.killed_session import SCAFFOLD, services

WRITES = calls(("w", "write_file", '{"path": "a.txt", "content": "x"}'))


def place(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".claude").mkdir(parents=True)
    (tmp_path / "root").mkdir()
    return tmp_path / "project"


def hooks(file: Path, **points: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    body = {point: [{"hooks": [{"type": "command", "command": command}]}] for point, command in points.items()}
    file.write_text(json.dumps({"permissions": {"allow": ["Bash"]}, "hooks": body}))
    return file


def trust(tmp_path: Path, file: Path) -> None:
    found = read_project_file(file, file.parent.parent)
    assert found is not None
    store(tmp_path).trust_file(file, found.digest)


def store(tmp_path: Path) -> TrustStore:
    return TrustStore(StateRoot(tmp_path / "root").mcp_trust)


def opened(tmp_path: Path, *replies: Reply, name: str = "session", mode: Mode = Mode.DAEMON) -> Session:
    return services(tmp_path / "root").create_session(
        mode=mode,
        scaffold=SCAFFOLD,
        model="simulated/apprentice",
        workspace=tmp_path / "project",
        folder=tmp_path / "root" / "sessions" / name,
        adapter=ScriptedModel([*replies, says("done")]),
    )


async def answered(session: Session, prompt: str = "Go.") -> TurnResult:
    try:
        return await session.arun(prompt)
    finally:
        session.close()


def notices(session: Session) -> list[str]:
    return [str(e["text"]) for e in read_timeline(session.folder.timeline) if e.get("about") == "hooks"]


@pytest.mark.parametrize("name", [".geode/hooks.json", ".claude/settings.json"])
async def test_hooks_of_a_project_run_from_the_moment_that_they_are_trusted(tmp_path: Path, name: str) -> None:
    """A17: whoever clones a repository does not run its commands; and whoever trusts it has its guards."""
    file = hooks(place(tmp_path) / name, UserPromptSubmit="touch ran; echo no >&2; exit 2")
    session = opened(tmp_path, name="before")
    assert (await answered(session)).stop == "completed"
    assert not (tmp_path / "project" / "ran").exists()
    (notice,) = notices(session)
    assert f"is not trusted, so its hooks (1) do not run; look at them with: geode hooks trust {file}" in notice

    trust(tmp_path, file)
    session = opened(tmp_path, name="after")
    result = await answered(session)
    assert (result.stop, result.detail, notices(session)) == ("prompt_blocked", "no", [])


@pytest.mark.parametrize("change", ["file", "program", "gone", "broken"])
def test_a_trusted_guard_that_is_another_one_by_now_is_not_a_guard_less(tmp_path: Path, change: str) -> None:
    """Left out, its session would run without; whoever can write to the file could turn it off."""
    guard = place(tmp_path) / "guard.sh"
    guard.write_text("exit 2")
    command = 'sh "$CLAUDE_PROJECT_DIR"/guard.sh'
    file = hooks(tmp_path / "project" / ".claude" / "settings.json", UserPromptSubmit=command)
    trust(tmp_path, file)
    opened(tmp_path, name="before").close()
    match change:
        case "file":
            hooks(file, PreCompact=command)
        case "program":
            guard.write_text("exit 0")
        case "gone":
            file.unlink()
        case "broken":
            file.write_text("{")
    with pytest.raises(HookFileError, match=f"geode hooks trust {file}"):
        opened(tmp_path, name="after")
    store(tmp_path).forget_file(file)
    opened(tmp_path, name="forgotten").close()


async def test_a_guard_that_its_own_session_changes_blocks_from_then_on(tmp_path: Path) -> None:
    """Its command runs outside of the sandbox: what the model writes into it would be out, too."""
    guard = place(tmp_path) / "guard.sh"
    guard.write_text("touch asked; exit 0")
    trust(tmp_path, hooks(tmp_path / "project" / ".claude" / "settings.json", PreToolUse="sh guard.sh"))
    reads = calls(("r", "read_file", '{"path": "guard.sh"}'))

    def changes(_: StepSnapshot) -> ModelResponse:
        guard.write_text("touch escaped; exit 0")
        return reads

    session = opened(tmp_path, reads, changes)
    await answered(session)
    ends = [event for event in read_timeline(session.folder.timeline) if event["kind"] == "call_ended"]
    assert [end["stage"] for end in ends] == ["", "hook"]
    assert "has changed since it was trusted" in str(ends[1]["result"])
    assert (tmp_path / "project" / "asked").exists()
    assert not (tmp_path / "project" / "escaped").exists()


async def test_what_a_projects_hook_rewrites_is_seen_by_the_operators_guard(tmp_path: Path) -> None:
    """It can be stricter than the operator's, never pass something by it."""
    place(tmp_path)
    rewrite = '{"hookSpecificOutput": {"updatedInput": {"file_path": "b.txt", "content": "x"}}}'
    trust(tmp_path, hooks(tmp_path / "project" / ".geode" / "hooks.json", PreToolUse=f"echo '{rewrite}'"))
    hooks(tmp_path / "root" / "hooks.json", PreToolUse="grep -q b.txt && { echo not b >&2; exit 2; }; exit 0")
    session = opened(tmp_path, WRITES)
    await answered(session)
    (end,) = [event for event in read_timeline(session.folder.timeline) if event["kind"] == "call_ended"]
    assert (end["stage"], "not b" in str(end["result"])) == ("hook", True)
    assert not (tmp_path / "project" / "b.txt").exists()


def test_an_experiment_asks_no_project(tmp_path: Path) -> None:
    """It measures its scaffold; nothing of one machine's trust may have a say."""
    file = hooks(place(tmp_path) / ".geode" / "hooks.json", UserPromptSubmit="exit 2")
    trust(tmp_path, file)
    file.unlink()
    session = opened(tmp_path, mode=Mode.EXPERIMENT)
    session.close()
    assert notices(session) == []


def test_the_owners_own_file_is_no_projects(tmp_path: Path) -> None:
    """Who works in their home has the state root in it."""
    root = StateRoot(tmp_path / ".geode")
    assert project_paths(root, tmp_path) == (tmp_path / ".claude" / "settings.json",)


def test_settings_without_hooks_and_files_that_nobody_trusted_cost_no_session(tmp_path: Path) -> None:
    """Half the repositories have such a file; a broken one is the project's matter until its guards count."""
    project = place(tmp_path)
    (project / ".claude" / "settings.json").write_text('{"permissions": {}}')
    found = find_project_hooks(StateRoot(tmp_path / "root"), project, store(tmp_path))
    assert (found.trusted, found.left_out) == ((), ())
    (project / ".claude" / "settings.json").write_text("{")
    (problem,) = find_project_hooks(StateRoot(tmp_path / "root"), project, store(tmp_path)).left_out
    assert "is not JSON" in problem
