"""A session killed in the middle of a batch goes on: nothing runs twice, and what is unknown is said to be unknown."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from geode.executor.policy import Mode
from geode.llm.messages import ModelResponse, StepSnapshot, ToolResult
from geode.loop.turn import TurnStop
from geode.records.receipts import EffectReceiptStore, ReceiptState
from geode.scaffold import LoopLimits
from geode.serve.services import Session
from tests.doubles.models import ScriptedModel, calls, says
from tests.doubles.sandboxes import plain
from tests.serve.killed_session import SCAFFOLD, SHELL, services

pytestmark = pytest.mark.slow


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A state root with one killed session and its workspace."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    folder = tmp_path / "root" / "sessions" / "01KILLED"
    died = subprocess.run(
        [sys.executable, "-m", "tests.serve.killed_session", str(folder), str(workspace)],
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert died.returncode == -9
    return tmp_path


def reopened(root: Path, model: ScriptedModel) -> Session:
    return services(root / "root").reopen_session(
        root / "root" / "sessions" / "01KILLED", root / "workspace", adapter=model
    )


async def test_it_goes_on_and_nothing_runs_twice(killed: Path) -> None:
    """The shell command ran once and nobody saved how it ended; the read behind it never began."""
    model = ScriptedModel([says("I looked.")])
    session = reopened(killed, model)
    result = await session.aresume()
    session.close()

    assert (killed / "workspace" / "shell.txt").read_text() == "ran\n"
    assert (killed / "workspace" / "written.txt").read_text() == "once"
    (asked,) = model.asked
    answers = [block for block in asked.messages[-1].blocks if isinstance(block, ToolResult)]
    assert [answer.call_id for answer in answers] == ["w", "s", "r"]
    assert result.stop is TurnStop.ESCALATED, "an answer over an unknown effect is not verified"
    store = EffectReceiptStore.open(session.folder.receipts, services(killed).clock)
    states = {receipt.tool: receipt.state for receipt in store.all()}
    store.close()
    assert states == {"write_file": ReceiptState.SUCCEEDED, "shell": ReceiptState.UNCERTAIN}


def test_a_command_that_outlived_its_session_is_ended_before_anything_else(killed: Path) -> None:
    """It could take effect later than the look that the model is asked for."""
    assert working_in(killed / "workspace"), "the command that killed the session sleeps for a while"
    session = reopened(killed, ScriptedModel([]))
    session.close()
    assert not working_in(killed / "workspace")
    lines = session.folder.timeline.read_text().splitlines()
    assert any(line["kind"] == "notice" and line["about"] == "recovery" for line in map(json.loads, lines[1:]))


def working_in(folder: Path) -> list[str]:
    """The processes that run in `folder`; one that is dead and not reaped is none."""
    return [name for name in os.listdir("/proc") if name.isdecimal() and _folder_of(name) == str(folder)]


def _folder_of(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def test_a_session_can_be_opened_again_from_the_first_thing_that_is_told_of_it(tmp_path: Path) -> None:
    """Killed between its first event and its status file it was a folder that nothing could open."""
    (tmp_path / "workspace").mkdir()
    folder = tmp_path / "session"
    openable: list[bool] = []
    services(tmp_path).create_session(
        mode=Mode.EXPERIMENT, scaffold=SCAFFOLD, model="simulated/apprentice", workspace=tmp_path / "workspace",
        folder=folder, adapter=ScriptedModel([]),
        observers=[lambda _: openable.append((folder / "state.json").exists())],
    ).close()  # fmt: skip
    assert openable
    assert all(openable)


async def test_the_same_call_asked_for_again_is_a_new_call(killed: Path) -> None:
    """Never run again by itself does not mean never: the model may look and decide."""
    again = SHELL.replace("; kill -9 $PPID; sleep 5", "")
    session = reopened(killed, ScriptedModel([calls(("s", "shell", again)), says("done")]))
    await session.aresume()
    session.close()
    assert (killed / "workspace" / "shell.txt").read_text() == "ran\nran\n"


@pytest.mark.parametrize(("content", "state"), [("new", "succeeded"), ("old", "failed"), ("other", "uncertain")])
async def test_a_write_is_settled_by_looking_at_the_file(tmp_path: Path, content: str, state: str) -> None:
    """Content hashes tell whether it happened; a third content tells nothing."""
    workspace, folder = tmp_path / "workspace", tmp_path / "session"
    workspace.mkdir()
    file = workspace / "a.txt"
    file.write_text("old")
    made = services(tmp_path).create_session(
        mode=Mode.EXPERIMENT, scaffold=SCAFFOLD, model="simulated/apprentice", workspace=workspace, folder=folder,
        adapter=ScriptedModel([calls(("w", "write_file", '{"path": "a.txt", "content": "new"}')), says("done")]),
    )  # fmt: skip
    await made.arun("Write.")
    made.close()
    store = EffectReceiptStore.open(made.folder.receipts, services(tmp_path).clock)
    (receipt,) = store.all()
    store.close()
    _as_if_killed(made.folder.receipts)
    file.write_text(content)

    session = services(tmp_path).reopen_session(folder, workspace, adapter=ScriptedModel([says("done")]))
    session.close()

    store = EffectReceiptStore.open(made.folder.receipts, services(tmp_path).clock)
    (after,) = store.all()
    store.close()
    assert (after.key, after.state.value) == (receipt.key, state)
    assert after.settled_by == ("" if state == "uncertain" else "probe")


def _as_if_killed(receipts: Path) -> None:
    with sqlite3.connect(receipts) as connection:
        connection.execute("UPDATE receipts SET state = 'started', ended_at = NULL")
    connection.close()


async def test_caps_come_back_with_the_session(tmp_path: Path) -> None:
    """A ruler's cap that a restart lifts is no cap."""
    (tmp_path / "workspace").mkdir()
    made = services(tmp_path).create_session(
        mode=Mode.EXPERIMENT, scaffold=SCAFFOLD, model="simulated/apprentice", workspace=tmp_path / "workspace",
        folder=tmp_path / "session", caps=LoopLimits(rounds=2), adapter=ScriptedModel([says("first")]),
    )  # fmt: skip
    await made.arun("One.")
    made.close()

    def asks_for_ever(snapshot: StepSnapshot) -> ModelResponse:
        return calls((f"r{snapshot.round}", "read_file", '{"path": "x"}'))

    session = services(tmp_path).reopen_session(
        tmp_path / "session", tmp_path / "workspace", adapter=ScriptedModel([asks_for_ever])
    )
    result = await session.arun("Two.")
    session.close()
    assert (result.stop, result.rounds) == (TurnStop.ROUND_LIMIT, 2)


