"""A session that is held open until its process is ended. Run as a program, with a folder and a workspace."""

import sys
from pathlib import Path

from geode.executor.policy import Mode
from tests.doubles.models import ScriptedModel, says
from tests.serve.killed_session import SCAFFOLD, services


def main() -> None:
    folder, workspace = Path(sys.argv[1]), Path(sys.argv[2])
    session = services(folder.parents[1]).create_session(
        mode=Mode.EXPERIMENT,
        scaffold=SCAFFOLD,
        model="simulated/apprentice",
        workspace=workspace,
        folder=folder,
        adapter=ScriptedModel([says("never asked")]),
    )
    print("open", flush=True)
    sys.stdin.read()
    session.close()


if __name__ == "__main__":
    main()
