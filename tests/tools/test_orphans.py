"""What a tool of a killed process left running is found by where it works, and a person's shell is not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from geode.tools.orphans import kill_orphans
from geode.tools.process import HOME_PREFIX, private_home

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


@contextmanager
def sleeper(folder: Path, home: str) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60"], cwd=folder, env={"PATH": os.defpath, "HOME": home}) as process:
        yield process
        process.kill()


def test_only_what_a_tool_started_in_the_workspace_is_killed(tmp_path: Path) -> None:
    """It would go on writing where nobody looks any more; a workspace is deleted under it otherwise."""
    mine, other = tmp_path / "mine", tmp_path / "mine2"
    for folder in (mine / "deep", other):
        folder.mkdir(parents=True)
    home = str(tmp_path / f"{HOME_PREFIX}x1")
    with (
        sleeper(mine / "deep", home) as orphan,
        sleeper(mine, str(tmp_path)) as person,
        sleeper(other, home) as neighbour,
    ):
        killed = kill_orphans(mine)
        assert orphan.wait(10) == -9
        assert killed >= 1, "the shell, and its child if it has one"
        assert (person.poll(), neighbour.poll()) == (None, None)


def test_a_workspace_that_is_gone_is_no_shelter(tmp_path: Path) -> None:
    """The system marks the folder of such a process as deleted."""
    workspace = tmp_path / "gone"
    workspace.mkdir()
    with sleeper(workspace, str(tmp_path / f"{HOME_PREFIX}x1")) as orphan:
        workspace.rmdir()
        assert kill_orphans(workspace) >= 1
        assert orphan.wait(10) == -9


def test_a_command_is_spared_as_long_as_whoever_runs_it_lives(tmp_path: Path) -> None:
    """Two sessions may work in one folder, and the one that goes on after a crash must not end what the other runs."""
    with private_home() as home, sleeper(tmp_path, home) as command:
        assert kill_orphans(tmp_path) == 0
        assert command.poll() is None
