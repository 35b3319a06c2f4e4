"""A verifier that is a command: every way in which it can end is an outcome, or no measurement at all."""

import asyncio
from pathlib import Path

import pytest

from experiments.suite import OutcomeKind, VerifierBroke
from experiments.suites.loader import SuiteError, load_task
from experiments.suites.verify_command import CommandVerifier
from geode.dev.skeleton import SkeletonKind, write_skeleton
from geode.tools.environment import LOCAL, CommandEnvironment, Environment, EnvironmentBroken
from tests.doubles.sandboxes import bwrap, needs_bwrap, plain, saying
from tests.tools.test_process import has_ended, pid_in


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = write_skeleton(SkeletonKind.SUITE, "mine", tmp_path) / "first_task"
    (folder / "verify.py").unlink()
    return folder


def command_verifier(
    command: str, task_folder: Path, time_limit_s: float, environment: Environment = LOCAL
) -> CommandVerifier:
    return CommandVerifier(command=command, task_folder=task_folder, time_limit_s=time_limit_s, environment=environment)


def set_command(task: Path, command: str) -> None:
    with (task / "task.yaml").open("a") as file:
        file.write(f"verify_command: {command!r}\n")


def test_the_exit_code_is_the_outcome_and_the_output_its_reason(tmp_path: Path) -> None:
    """Whoever writes a check in another language says all that there is to say with these two."""
    outcome = command_verifier("echo '2 of 3 rows' >&2; exit 1", tmp_path, 10)(tmp_path)
    assert outcome.kind is OutcomeKind.FAIL
    assert outcome.score == 0
    assert outcome.reasons == ("verify_command ended with exit code 1: 2 of 3 rows",)
    passed = command_verifier("echo fine", tmp_path, 10)(tmp_path)
    assert (passed.kind, passed.score, passed.reasons) == (OutcomeKind.PASS, 1.0, ())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("sleep 30", "verify_command did not end within 0.3 s"),
        ("kill -9 $$", "verify_command ended with exit code 137"),
        ("exit 3", "verify_command ended with exit code 3"),
    ],
)
def test_what_the_agent_left_cannot_escape_a_failure(tmp_path: Path, command: str, reason: str) -> None:
    """A program that hangs or crashes is the agent's work; INVALID would take it out of the score."""
    outcome = command_verifier(command, tmp_path, 0.3)(tmp_path)
    assert outcome.kind is OutcomeKind.FAIL
    assert reason in outcome.reasons[0]


def test_a_command_that_cannot_be_run_measures_nothing(tmp_path: Path) -> None:
    """Without the program that judges, every agent would seem to fail."""
    with pytest.raises(VerifierBroke, match=r"exit code 127: it cannot be run \(.*no_such_program"):
        command_verifier("no_such_program", tmp_path, 10)(tmp_path)


