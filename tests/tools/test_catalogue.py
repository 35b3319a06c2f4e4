"""The catalogue is what a scaffold's tool plan can name, and it is cheap to build for each session."""

from pathlib import Path

from geode.scaffold import ToolChoice, ToolPlan
from geode.tools.catalogue import TOOLS, workspace_tools
from geode.tools.plan import bind
from geode.tools.workspace import Workspace


def test_all_tools_are_there_under_their_own_names(root: Path) -> None:
    """ARCHITECTURE.md's table, in its order."""
    tools = workspace_tools(Workspace(root))
    files = ["list_files", "read_file", "write_file", "edit_file", "search", "shell"]
    git = ["git_status", "git_diff", "git_log", "git_commit", "git_branch"]
    assert list(tools) == list(TOOLS) == [*files, *git, "web_fetch"]
    assert all(spec.name == name for name, spec in tools.items())


def test_the_plan_of_two_sessions_is_the_same(root: Path, tmp_path: Path) -> None:
    """The hash is of what the model sees, which does not depend on where the workspace lies."""
    (tmp_path / "other").mkdir()
    plan = ToolPlan(tools=tuple(ToolChoice(name=name) for name in TOOLS))
    bound = [bind(plan, workspace_tools(Workspace(folder))) for folder in (root, tmp_path / "other")]
    assert bound[0].plan_hash == bound[1].plan_hash
    assert bound[0].schemas == bound[1].schemas
    assert str(tmp_path) not in repr(bound[0].schemas)


def test_sessions_cannot_change_each_other_through_a_shared_schema(root: Path) -> None:
    """The schemas are shared constants; each session gets its own top level, and binding copies the rest."""
    plan = ToolPlan(tools=(ToolChoice(name="shell"),))
    first = bind(plan, workspace_tools(Workspace(root)))
    workspace_tools(Workspace(root))["shell"].input_schema.clear()
    assert bind(plan, workspace_tools(Workspace(root))).plan_hash == first.plan_hash
