"""Proves a suite in both directions before anything is measured with it.

A verifier that nobody has seen fail measures nothing, and one that nobody has seen pass makes every agent look bad. So
the untouched fixtures and each named wrong end state must fail, a solution must pass, and a second look must say the
same. A solution is the folder `solution/`, laid over the fixtures, or the changes of `outline.yaml`, or both; after the
latter its checks must pass. Calls are made by the tools that an agent has, in the task's environment, which has to work
first.
"""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.overrides import nearest
from experiments.suite import Outcome, OutcomeKind, Task, VerifierBroke
from experiments.suites.environments import broken_environments
from experiments.suites.loader import copy_fixtures, load_suite, read_task_file
from experiments.suites.verifier_runner import VerifierRunner
from geode.llm.outline import OutlineCall, OutlineStep
from geode.redaction import Redactor
from geode.tools.arguments import check_arguments
from geode.tools.catalogue import workspace_tools
from geode.tools.environment import Environment, EnvironmentBroken
from geode.tools.spec import ToolFailed, ToolOutput, ToolSpec
from geode.tools.workspace import Workspace

SCANNED_BYTES_MAX = 1_000_000
_SOLUTION = "solution"
_HOME_PATH = re.compile(r"(?<![\w.])(/home/|/Users/|/root/|[A-Za-z]:\\Users\\)[\w.-]+")
_Make = Callable[[Path], None]


class _Problem(Exception):  # noqa: N818  (it is what the check found)
    """Something about a task that has to be mended: the file and the key in it, what is wrong there, the next step."""

    def __init__(self, place: str, text: str) -> None:
        super().__init__(f"{place}: {text}")
        self.place, self.text = place, text