async def test_the_sandbox_comes_back_with_the_session(tmp_path: Path) -> None:
    """Its commands would run outside without a word."""
    (tmp_path / "workspace").mkdir()
    made = services(tmp_path).create_session(
        mode=Mode.EXPERIMENT, scaffold=SCAFFOLD, model="simulated/apprentice", workspace=tmp_path / "workspace",
        folder=tmp_path / "session", environment=plain(), adapter=ScriptedModel([says("first")]),
    )  # fmt: skip
    await made.arun("One.")
    made.close()
    asks = calls(("s", "shell", '{"command": "echo $SANDBOX > inside"}'))
    session = services(tmp_path).reopen_session(
        tmp_path / "session", tmp_path / "workspace", adapter=ScriptedModel([asks, says("done")])
    )
    await session.arun("Two.")
    session.close()
    assert (tmp_path / "workspace" / "inside").read_text() == "1\n"


def test_a_second_process_may_not_open_a_session_that_is_open(tmp_path: Path) -> None:
    """Two owners of one conversation would write over each other."""
    (tmp_path / "workspace").mkdir()
    made = services(tmp_path).create_session(
        mode=Mode.EXPERIMENT, scaffold=SCAFFOLD, model="simulated/apprentice", workspace=tmp_path / "workspace",
        folder=tmp_path / "session", adapter=ScriptedModel([says("first")]),
    )  # fmt: skip
    opening = (
        "import sys; from pathlib import Path; from tests.serve.killed_session import services\n"
        "from geode.records.database import RecordLocked\n"
        "root = Path(sys.argv[1])\n"
        "try: services(root).reopen_session(root / 'session', root / 'workspace')\n"
        "except RecordLocked as error: sys.exit(str(error))\n"
    )
    second = subprocess.run(
        [sys.executable, "-c", opening, str(tmp_path)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    made.close()
    assert second.returncode == 1
    assert "in use by another process" in second.stderr
