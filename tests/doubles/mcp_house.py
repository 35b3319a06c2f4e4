"""A state root with MCP servers, and a workspace, lived in as users do: settings, approval, a session, its effects."""

import json
import os
from pathlib import Path

from pydantic import JsonValue

from geode.cli.mcp_tools import server_tools
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.executor.policy import Mode
from geode.llm.messages import StepSnapshot, ToolResult
from geode.loop.turn import TurnResult
from geode.scaffold import Scaffold, ToolChoice, ToolPlan
from geode.serve.services import SharedServices
from tests.done.command import Ran, geode
from tests.doubles.models import ScriptedModel

SCAFFOLD = Scaffold(tools=ToolPlan(tools=(ToolChoice(name="read_file"),)))


class House:
    """Everything lies under `folder`; `servers` is what `mcp.yaml` says of them."""

    def __init__(self, folder: Path, servers: dict[str, JsonValue]) -> None:
        self.folder = folder
        self.root, self.workspace = folder / "root", folder / "workspace"
        self.root.mkdir()
        self.workspace.mkdir()
        (self.root / "mcp.yaml").write_text(json.dumps({"schema": "geode.mcp/1", "servers": servers}))

    def geode(self, *arguments: str) -> Ran:
        return geode(self.folder, *arguments, "--root", str(self.root))

    async def run(self, model: ScriptedModel, name: str) -> TurnResult:
        """One turn of a session, whose tools are whatever the settings and the approvals give."""
        environment = {"PATH": os.environ["PATH"]}
        settings = Settings(root=StateRoot(self.root), tracking_uri=None, environment=environment)
        async with server_tools(settings, self.workspace) as extra_tools:
            session = SharedServices(settings).create_session(
                mode=Mode.EXPERIMENT,
                scaffold=SCAFFOLD,
                model="simulated/script",
                workspace=self.workspace,
                folder=self.root / "sessions" / name,
                adapter=model,
                extra_tools=extra_tools,
            )
            try:
                return await session.arun("Do it.")
            finally:
                session.close()


def results(asked: StepSnapshot) -> list[ToolResult]:
    """The results that the model was shown last in this request."""
    return [block for block in asked.messages[-1].blocks if isinstance(block, ToolResult)]


def server_pid(mark: str) -> int:
    """The one child of this process whose command line holds `mark`."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    (pid,) = (int(child) for child in children if mark.encode() in Path(f"/proc/{child}/cmdline").read_bytes())
    return pid
