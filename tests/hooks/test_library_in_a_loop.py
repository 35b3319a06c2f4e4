"""Each further hook of the library in the real loop: what the model reads because of it, also after a restart."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.hooks.library import ABLATED, LIBRARY, build_hooks
from geode.hooks.middleware import fold_workspace_paths
from geode.llm.messages import ModelResponse, StepSnapshot, TextBlock, ToolResult
from geode.scaffold import HookChoice
from geode.tools.catalogue import workspace_tools
from geode.tools.spec import Arguments, ToolFailed, ToolOutput, ToolSpec
from geode.tools.workspace import Workspace
from tests.doubles.effects import tool
from tests.doubles.models import Reply, ScriptedModel, calls, never_answers, says
from tests.doubles.sessions import Bench, open_bench

pytestmark = pytest.mark.slow

PROMPT = "Please mend a.py and b.py."
LIST = calls(("c", "list_files", '{"path": "."}'))
READ_A = calls(("c", "read_file", '{"path": "/workspace/a.py"}'))
EDIT_A = calls(("c", "edit_file", '{"path": "a.py", "old": "one", "new": "two"}'))
EDIT_B = calls(("c", "edit_file", '{"path": "b.py", "old": "one", "new": "two"}'))
WRITE_C = calls(("c", "write_file", '{"path": "c.py", "content": "x"}'))
TEST_OK = calls(("c", "shell", '{"command": "sh test.sh"}'))
TEST_BAD = calls(("c", "shell", '{"command": "sh test.sh --bad"}'))
REMOVE = calls(("c", "shell", '{"command": "cd src && rm -rf ."}'))
DONE = says("Done.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What the model does before and after a restart, and what it is told because of the hook."""

    hook: str
    before: Sequence[ModelResponse]
    after: Sequence[ModelResponse]
    told: str
    options: dict[str, JsonValue] = field(default_factory=dict)


SCENARIOS = [
    Scenario(hook="require_read", before=[LIST, READ_A], after=[EDIT_A, EDIT_B, DONE], told="b.py was not read"),
    Scenario(hook="refuse_new_files", before=[LIST], after=[EDIT_A, WRITE_C, DONE], told="c.py would be a new file"),
    Scenario(hook="require_plan", before=[EDIT_A], after=[EDIT_A, EDIT_B, DONE], told="no plan was written yet"),
    Scenario(hook="trim_results", before=[READ_A], after=[DONE], told="were left out", options={"chars": 100}),
    Scenario(
        hook="show_effort",
        before=[LIST, READ_A],
        after=[TEST_BAD, DONE],
        told="took 3 rounds and 3 calls (1 ended in an error).",
        options={"every_rounds": 3},
    ),
    Scenario(
        hook="show_files",
        before=[LIST, READ_A],
        after=[EDIT_A, DONE],
        told="a.py (changed)\nb.py (listed)",
        options={"every_calls": 3},
    ),
    Scenario(hook="refuse_dangerous", before=[LIST], after=[REMOVE, DONE], told="deletes folders with everything in"),
    Scenario(
        hook="remind_of_errors",
        before=[TEST_BAD, READ_A],
        after=[LIST, DONE, DONE],
        told="(2 of 3 failed), and the calls since did not take that up",
        options={"after_calls": 2},
    ),
    Scenario(hook="remind_of_errors", before=[TEST_BAD], after=[DONE, DONE], told="no call since took that up. Read"),
    Scenario(hook="review_request", before=[EDIT_A], after=[DONE, DONE], told=f"The request was:\n{PROMPT}"),
    Scenario(hook="review_changes", before=[EDIT_A], after=[DONE, READ_A, DONE], told="You changed a.py and have not"),
    Scenario(
        hook="require_evidence",
        before=[EDIT_A, TEST_OK, EDIT_B],
        after=[says("All tests pass."), DONE],
        told="no call shows that",
    ),
]


def shell() -> ToolSpec:
    async def run(arguments: Arguments) -> ToolOutput:
        if "--bad" in str(arguments["command"]):
            raise ToolFailed("exit code: 1\n2 of 3 failed")
        return ToolOutput(text="exit code: 0\nok")

    return tool(run, name="shell", level=SafetyLevel.EXECUTE)


def opened(folder: Path, replies: Sequence[Reply], scenario: Scenario, *, hooked: bool) -> Bench:
    workspace = folder / "workspace"
    if not workspace.exists():
        workspace.mkdir(parents=True)
        (workspace / "a.py").write_text("one\n" + "# padding\n" * 20, encoding="utf-8")
        (workspace / "b.py").write_text("one\n", encoding="utf-8")
    tools = {**workspace_tools(Workspace(workspace)), "shell": shell()}
    hooks = build_hooks((HookChoice(name=scenario.hook, options=scenario.options),), LIBRARY) if hooked else ()
    return open_bench(
        folder / "session", ScriptedModel(replies), tools, hooks=hooks, middleware=(fold_workspace_paths,)
    )


def read_by_model(bench: Bench) -> list[str]:
    texts = [b.text for m in bench.loop.messages for b in m.blocks if isinstance(b, TextBlock | ToolResult)]
    # A round whose answer never came is used up all the same, so a restart leaves one less.
    return [re.sub(r"\d+ rounds are left", "n rounds are left", text) for text in texts]


async def straight(folder: Path, scenario: Scenario, *, hooked: bool = True) -> list[str]:
    bench = opened(folder, [*scenario.before, *scenario.after], scenario, hooked=hooked)
    result = await bench.loop.arun(PROMPT)
    bench.close()
    assert result.verified
    assert not any("is broken" in text for text in read_by_model(bench))
    return read_by_model(bench)


async def interrupted(folder: Path, scenario: Scenario) -> list[str]:
    """The process stops while it waits for the model, and another one goes on with what the checkpoint holds."""
    waited_for = asyncio.Event()

    async def tells_and_never_answers(snapshot: StepSnapshot) -> ModelResponse:
        waited_for.set()
        return await never_answers(snapshot)

    bench = opened(folder, [*scenario.before, tells_and_never_answers], scenario, hooked=True)
    turn = asyncio.ensure_future(bench.loop.arun(PROMPT))
    await waited_for.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    bench.close()
    again = opened(folder, scenario.after, scenario, hooked=True)
    result = await again.loop.aresume()
    again.close()
    assert result.verified
    return read_by_model(again)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.hook)
async def test_a_hook_tells_the_model_the_same_with_and_without_a_restart(scenario: Scenario, tmp_path: Path) -> None:
    """A guard whose memory dies with the process lets through, or asks again for, what it has already settled."""
    texts = await straight(tmp_path / "straight", scenario)
    assert sum(scenario.told in text for text in texts) == 1
    assert await interrupted(tmp_path / "interrupted", scenario) == texts
    without = await straight(tmp_path / "without", scenario, hooked=False)
    assert not any(scenario.told in text for text in without)


def test_every_further_hook_has_a_scenario() -> None:
    """A hook that no test has seen in the loop is no hook that one can measure."""
    assert {scenario.hook for scenario in SCENARIOS} == set(LIBRARY) - set(ABLATED)
