"""`check_suite` on a suite with one thing wrong at a time: what it does not notice would be measured with."""

import json
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from experiments.suite_cli import register
from experiments.suites.check import TaskCheck, check_suite
from experiments.suites.loader import SuiteError
from geode.dev.skeleton import SkeletonKind, write_skeleton

VERIFIER = """
from pathlib import Path
from experiments.suite import Outcome, OutcomeKind

def outcome(good):
    return Outcome(kind=OutcomeKind.PASS if good else OutcomeKind.FAIL, score=float(good))

def verify(workspace):
    text = (workspace / "settings.ini").read_text()
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_skeleton(SkeletonKind.SUITE, "mine", tmp_path)


def checked(suite: Path) -> TaskCheck:
    (found,) = check_suite(str(suite))
    return found


def judge(body: str) -> Callable[[Path], None]:
    def change(task: Path) -> None:
        (task / "verify.py").write_text(VERIFIER + textwrap.indent(textwrap.dedent(body), "    "))

    return change


def replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(task: Path) -> None:
        text = (task / name).read_text()
        assert old in text
        (task / name).write_text(text.replace(old, new))

    return change


def without_solution(task: Path) -> None:
    shutil.rmtree(task / "solution")
    (task / "outline.yaml").unlink()


def test_a_new_suite_is_in_order(suite: Path) -> None:
    """The skeleton is the first thing that a newcomer sees; an example that is refused teaches nothing."""
    assert checked(suite) == TaskCheck(task_id="first_task", passing=2, failing=5, problems=(), notes=())


@pytest.mark.parametrize("part", ["solution", "outline.yaml"])
def test_one_solution_is_enough(suite: Path, part: str) -> None:
    """A right end state for those who run models; an outline for those who run the simulated worker."""
    path = suite / "first_task" / part
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert checked(suite).problems == ()
    assert checked(suite).passing == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (without_solution, r"first_task: nothing shows that it can be solved; put the files .* into solution/"),
        (judge("return outcome(True)"), r"first_task/fixtures: the verifier says PASS, not FAIL; an agent that does"),
        (judge("return outcome(False)"), r"first_task/solution: the verifier says FAIL, not PASS; either this is no"),
        (
            judge("return outcome('port = 9090' in text)"),
            r"first_task/task\.yaml: wrong_end_states\.check_weakened: the verifier says PASS, not FAIL; let the",
        ),
        (
            judge("return outcome('port = 9090' in text)"),
            r"first_task/outline\.yaml: steps\.change_port\.wrong\.0: the verifier says PASS, not FAIL",
        ),
        (
            judge("(workspace / 'settings.ini').write_text('port = 9090'); return outcome('port = 9090' in text)"),
            r"first_task/fixtures: the verifier says FAIL, and on a second look PASS; it must leave the workspace",
        ),
        (
            judge("return 'yes'"),
            r"first_task/fixtures: the verifier broke: it returned 'yes', which is no experiments\.suite\.Outcome",
        ),
        (
            judge("raise KeyError('x')"),
            r"first_task/fixtures: the verifier broke: KeyError: 'x' \(verify\.py, line \d+\); every such episode",
        ),
        (
            replace("task.yaml", "metrics_port = 8081", "metrics_port = 1"),
            r"first_task/task\.yaml: wrong_end_states\.other_port_changed: the calls cannot be made: .*'settings\.ini'",
        ),
        (
            replace("task.yaml", "tool: write_file", "tool: write_fil"),
            r"check_weakened: the calls cannot be made: there is no tool 'write_fil'; did you mean 'write_file'",
        ),
        (
            replace("task.yaml", "content:", "contents:"),
            r"wrong_end_states\.check_weakened: the calls cannot be made: the arguments of 'write_file' do not fit",
        ),
        (
            replace("outline.yaml", 'passes_when: "exit code: 0"', "passes_when: all is well"),
            r"outline\.yaml: steps\.run_check: when all changes are made, its result does not hold 'all is well'",
        ),
        (
            replace("outline.yaml", "command: sh check.sh}", "command: sh chekc.sh}"),
            r"steps\.run_check: when all changes are made, its result does not hold 'exit code: 0'.*cannot open",
        ),
        (
            replace("fixtures/check.sh", "# Looks", "# /home/somebody/x looks"),
            r"first_task/fixtures/check\.sh:2: '/home/somebody' exists on one machine only",
        ),
        (
            replace("fixtures/settings.ini", "[service]", f"[service]\n; {'sk-' + 20 * 'x'}"),
            r"first_task/fixtures/settings\.ini:2: looks like a secret; put a made-up value",
        ),
        (
            replace("task.yaml", "Please change", "See /Users/somebody. Please change"),
            r"first_task/task\.yaml: prompt:1: '/Users/somebody\.' exists|prompt:2: '/Users/somebody\.' exists",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_key(suite: Path, change: Callable[[Path], None], problem: str) -> None:
    """Whoever writes a first task gets something wrong, and mends it where the message points."""
    change(suite / "first_task")
    found = checked(suite)
    assert any(re.search(problem, line) for line in found.problems), found.problems


def test_what_is_wrong_everywhere_is_told_once(suite: Path) -> None:
    """Seven times the same line hides the one line that says something else."""
    judge("return no_such_name")(suite / "first_task")
    (problem,) = checked(suite).problems
    assert problem.startswith("first_task/fixtures: the verifier broke: NameError: name 'no_such_name' is not defined")
    assert "; the same at solution, outline.yaml: steps, task.yaml: wrong_end_states.other_port_changed, " in problem


def test_the_message_names_no_secret(suite: Path) -> None:
    """The report is what people paste into a ticket."""
    secret = "sk-" + 20 * "x"
    replace("fixtures/settings.ini", "[service]", f"[service]\n; {secret}")(suite / "first_task")
    assert secret not in repr(checked(suite))


def test_a_task_without_wrong_end_states_gets_advice_and_is_in_order(suite: Path) -> None:
    """There may be none worth naming; but most often nobody has thought of them yet."""
    task = suite / "first_task"
    (task / "task.yaml").write_text((task / "task.yaml").read_text().split("# What an agent")[0])
    (task / "outline.yaml").unlink()
    found = checked(suite)
    assert found.problems == ()
    assert found.notes == (
        "first_task/task.yaml: 'wrong_end_states' is empty; name what an agent may plausibly get wrong",
    )


def test_a_suite_that_cannot_be_loaded_is_refused(suite: Path) -> None:
    """An empty prompt asks for nothing, and no verifier can tell whether it was done."""
    text = (suite / "first_task" / "task.yaml").read_text()
    (suite / "first_task" / "task.yaml").write_text("schema: geode.task/1\nid: a\nfamily: b\nprompt: ' '\n")
    with pytest.raises(SuiteError, match=r"first_task/task\.yaml: 'prompt' is ' '; string should have at least 1"):
        check_suite(str(suite))
    assert "prompt" in text


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (lambda _: None, 0, "ok    first_task: 2 right and 5 wrong end states proved\nthe task is in order\n"),
        (judge("return outcome(True)"), 1, "1 of 1 tasks to be mended"),
        (lambda task: (task / "task.yaml").unlink(), 2, "task.yaml is missing"),
    ],
)
def test_the_exit_code_says_how_it_ended(
    suite: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], code: int, said: str
) -> None:
    """A suite of one's own is checked in CI, where nobody reads."""
    app = typer.Typer()
    register(app)
    change(suite / "first_task")
    monkeypatch.chdir(suite.parent)
    ran = CliRunner().invoke(app, ["suite", "check", "mine"])
    assert ran.exit_code == code
    assert said in ran.output


def test_the_json_holds_every_problem(suite: Path) -> None:
    """What a program does with the check must not depend on the wording of a table."""
    app = typer.Typer()
    register(app)
    judge("return outcome(False)")(suite / "first_task")
    ran = CliRunner().invoke(app, ["suite", "check", str(suite), "--json"])
    (task,) = json.loads(ran.output)
    assert (task["task_id"], task["passing"], task["failing"], len(task["problems"])) == ("first_task", 0, 5, 2)
