"""A session whose process is killed by its own second call. Run as a program, with a folder and a workspace."""

import asyncio
import sys
from pathlib import Path

from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.executor.policy import Mode
from geode.scaffold import Scaffold, ToolChoice, ToolPlan
from geode.serve.services import SharedServices
from tests.doubles.models import ScriptedModel, calls, says

SCAFFOLD = Scaffold(tools=ToolPlan(tools=tuple(ToolChoice(name=name) for name in ("read_file", "write_file", "shell"))))
SHELL = '{"command": "echo ran >> shell.txt; kill -9 $PPID; sleep 5"}'
CALLS = (
    ("w", "write_file", '{"path": "written.txt", "content": "once"}'),
    ("s", "shell", SHELL),
    ("r", "read_file", '{"path": "written.txt"}'),
)


def services(root: Path) -> SharedServices:
    return SharedServices(Settings(root=StateRoot(root), tracking_uri=None, environment={}))


def main() -> None:
    folder, workspace = Path(sys.argv[1]), Path(sys.argv[2])
    session = services(folder.parents[1]).create_session(
        mode=Mode.EXPERIMENT,
        scaffold=SCAFFOLD,
        model="simulated/apprentice",
        workspace=workspace,
        folder=folder,
        adapter=ScriptedModel([calls(*CALLS), says("never said")]),
    )
    asyncio.run(session.arun("Write, then die."))


if __name__ == "__main__":
    main()
