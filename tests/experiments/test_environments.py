"""A suite that declares a sandbox: where that is said, what it changes, and how a mistake in it is told."""

import re
from pathlib import Path

import pytest

from experiments.suite import Task
from experiments.suites.check import check_suite
from experiments.suites.environments import broken_environments
from experiments.suites.loader import SuiteError, load_suite, load_task
from experiments.suites.verify_command import CommandVerifier
from geode.dev.skeleton import SkeletonKind, write_skeleton
from geode.tools.environment import LOCAL, CommandEnvironment
from tests.doubles.sandboxes import BWRAP, PLAIN, needs_bwrap

IN_BWRAP = f"environment:\n  command: {' '.join(BWRAP)} --ro-bind {{task}} /task\n"
IN_PLAIN = f"environment:\n  command: {[*PLAIN]!r}\n  workspace: '{{workspace}}'\n  task: '{{task}}'\n"
BROKEN = "environment:\n  command: no_such_sandbox {workspace}\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_skeleton(SkeletonKind.SUITE, "mine", tmp_path)


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def only(suite: Path) -> Task:
    (task,) = load_suite(str(suite)).tasks
    return task


def test_the_suite_says_it_for_all_tasks_and_a_task_for_itself(suite: Path) -> None:
    """`null` is how a task says that it needs none."""
    assert only(suite).environment is LOCAL
    add(suite / "suite.yaml", IN_BWRAP)
    inherited = only(suite)
    assert inherited.environment == CommandEnvironment(command=(*BWRAP, "--ro-bind", "{task}", "/task"))
    assert inherited.environment_file == str(suite / "suite.yaml")
    task_file = suite / "first_task" / "task.yaml"
    before = task_file.read_text()
    add(task_file, IN_PLAIN)
    assert only(suite).environment == CommandEnvironment(command=PLAIN, workspace="{workspace}", task="{task}")
    assert only(suite).environment_file == str(task_file)
    task_file.write_text(f"{before}environment: null\n")
    assert only(suite).environment is LOCAL


def test_the_hash_covers_what_a_task_runs_in(suite: Path) -> None:
    """An episode in another sandbox is another measurement; where nothing is declared, nothing changes."""
    task_file = suite / "first_task" / "task.yaml"
    none = only(suite).task_hash
    assert none == load_task(suite / "first_task").task_hash
    add(suite / "suite.yaml", IN_BWRAP)
    inherited = only(suite).task_hash
    text = (suite / "suite.yaml").read_text()
    (suite / "suite.yaml").write_text(text.replace("--unshare-all", "--unshare-pid"))
    other = only(suite).task_hash
    assert len({none, inherited, other}) == 3
    (suite / "suite.yaml").write_text(text.replace("What mine", "All that mine"))
    assert only(suite).task_hash == inherited, "another description is no other measurement"
    (suite / "suite.yaml").write_text(f"{text}  workspace: /workspace\n")
    assert only(suite).task_hash == inherited, "what is said is what was meant before"
    add(task_file, IN_PLAIN)
    own = only(suite).task_hash
    (suite / "suite.yaml").write_text(text.replace("--unshare-all", "--unshare-pid"))
    assert only(suite).task_hash == own, "the suite's environment is none of this task's"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("enviroment: {}\n", r"suite\.yaml: unknown key 'enviroment'; did you mean 'environment'\?"),
        (
            "environment: bwrap\n",
            r"suite\.yaml: 'environment' is 'bwrap'; it holds keys and values \(command, workspace",
        ),
        ("environment: {comand: [x]}\n", r"unknown key 'environment\.comand'; did you mean 'command'\?"),
        ("environment: {command: ['{worksapce}']}\n", r"'environment\.command': .*did you mean '\{workspace\}'\?"),
        ("environment: {command: 'bwrap \"'}\n", r"'environment\.command': No closing quotation"),
        ("environment: {command: bwrap}\n", r"suite\.yaml: 'environment': the command says nowhere what /workspace is"),
        ("environment: {command: [b, '{workspace}'], start_limit_s: 0}\n", r"'environment\.start_limit_s' is 0; input"),
    ],
)
def test_a_mistake_is_named_by_file_and_key(suite: Path, text: str, message: str) -> None:
    """It is found when the suite is read, not by the first command of the first episode."""
    add(suite / "suite.yaml", text)
    with pytest.raises(SuiteError, match=message):
        load_suite(str(suite))


