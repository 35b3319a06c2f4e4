"""A session has one owner: whoever may not be it writes nothing and runs nothing, whatever has become of the other."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geode.executor.policy import Mode
from geode.loop.turn import TurnStop
from geode.records.database import Database, Durability, RecordLocked
from geode.serve.services import Session
from tests.doubles.models import ScriptedModel, calls, says
from tests.serve.killed_session import SCAFFOLD, services

WRITES = calls(("w", "write_file", '{"path": "written.txt", "content": "x"}'))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path


@pytest.fixture
def owner(place: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the session open."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.serve.lasting_session", str(folder(place)), str(place / "workspace")],
        cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def folder(place: Path) -> Path:
    return place / "root" / "sessions" / "01LEASE"


def created(place: Path) -> Session:
    return services(place / "root").create_session(
        mode=Mode.EXPERIMENT, scaffold=SCAFFOLD, model="simulated/apprentice", workspace=place / "workspace",
        folder=folder(place), adapter=ScriptedModel([WRITES, says("done")]),
    )  # fmt: skip


def reopened(place: Path) -> Session:
    return services(place / "root").reopen_session(
        folder(place), place / "workspace", adapter=ScriptedModel([WRITES, says("done")])
    )


def content(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def taken_over(place: Path) -> None:
    """Put a copy in the place of the session's folder, as somebody does who gives up on a process that hangs."""
    shutil.copytree(folder(place), place / "copy")
    shutil.rmtree(folder(place))
    (place / "copy").rename(folder(place))


@pytest.mark.slow
@pytest.mark.parametrize("store", ["session.db", "effects.db"])
def test_a_stopped_owner_keeps_each_database_and_a_killed_one_does_not(
    place: Path, owner: "subprocess.Popen[str]", store: str
) -> None:
    """The system holds the lock for a process that lives, so it cannot run out under one that may go on."""
    path = folder(place) / store
    for sign in (None, signal.SIGSTOP):
        if sign is not None:
            owner.send_signal(sign)
        with pytest.raises(RecordLocked):
            Database(path, ("SELECT 1",), Durability.PROCESS, busy_timeout_s=0.1)
    owner.kill()
    owner.wait()
    Database(path, ("SELECT 1",), Durability.PROCESS, busy_timeout_s=0.1).close()


@pytest.mark.slow
def test_who_comes_second_changes_nothing_and_takes_over_when_the_first_is_dead(
    place: Path, owner: "subprocess.Popen[str]"
) -> None:
    """Neither the timeline nor the status of a session is written by somebody who was refused."""
    owner.send_signal(signal.SIGSTOP)
    before = content(folder(place))
    with pytest.raises(RecordLocked, match="in use by another process"):
        reopened(place)
    assert content(folder(place)) == before
    owner.kill()
    owner.wait()
    session = reopened(place)
    session.close()
    assert session.folder.read_state()["status"] == "idle"


async def test_an_owner_whose_files_were_replaced_does_nothing_more(place: Path) -> None:
    """Its lock is on files that are gone; whoever put others there is the owner, and two would act in one workspace."""
    stale = created(place)
    taken_over(place)
    session = reopened(place)
    state = session.folder.state.read_bytes()
    result = await stale.arun("Write.")
    assert (result.stop, "not the file any more" in result.detail) == (TurnStop.CHECKPOINT_FAILED, True)
    assert not (place / "workspace" / "written.txt").exists()
    timeline = session.folder.timeline.read_bytes()
    stale.close()
    assert (session.folder.state.read_bytes(), session.folder.timeline.read_bytes()) == (state, timeline)
    await session.arun("Write.")
    session.close()
    assert (place / "workspace" / "written.txt").read_text() == "x"


async def test_no_effect_begins_after_the_files_were_replaced_in_the_middle_of_a_round(place: Path) -> None:
    """The batch is stored before any of its tools runs; that write is refused."""
    session = services(place / "root").create_session(
        mode=Mode.EXPERIMENT, scaffold=SCAFFOLD, model="simulated/apprentice", workspace=place / "workspace",
        folder=folder(place), adapter=ScriptedModel([WRITES, says("done")]),
        observers=[lambda event: taken_over(place) if event.kind == "model_called" else None],
    )  # fmt: skip
    result = await session.arun("Write.")
    session.close()
    assert result.stop is TurnStop.CHECKPOINT_FAILED
    assert not (place / "workspace" / "written.txt").exists()


def test_a_fork_of_the_owner_writes_neither_timeline_nor_status(place: Path) -> None:
    """It has the handles without the lock, and may outlive the owner."""
    session = created(place)
    before = content(folder(place))
    assert in_fork(session.close) == 0
    assert content(folder(place)) == before
    with pytest.raises(RecordLocked):  # and the owner still has it
        Database(session.folder.checkpoint, ("SELECT 1",), Durability.PROCESS, busy_timeout_s=0.1)
    session.close()


def test_a_session_that_is_closed_twice_leaves_the_status_to_its_next_owner(place: Path) -> None:
    first = created(place)
    first.close()
    second = reopened(place)
    first.close()
    assert second.folder.read_state()["status"] == "open"
    second.close()
    assert second.folder.read_state()["status"] == "idle"


def in_fork(act: Callable[[], None]) -> int:
    """Return how a child process ended that did `act`."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
