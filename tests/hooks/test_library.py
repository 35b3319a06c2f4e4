"""Facts of `geode.hooks.library`: what each hook that ships stops, what it lets through, and what it remembers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.hooks.library import ABLATED, UnknownHook, build_hooks
from geode.hooks.points import (
    Block,
    Decision,
    DecisionHook,
    HookEvent,
    Pass,
    Repair,
    ToolEnded,
    ToolProposed,
    TurnVerified,
)
from geode.scaffold import HookChoice

READ, WRITE, EXECUTE = SafetyLevel.READ, SafetyLevel.WRITE, SafetyLevel.EXECUTE
VERIFIED = TurnVerified(answer="a", passed=True, reasons=(), repairs_left=2)


def hook(name: str, **options: JsonValue) -> DecisionHook:
    return build_hooks((HookChoice(name=name, options=options),), ABLATED)[0]


def proposed(tool: str, level: SafetyLevel, **arguments: JsonValue) -> ToolProposed:
    return ToolProposed(tool=tool, level=level, arguments=arguments)


def ended(
    tool: str, level: SafetyLevel, text: str = "ok", *, is_error: bool = False, **arguments: JsonValue
) -> ToolEnded:
    return ToolEnded(tool=tool, level=level, arguments=arguments, text=text, is_error=is_error)


async def last(asked: DecisionHook, *events: HookEvent) -> Decision:
    """What the hook says to the last of the events."""
    answers = [await asked.decide(event) for event in events]
    return answers[-1]


EDIT = ended("edit_file", WRITE, path="src/a.py")
PASSING = ended("shell", EXECUTE, command="python -m pytest -q")
FAILING = ended("shell", EXECUTE, is_error=True, command="python -m pytest -q")
LOOKING = ended("shell", EXECUTE, command="ls -l")


# require_test_run


@pytest.mark.parametrize(
    ("events", "objection"),
    [
        ([], ""),
        ([EDIT], "have not run the tests"),
        ([EDIT, PASSING], ""),
        ([PASSING, EDIT], "have not run the tests"),
        ([EDIT, FAILING], "failed"),
        ([FAILING], "failed"),
        ([EDIT, FAILING, PASSING], ""),
        ([EDIT, LOOKING], "have not run the tests"),
        ([ended("edit_file", WRITE, is_error=True, path="a")], ""),
        ([ended("read_file", READ, path="a")], ""),
    ],
)
async def test_an_answer_needs_a_passing_test_after_the_last_change(events: list[HookEvent], objection: str) -> None:
    answer = await last(hook("require_test_run"), *events, VERIFIED)
    if objection:
        assert isinstance(answer, Repair)
        assert objection in answer.instruction
    else:
        assert answer == Pass()


@pytest.mark.parametrize(
    ("command", "is_test"),
    [
        ("pytest", True),
        ("python -m pytest tests", True),
        ("make check", True),
        ("./run_tests.sh", True),
        ("sh verify.sh", True),
        ("cat testament.txt", False),
        ("git checkout main", False),
        ("ls", False),
    ],
)
async def test_a_command_that_runs_a_test_is_told_by_its_words(command: str, *, is_test: bool) -> None:
    ran = ended("shell", EXECUTE, command=command)
    assert (await last(hook("require_test_run"), EDIT, ran, VERIFIED) == Pass()) is is_test


# protect_tests


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/test_a.py", True),
        ("src/tests/data.csv", True),
        ("test_a.py", True),
        ("pkg/a_test.go", True),
        ("conftest.py", True),
        ("checks/../check.sh", True),
        ("check_totals.awk", True),
        ("src/a.py", False),
        ("src/contest.py", False),
        ("latest/notes.md", False),
        ("checkout.py.md", False),
    ],
)
async def test_a_test_is_read_only_for_the_file_tools(path: str, *, is_test: bool) -> None:
    answer = await last(hook("protect_tests"), proposed("edit_file", WRITE, path=path))
    assert isinstance(answer, Block) is is_test
    if isinstance(answer, Block):
        assert path in answer.reason


async def test_reading_and_running_a_test_is_free() -> None:
    guard = hook("protect_tests")
    assert await last(guard, proposed("read_file", READ, path="tests/test_a.py")) == Pass()
    assert await last(guard, proposed("shell", EXECUTE, command="pytest tests/test_a.py")) == Pass()
    assert await last(guard, proposed("write_file", WRITE, path=5)) == Pass()


# stop_repeats

LIST = {"tool": "list_files", "level": READ, "path": "."}


async def made(guard: DecisionHook, times: int, text: str = "ok", **call: Any) -> None:
    for _ in range(times):
        await guard.decide(ended(**call, text=text))


@pytest.mark.parametrize("level", [READ, WRITE, EXECUTE])
@pytest.mark.parametrize("is_error", [False, True])
async def test_an_equal_call_with_an_equal_result_is_stopped_at_the_third_time(
    level: SafetyLevel, *, is_error: bool
) -> None:
    """A call that succeeds over and over is a loop like one that fails."""
    guard, call = hook("stop_repeats"), {"tool": "t", "level": level, "path": "a"}
    await made(guard, 1, is_error=is_error, **call)
    assert await last(guard, proposed(**call)) == Pass()
    await made(guard, 1, is_error=is_error, **call)
    answer = await last(guard, proposed(**call))
    assert isinstance(answer, Block)
    assert "already made 2 times with the same result" in answer.reason


async def test_another_result_or_another_argument_is_no_repeat() -> None:
    guard = hook("stop_repeats")
    await made(guard, 1, text="one", **LIST)
    await made(guard, 1, text="two", **LIST)
    assert await last(guard, proposed(**LIST)) == Pass()
    await made(guard, 2, **LIST)
    assert await last(guard, proposed("list_files", READ, path="src")) == Pass()


async def test_a_change_of_the_workspace_frees_the_other_calls() -> None:
    """The same test run says something new after an edit, so edit and test may alternate for ever."""
    guard = hook("stop_repeats")
    await made(guard, 2, **LIST)
    await guard.decide(EDIT)
    assert await last(guard, proposed(**LIST)) == Pass()
    for n in range(5):
        await guard.decide(ended("edit_file", WRITE, path="a", n=n))
        answer = await last(guard, proposed("shell", EXECUTE, command="pytest"))
        assert answer == Pass()
        await guard.decide(ended("shell", EXECUTE, is_error=True, command="pytest"))


async def test_only_so_many_calls_are_remembered() -> None:
    guard = hook("stop_repeats", allowed=1, window=2)
    await made(guard, 1, **LIST)
    for n in range(2):
        await made(guard, 1, tool="read_file", level=READ, path=str(n))
    assert await last(guard, proposed(**LIST)) == Pass()
    assert isinstance(guard.snapshot(), list)
    assert len(guard.snapshot()) == 2  # type: ignore[arg-type]


# Memory

EVENTS = st.sampled_from(
    [EDIT, PASSING, FAILING, LOOKING, ended("read_file", READ, path="a"), ended("read_file", READ, text="b", path="a")]
)
PROBES: list[HookEvent] = [
    VERIFIED,
    proposed("shell", EXECUTE, command="python -m pytest -q"),
    proposed("shell", EXECUTE, command="ls -l"),
    proposed("read_file", READ, path="a"),
    proposed("edit_file", WRITE, path="src/a.py"),
    proposed("edit_file", WRITE, path="tests/a.py"),
]


@pytest.mark.parametrize("name", ABLATED)
@given(events=st.lists(EVENTS, max_size=6))
async def test_a_restored_hook_decides_as_the_one_that_died(name: str, events: list[HookEvent]) -> None:
    """R25 and contract 5.12: after a restart the guards are as they were, not as new."""
    lived = hook(name)
    for event in events:
        await lived.decide(event)
    again = hook(name)
    again.restore(json.loads(json.dumps(lived.snapshot())))  # as the checkpoint holds it
    assert again.snapshot() == lived.snapshot()
    for probe in PROBES:
        assert await again.decide(probe) == await lived.decide(probe)


# Building


def test_the_shipped_hooks_are_found_by_name() -> None:
    assert sorted(ABLATED) == ["protect_tests", "require_test_run", "stop_repeats"]
    assert all(hook(name).name == name for name in ABLATED)


def test_hooks_are_built_in_the_order_of_the_scaffold() -> None:
    choices = (HookChoice(name="stop_repeats"), HookChoice(name="protect_tests"))
    assert [built.name for built in build_hooks(choices, ABLATED)] == ["stop_repeats", "protect_tests"]


def test_an_unknown_hook_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownHook, match=r"'stop_repeat'; there are protect_tests, require_test_run, stop_repeats"):
        build_hooks((HookChoice(name="stop_repeat"),), ABLATED)


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("stop_repeats", {"allowed": 0}, "allowed: "),
        ("stop_repeats", {"alowed": 2}, "alowed: "),
        ("protect_tests", {"paths": "("}, "paths: .*'\\(' is no regular expression"),
        ("require_test_run", {"commands": 5}, "commands: "),
    ],
)
def test_wrong_options_are_refused_with_their_name(name: str, options: dict[str, JsonValue], problem: str) -> None:
    with pytest.raises(UnknownHook, match=f"hook '{name}' does not take these options \\(.*{problem}"):
        build_hooks((HookChoice(name=name, options=options),), ABLATED)


def test_a_factory_of_somebody_else_may_refuse_in_its_own_words() -> None:
    def picky(_: dict[str, JsonValue]) -> DecisionHook:
        raise ValueError("only on Sundays")

    with pytest.raises(UnknownHook, match=r"does not take these options \(only on Sundays\)"):
        build_hooks((HookChoice(name="picky"),), {"picky": picky})
