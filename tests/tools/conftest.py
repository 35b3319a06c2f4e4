"""A workspace with a small project in it, and something outside that must never be seen or changed."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from geode.tools.arguments import check_arguments
from geode.tools.catalogue import workspace_tools
from geode.tools.spec import ToolOutput
from geode.tools.workspace import Workspace

Call = Callable[..., Awaitable[ToolOutput]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The workspace's real folder, beside a secret that nobody may read."""
    folder = tmp_path / "ws"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "README.md").write_text("# Demo\n")
    (tmp_path / "secret.txt").write_text("canary")
    return folder


@pytest.fixture
def call(root: Path) -> Call:
    """Call a tool as the executor does: scope, schema, then the handler."""
    tools = workspace_tools(Workspace(root))

    async def run(name: str, /, **arguments: JsonValue) -> ToolOutput:
        spec = tools[name]
        spec.check_scope(arguments)
        assert check_arguments(spec, arguments) is None
        return await spec.handler(arguments)

    return run