def test_it_runs_in_the_workspace_with_the_task_at_hand_and_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What judges lies beside the task, where no agent can change it; our environment is none of its business."""
    monkeypatch.setenv("A_KEY", "secret")
    workspace, folder = tmp_path / "w", tmp_path / "it's a task"
    workspace.mkdir()
    folder.mkdir()
    (folder / "judge.py").write_text("import os; print(os.getcwd(), os.environ.get('A_KEY')); raise SystemExit(1)")
    reasons = command_verifier('python "$TASK/judge.py"; echo "$TASK"; exit 1', folder, 10)(workspace).reasons
    assert reasons == (f"verify_command ended with exit code 1: {workspace} None\n$TASK",)


def test_a_flood_is_a_failure_even_if_it_ends_well(tmp_path: Path) -> None:
    """What writes without an end is what the agent left."""
    outcome = command_verifier("yes | head -c 2000000", tmp_path, 10)(tmp_path)
    assert outcome.reasons == ("verify_command wrote more than 1000000 bytes",)


def test_a_workspace_that_the_agent_removed_is_a_failure(tmp_path: Path) -> None:
    """INVALID would take it out of the score."""
    outcome = command_verifier("true", tmp_path, 10)(tmp_path / "gone")
    assert outcome.reasons == ("verify_command: the command could not be started: No such file or directory",)
    with pytest.raises(VerifierBroke, match="could not be started: Argument list too long"):
        command_verifier("true " + 200_000 * "x", tmp_path, 10)(tmp_path)


async def test_a_cancellation_ends_the_command_at_once(tmp_path: Path) -> None:
    """It used to hold the whole loop until its time limit."""
    look = asyncio.create_task(command_verifier("echo $$ > pid; sleep 60", tmp_path, 60).averify(tmp_path))
    pid = await pid_in(tmp_path / "pid")
    look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    assert await has_ended(pid)


IN_A_SANDBOX = [
    pytest.param(bwrap("--ro-bind", "{task}", "/task"), marks=needs_bwrap, id="bwrap"),
    pytest.param(plain(), id="plain"),
]


@pytest.mark.parametrize("environment", IN_A_SANDBOX)
def test_in_a_sandbox_it_means_the_same(tmp_path: Path, environment: CommandEnvironment) -> None:
    """Workspace, task, exit codes and output arrive; the task may not be written where the sandbox binds it so."""
    workspace, folder = tmp_path / "w", tmp_path / "task"
    for made in (workspace, folder):
        made.mkdir()
    (workspace / "answer").write_text("42")
    (folder / "judge.sh").write_text('[ "$(cat answer)" = 42 ] || { echo "wrong answer"; exit 1; }')
    verifier = command_verifier('sh "$TASK/judge.sh"', folder, 10, environment)
    assert verifier(workspace).kind is OutcomeKind.PASS
    (workspace / "answer").write_text("41")
    assert verifier(workspace).reasons == ("verify_command ended with exit code 1: wrong answer",)
    assert command_verifier("kill -9 $$", folder, 10, environment)(workspace).reasons == (
        "verify_command ended with exit code 137",
    )
    with pytest.raises(VerifierBroke, match="exit code 127: it cannot be run"):
        command_verifier("no_such_program", folder, 10, environment)(workspace)


@needs_bwrap
def test_in_a_sandbox_what_the_agent_left_cannot_reach_outside(tmp_path: Path) -> None:
    """A verifier runs the agent's own program; without the sandbox the same command reads the file."""
    (tmp_path / "secret").write_text("canary")
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "program.sh").write_text(f"cat {tmp_path}/secret")
    reached = "sh program.sh 2>/dev/null | grep -q canary"
    assert command_verifier(reached, tmp_path, 10)(workspace).kind is OutcomeKind.PASS
    assert command_verifier(reached, tmp_path, 10, bwrap())(workspace).kind is OutcomeKind.FAIL


def test_a_workspace_that_no_sandbox_starts_in_is_a_failure(tmp_path: Path) -> None:
    """It starts in another, so it is what the agent left."""
    (tmp_path / "poison").touch()
    outcome = command_verifier("true", tmp_path, 10, saying('[ -e poison ] && exit 1; exec "$@"'))(tmp_path)
    assert outcome.kind is OutcomeKind.FAIL
    assert outcome.reasons[0].startswith("verify_command: the command could not be started: sh ended with exit code 1")


def test_a_broken_sandbox_measures_nothing(tmp_path: Path) -> None:
    """Nor does a missing one."""
    with pytest.raises(EnvironmentBroken, match="no space"):
        command_verifier("true", tmp_path, 10, saying("echo no space; exit 1"))(tmp_path)


def test_a_task_names_its_command(task: Path) -> None:
    """In place of verify.py, in the file that says everything else of the task."""
    before = load_hash(task, "grep -qx 'port = 9090' settings.ini")
    loaded = load_task(task)
    assert loaded.verify(task / "fixtures").kind is OutcomeKind.FAIL
    assert loaded.verify(task / "solution").kind is OutcomeKind.PASS
    (task / "judge.py").write_text("")
    assert load_task(task).task_hash != before


def load_hash(task: Path, command: str) -> str:
    set_command(task, command)
    return load_task(task).task_hash


def test_two_verifiers_are_refused(task: Path) -> None:
    """Which of them had judged could not be told from the records."""
    set_command(task, "true")
    (task / "verify.py").write_text("def verify(workspace): ...\n")
    with pytest.raises(SuiteError, match=r"task\.yaml: 'verify_command' is set, and there is verify\.py too; keep one"):
        load_task(task)


def test_no_verifier_is_refused_with_both_ways_out(task: Path) -> None:
    """Nothing would be measured."""
    with pytest.raises(SuiteError, match=r"verify\.py is missing; .*, or set 'verify_command' in task\.yaml"):
        load_task(task)