class _Broken(_Problem):
    """The verifier says nothing of an end state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCheck:
    """What was found of one task. `passing` and `failing` count end states that were proved; notes are only advice."""

    task_id: str
    passing: int
    failing: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndState:
    """A workspace to be made, and what the verifier has to say of it. `place` is the file, and the key in it."""

    place: str
    make: _Make
    wanted: OutcomeKind
    advice: str


def check_suite(where: str) -> tuple[TaskCheck, ...]:
    """Check every task of the suite that `load_suite` finds at `where`.

    Raises:
        SuiteError: if it cannot even be loaded.
    """
    tasks = load_suite(where).tasks
    broken = broken_environments(tasks)
    with closing(VerifierRunner()) as verifiers:
        return tuple(_check(task, verifiers, broken.get(task.environment_file, "")) for task in tasks)


def _check(task: Task, verifiers: VerifierRunner, broken: str) -> TaskCheck:
    """Check one task. Its verifier runs twice on each end state, in a workspace that is then removed."""
    problems = list(_leaks(task))
    if broken:
        return TaskCheck(task_id=task.task_id, passing=0, failing=0, problems=(*problems, broken), notes=())
    proved = {OutcomeKind.PASS: 0, OutcomeKind.FAIL: 0}
    solutions = _solutions(task)
    if not solutions:
        problems.append(
            f"{_folder(task).name}: nothing shows that it can be solved; put the files of a right end state that"
            " differ from the fixtures into solution/, or write outline.yaml"
        )
    wrong = tuple(_wrong_ends(task, solutions[0].make)) if solutions else ()
    broken_at: dict[str, list[str]] = {}
    for state in (_untouched(task), *solutions, *wrong):
        try:
            _prove(task, state, verifiers)
            proved[state.wanted] += 1
        except _Broken as problem:
            broken_at.setdefault(problem.text, []).append(problem.place)
        except _Problem as problem:
            problems.append(f"{_folder(task).name}/{problem}")
    for text, (place, *more) in broken_at.items():  # it tends to break in one way everywhere
        same = f"; the same at {', '.join(more)}" if more else ""
        problems.append(f"{_folder(task).name}/{place}: {text}{same}")
    problems += [f"{_folder(task).name}/{problem}" for problem in _failing_checks(task)]
    notes = []
    if solutions and not wrong:
        notes.append(
            f"{_folder(task).name}/task.yaml: 'wrong_end_states' is empty; name what an agent may plausibly get wrong"
        )
    return TaskCheck(
        task_id=task.task_id,
        passing=proved[OutcomeKind.PASS],
        failing=proved[OutcomeKind.FAIL],
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _untouched(task: Task) -> _EndState:
    advice = "an agent that does nothing would pass: look for what the task asks to be changed"
    return _EndState(place="fixtures", make=lambda _: None, wanted=OutcomeKind.FAIL, advice=advice)


def _solutions(task: Task) -> tuple[_EndState, ...]:
    found = []
    folder = _folder(task) / _SOLUTION
    advice = "either this is no solution, or the verifier refuses what is right"
    if folder.is_dir():
        made = partial(_lay_over, folder)
        found.append(_EndState(place=_SOLUTION, make=made, wanted=OutcomeKind.PASS, advice=advice))
    if task.outline is not None:
        changes = [step.call for step in task.outline.steps if step.kind == "change"]
        made = partial(_call_all, task.environment, changes)
        found.append(_EndState(place="outline.yaml: steps", make=made, wanted=OutcomeKind.PASS, advice=advice))
    return tuple(found)


def _wrong_ends(task: Task, solve: _Make) -> Iterator[_EndState]:
    """Yield the end states that the author says are wrong: named ones, and the wrong alternatives of the outline."""
    advice = "let the verifier look at what is wrong here, or take the state out if it is right after all"

    def after_solution(calls: Iterable[OutlineCall], workspace: Path) -> None:
        solve(workspace)
        _call_all(task.environment, calls, workspace)

    for state in read_task_file(_folder(task)).wrong_end_states:
        place = f"task.yaml: wrong_end_states.{state.name}"
        yield _EndState(place=place, make=partial(after_solution, state.calls), wanted=OutcomeKind.FAIL, advice=advice)
    changes = [step for step in task.outline.steps if step.kind == "change"] if task.outline is not None else []
    for number, step in enumerate(changes):
        before = [other.call for other in changes[:number]]
        after = [other.call for other in changes[number + 1 :]]
        for at, instead in enumerate(step.wrong):
            yield _EndState(
                place=f"outline.yaml: steps.{step.id}.wrong.{at}",
                make=partial(_with_instead, task.environment, before, instead, after),
                wanted=OutcomeKind.FAIL,
                advice=advice,
            )


def _prove(task: Task, state: _EndState, verifiers: VerifierRunner) -> None:
    with tempfile.TemporaryDirectory(prefix="geode-check-") as scratch:
        workspace = Path(scratch).resolve() / "workspace"
        copy_fixtures(task, workspace)
        try:
            state.make(workspace)
        except ToolFailed as failure:
            raise _Problem(state.place, f"the calls cannot be made: {failure}") from failure
        first, second = (_outcome(task, state, workspace, verifiers) for _ in range(2))
    if first != second:
        raise _Problem(
            state.place,
            f"the verifier says {_told(first)}, and on a second look {_told(second)};"
            " it must leave the workspace as it is, and depend on nothing else",
        )
    if first.kind is not state.wanted:
        raise _Problem(state.place, f"the verifier says {_told(first)}, not {state.wanted}; {state.advice}")


def _outcome(task: Task, state: _EndState, workspace: Path, verifiers: VerifierRunner) -> Outcome:
    try:
        return asyncio.run(verifiers.outcome(task.verify, workspace))
    except (VerifierBroke, EnvironmentBroken) as broke:
        raise _Broken(state.place, f"the verifier broke: {broke}; every such episode would be INVALID") from broke


def _failing_checks(task: Task) -> Iterator[str]:
    """Yield each check of the outline that does not pass when all its changes are made: no worker could be done."""
    if task.outline is None:
        return
    steps = task.outline.steps
    with tempfile.TemporaryDirectory(prefix="geode-check-") as scratch:
        workspace = Path(scratch).resolve() / "workspace"
        copy_fixtures(task, workspace)
        try:
            _call_all(task.environment, [step.call for step in steps if step.kind == "change"], workspace)
        except (ToolFailed, EnvironmentBroken):
            return  # which is told of the solution
        for step in steps:
            if step.kind == "check" and (problem := _failing(task, step, workspace)):
                yield f"outline.yaml: steps.{step.id}: when all changes are made, {problem}"


def _failing(task: Task, step: OutlineStep, workspace: Path) -> str:
    try:
        output = _output(task.environment, step.call, workspace)
    except (ToolFailed, EnvironmentBroken) as failure:
        return f"the call cannot be made: {failure}"
    if step.passes_when is None:
        return f"its result is an error: {_line(output.text)}" if output.is_error else ""
    wanted = f"its result does not hold {step.passes_when!r}, which is its 'passes_when': {_line(output.text)}"
    return "" if step.passes_when in output.text else wanted


def _line(text: str) -> str:
    return f"{' '.join(text.split()):.200}"


def _told(outcome: Outcome) -> str:
    return f"{outcome.kind} ({'; '.join(outcome.reasons):.200})" if outcome.reasons else str(outcome.kind)


def _lay_over(solution: Path, workspace: Path) -> None:
    shutil.copytree(solution, workspace, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def _call_all(environment: Environment, calls: Iterable[OutlineCall], workspace: Path) -> None:
    for call in calls:
        output = _output(environment, call, workspace)
        if output.is_error:
            raise ToolFailed(f"{call.tool}: {_line(output.text)}")


def _output(environment: Environment, call: OutlineCall, workspace: Path) -> ToolOutput:
    tools = workspace_tools(Workspace(workspace), environment)
    if call.tool not in tools:
        raise ToolFailed(f"there is no tool {call.tool!r}{nearest(call.tool, tools)}")
    tool = tools[call.tool]
    if refusal := check_arguments(tool, call.arguments):
        raise ToolFailed(refusal)
    return asyncio.run(_made(tool, call))


async def _made(tool: ToolSpec, call: OutlineCall) -> ToolOutput:
    return await tool.handler(call.arguments)


def _with_instead(
    environment: Environment,
    before: Iterable[OutlineCall],
    instead: OutlineCall,
    after: Iterable[OutlineCall],
    workspace: Path,
) -> None:
    _call_all(environment, (*before, instead), workspace)
    for call in after:
        try:
            _call_all(environment, (call,), workspace)
        except ToolFailed:
            # A worker that took the wrong turn meets the same refusal, and goes on.
            continue


def _leaks(task: Task) -> Iterator[str]:
    """Yield what a suite must not carry to others: secrets, and places that exist on its author's machine only."""
    texts = [("task.yaml: prompt", task.prompt)]
    for path in sorted(path for path in task.fixtures.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        with path.open("rb") as file:
            text = file.read(SCANNED_BYTES_MAX).decode(errors="replace")
        texts.append((f"fixtures/{path.relative_to(task.fixtures).as_posix()}", text))
    for place, text in texts:
        for number, line in enumerate(text.splitlines(), start=1):
            where = f"{_folder(task).name}/{place}:{number}"
            if Redactor().redact(line) != line:
                yield f"{where}: looks like a secret; put a made-up value that is shaped otherwise in its place"
            if found := _HOME_PATH.search(line):
                yield f"{where}: {found[0]!r} exists on one machine only; the agent's folder is /workspace"


def _folder(task: Task) -> Path:
    return task.fixtures.parent
