"""The table of `docs/hooks.md`, cell by cell: a real command, in a real loop, and what came of it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from geode.authority import SafetyLevel
from geode.executor.approval import Approval, ApprovalRequest
from geode.executor.policy import Mode
from geode.hooks.command import OUTPUT_BYTES_MAX, CommandEntry, CommandHook, CommandPlace
from geode.hooks.points import HookPoint
from geode.hooks.vocabulary import Vocabulary
from geode.loop.turn import TurnResult, TurnStop
from geode.scaffold import LoopLimits, RepairBudget
from geode.tools.spec import ToolOutput
from tests.doubles.effects import returning, tool
from tests.doubles.models import ScriptedModel, calls, says
from tests.doubles.sessions import Bench, open_bench

DOCS = Path(__file__).parents[2] / "docs" / "hooks.md"
LIMIT_S = 5.0
ENDS: Mapping[str, str] = {
    "ok": "exit 0",
    "deny": """echo '{"decision": "block", "reason": "because"}'""",
    "exit 1": "exit 1",
    "exit 2": "echo because >&2; exit 2",
    "exit 126": "exec ./not_executable",
    "exit 127": "exec ./not_there",
    "signal": "kill -9 $$",
    "timeout": "exec sleep 60",
    "bad JSON": """echo '{"decision": '""",
    "huge output": f"exec head -c {OUTPUT_BYTES_MAX + 1} /dev/zero",
    "two documents": """echo '{"decision": "approve"}'; echo '{"decision": "approve"}'""",
}


def table() -> dict[tuple[str, HookPoint], str]:
    """Read the table as it is published."""
    rows = [line.strip("| ").split(" | ") for line in DOCS.read_text().splitlines() if line.startswith("| ")]
    (_, *points), *ends = [row for row in rows if not row[0].startswith("-")]
    return {(end, HookPoint(point)): cell for end, *cells in ends for point, cell in zip(points, cells, strict=True)}


class YesMan:
    """Approves everything."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval.ONCE


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return "asyncio", {}  # commands take real time


def hooked(folder: Path, point: HookPoint, command: str, **more: Any) -> CommandHook:
    (folder / "not_executable").write_text("")
    place = CommandPlace(
        session_id="s",
        mode="repl",
        workspace=folder,
        timeline=folder / "timeline.jsonl",
        environment={"PATH": f"{Path(sys.executable).parent}:{os.defpath}"},
    )
    limit_s = 0.3 if "sleep" in command else LIMIT_S
    entry = CommandEntry(name="guard", point=point, command=command, time_limit_s=limit_s, **more)
    return CommandHook(entry, place, Vocabulary())


async def played(folder: Path, hook: CommandHook) -> tuple[Bench, ScriptedModel, TurnResult]:
    """Play a turn that comes by every point: a call that must be approved, results that fill the context, an answer."""
    rounds = [calls((f"c{number}", "act", "{}")) for number in range(4)]
    model = ScriptedModel([*rounds, says("done"), says("done"), says("done")])
    bench = open_bench(
        folder / "session",
        model,
        {"act": tool(returning(ToolOutput(text="x" * 8_000)), level=SafetyLevel.WRITE)},
        hooks=[hook],
        mode=Mode.REPL,
        approver=YesMan(),
        repair=RepairBudget(per_prompt=1),
        limits=LoopLimits(context_tokens=5_000, rounds=8),
    )
    try:
        return bench, model, await bench.loop.arun("go")
    finally:
        bench.close()


def seen(point: HookPoint, model: ScriptedModel, result: TurnResult) -> str:
    """Say in the words of the table what came of a turn."""
    texts = [message.text for asked in model.asked for message in asked.messages[-1:]]
    match point:
        case HookPoint.USER_PROMPT_SUBMIT:
            return "blocked" if result.stop is TurnStop.PROMPT_BLOCKED else "goes on"
        case HookPoint.PRE_TOOL_USE | HookPoint.PERMISSION_REQUEST:
            return "blocked" if result.refused_calls == 4 else "runs"
        case HookPoint.POST_TOOL_USE:
            said = model.asked[1].messages[-1]
            assert "x" * 8_000 in str(said.blocks[0])
            return "result" + (
                ", warning" if "is broken" in said.text else ", reason" if "because" in said.text else ""
            )
        case HookPoint.PRE_COMPACT:
            return "kept" if result.stop is TurnStop.CONTEXT_FULL else "left out"
        case HookPoint.PRE_VERIFY | HookPoint.POST_VERIFY:
            if result.stop is TurnStop.ESCALATED:
                return "escalated"
            return "sent back" if result.repairs_used and any("because" in text for text in texts) else "accepted"
        case HookPoint.STOP:
            if result.stop is TurnStop.NOT_VERIFIED:
                return "not verified"
            return "goes on" if any("because" in text for text in texts) else "ends"


@pytest.mark.slow
@pytest.mark.parametrize("point", HookPoint)
@pytest.mark.parametrize("end", ENDS)
async def test_each_cell_is_what_happens(tmp_path: Path, point: HookPoint, end: str) -> None:
    """Whoever relies on a guard reads the table, not the code."""
    _, model, result = await played(tmp_path, hooked(tmp_path, point, ENDS[end]))
    assert seen(point, model, result) == table()[(end, point)]


def test_the_table_has_every_point_and_every_end() -> None:
    assert table().keys() == {(end, point) for end in ENDS for point in HookPoint}


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"observer": True}, {"on_error_allow": True}], ids=["observer", "on_error: allow"])
@pytest.mark.parametrize("point", [HookPoint.PRE_TOOL_USE, HookPoint.POST_VERIFY, HookPoint.PRE_COMPACT])
async def test_an_observer_and_a_hook_that_may_fail_stop_nothing(
    tmp_path: Path, point: HookPoint, more: dict[str, bool]
) -> None:
    _, model, result = await played(tmp_path, hooked(tmp_path, point, "exit 1", **more))
    assert seen(point, model, result) == table()[("ok", point)]


@pytest.mark.slow
async def test_an_observer_is_not_heard_and_a_hook_that_may_fail_still_is(tmp_path: Path) -> None:
    """`on_error: allow` is about failing; what the hook does say counts."""
    for more, expected in (({"observer": True}, "runs"), ({"on_error_allow": True}, "blocked")):
        folder = tmp_path / expected
        folder.mkdir()
        hook = hooked(folder, HookPoint.PRE_TOOL_USE, ENDS["exit 2"], **more)
        _, model, result = await played(folder, hook)
        assert seen(HookPoint.PRE_TOOL_USE, model, result) == expected