def test_a_verify_command_runs_there_unless_the_suite_says_no(suite: Path) -> None:
    """Nor is it run there without the task that it reads."""
    (suite / "first_task" / "verify.py").unlink()
    add(suite / "first_task" / "task.yaml", 'verify_command: sh "$TASK/judge.sh"\n')
    without_task = IN_BWRAP.replace("--ro-bind {task} /task", "")
    text = (suite / "suite.yaml").read_text()
    (suite / "suite.yaml").write_text(text + without_task)
    with pytest.raises(
        SuiteError, match=r"first_task/task\.yaml: verify_command reads \$TASK, but 'environment\.command'"
    ):
        load_suite(str(suite))
    (suite / "suite.yaml").write_text(f"{text}{without_task}  verify: false\n")
    outside = only(suite).verify
    assert isinstance(outside, CommandVerifier)
    assert outside.environment is LOCAL
    (suite / "suite.yaml").write_text(text + IN_BWRAP)
    inside = only(suite).verify
    assert isinstance(inside, CommandVerifier)
    assert inside.environment == only(suite).environment


def prove_inside(suite: Path) -> tuple[str, ...]:
    """Let the outline's own change be made by a command that only works in the sandbox, and check the suite."""
    outline = suite / "first_task" / "outline.yaml"
    text = outline.read_text()
    call = re.compile(r"call: \{tool: edit_file, .*8080.*\}")
    assert call.search(text)
    command = (
        "test -n \"$SANDBOX\" -o ! -e /etc/hostname && sed -i 's/^port = 8080/port = 9090/' /workspace/settings.ini"
    )
    outline.write_text(
        call.sub(lambda _: f"call: {{tool: shell, arguments: {{command: {command!r}}}}}".replace("\\'", "''"), text)
    )
    (task,) = check_suite(str(suite))
    return task.problems


@pytest.mark.slow
@pytest.mark.parametrize("declared", [pytest.param(IN_BWRAP, marks=needs_bwrap, id="bwrap"), IN_PLAIN])
def test_a_check_makes_its_calls_and_looks_where_an_episode_would(suite: Path, declared: str) -> None:
    """The change that the outline makes works inside only."""
    task = suite / "first_task"
    (task / "verify.py").unlink()
    (task / "judge.sh").write_text(
        '{ test -n "$SANDBOX" || test ! -e /etc/hostname; } && cmp -s check.sh "$TASK/fixtures/check.sh" &&'
        ' cmp -s settings.ini "$TASK/solution/settings.ini"\n'
    )
    add(task / "task.yaml", 'verify_command: sh "$TASK/judge.sh"\n')
    assert any("the calls cannot be made" in problem for problem in prove_inside(suite))
    add(suite / "suite.yaml", declared)
    (checked,) = check_suite(str(suite))
    assert (checked.problems, checked.passing, checked.failing) == ((), 2, 5)


def test_a_check_names_a_sandbox_that_does_not_work(suite: Path) -> None:
    """By file and key, and once for each task that it concerns, in place of a failure for each of its end states."""
    add(suite / "suite.yaml", BROKEN)
    (task,) = check_suite(str(suite))
    assert task.problems == (
        f"{suite}/suite.yaml: 'environment.command': there is no program 'no_such_sandbox' on the PATH;"
        " install it, or name another in 'command'",
    )
    assert (task.passing, task.failing) == (0, 0)


def test_each_environment_is_tried_once(suite: Path) -> None:
    """A container takes a second to start, and a suite has twenty tasks."""
    log = suite.parent / "log"
    declared = (
        f"environment:\n  command: [sh, -c, 'echo started >>{log}; exec \"$@\"', x]\n  workspace: '{{workspace}}'\n"
    )
    add(suite / "suite.yaml", declared)
    task = only(suite)
    assert broken_environments([task, task, task], suite.parent / "near") == {}
    assert log.read_text() == "started\n"
    assert list((suite.parent / "near").iterdir()) == []


@needs_bwrap
@pytest.mark.slow
def test_the_sandbox_in_a_new_suite_works_once_it_is_taken_in(suite: Path) -> None:
    """An example that a newcomer uncomments must not be their first failure."""
    path = suite / "suite.yaml"
    head, _, block = path.read_text().partition("# environment:\n")
    path.write_text(head + "environment:\n" + block.replace("# ", ""))
    assert only(suite).environment is not LOCAL
    (task,) = check_suite(str(suite))
    assert (task.problems, task.passing, task.failing) == ((), 2, 5)
