"""Facts of `geode.hooks.registry`: a hook that decides is heard, and one that fails to decide is found out."""

import asyncio
import math
from typing import Any

import pytest

from geode.authority import SafetyLevel
from geode.deadline import GRACE_S
from geode.hooks.points import (
    AddContext,
    Ask,
    Block,
    Compacting,
    Continue,
    Decision,
    Escalate,
    HookEvent,
    HookPoint,
    Pass,
    PermissionAsked,
    PromptSubmitted,
    Repair,
    Rewrite,
    Stopping,
    ToolEnded,
    ToolProposed,
    TurnVerified,
    Verifying,
    Withhold,
)
from geode.hooks.registry import Answer, HookRegistry
from tests.doubles.hooks import Deciding, ScriptedHook, clings, hangs, raising
from tests.doubles.virtual_time import end_all

EVENTS: dict[HookPoint, HookEvent] = {
    HookPoint.USER_PROMPT_SUBMIT: PromptSubmitted(text="go"),
    HookPoint.PRE_TOOL_USE: ToolProposed(tool="t", level=SafetyLevel.READ, arguments={}),
    HookPoint.PERMISSION_REQUEST: PermissionAsked(tool="t", level=SafetyLevel.WRITE, arguments={}, reason="r"),
    HookPoint.POST_TOOL_USE: ToolEnded(tool="t", level=SafetyLevel.READ, arguments={}, text="r", is_error=False),
    HookPoint.PRE_COMPACT: Compacting(tokens=2, tokens_max=1),
    HookPoint.PRE_VERIFY: Verifying(answer="a", repairs_left=2),
    HookPoint.POST_VERIFY: TurnVerified(answer="a", passed=True, reasons=(), repairs_left=2),
    HookPoint.STOP: Stopping(answer="a", verified=True, continuations_left=1),
}
DECISIONS: list[Decision] = [
    Pass(),
    Block(reason="r"),
    Rewrite(arguments={"k": 1}, reason="r"),
    Ask(reason="r"),
    AddContext(text="t"),
    Withhold(reason="r"),
    Repair(instruction="i"),
    Escalate(reason="r"),
    Continue(instruction="i"),
]
# What may be answered where: written here once more, by hand, from contracts 5.2 and 5.8.
MAY = {
    HookPoint.USER_PROMPT_SUBMIT: {"Pass", "Block", "AddContext"},
    HookPoint.PRE_TOOL_USE: {"Pass", "Block", "Rewrite", "Ask"},
    HookPoint.PERMISSION_REQUEST: {"Pass", "Block"},
    HookPoint.POST_TOOL_USE: {"Pass", "AddContext", "Withhold"},
    HookPoint.PRE_COMPACT: {"Pass", "Block"},
    HookPoint.PRE_VERIFY: {"Pass", "Repair", "Escalate"},
    HookPoint.POST_VERIFY: {"Pass", "Repair", "Escalate"},
    HookPoint.STOP: {"Pass", "Continue"},
}


async def ask(point: HookPoint, decide: Deciding, time_limit_s: float = 5.0) -> Answer | None:
    hook = ScriptedHook(point, decide=decide, time_limit_s=time_limit_s)
    return await HookRegistry([hook]).ask_one(hook, point, EVENTS[point])


@pytest.mark.parametrize("point", HookPoint)
@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: type(decision).__name__)
async def test_each_decision_counts_only_where_it_is_allowed(point: HookPoint, decision: Decision) -> None:
    """A hook after the verification cannot approve, and one at the stop cannot repair: it can only be stricter."""
    answer = await ask(point, lambda _: decision)
    name = type(decision).__name__
    if name == "Pass":
        assert answer is None
    elif name in MAY[point]:
        assert answer == Answer(hook="scripted", decision=decision)
    else:
        assert answer is not None
        assert answer.broken
        assert name in answer.problem
        assert point in answer.problem


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


BROKEN: dict[str, tuple[Deciding, str]] = {
    "hangs": (hangs, "no answer within 5 s"),
    "raises": (raising(ValueError("odd")), "it raised ValueError: odd"),
    "times out inside": (raising(TimeoutError("mine")), "it raised TimeoutError: mine"),
    "cancels itself": (raising(asyncio.CancelledError()), "it raised CancelledError"),
    "ends the process": (raising(SystemExit(2)), "tried to end the process with code 2"),
    "says nothing": (lambda _: None, "it answered None"),
    "says yes": (lambda _: True, "it answered True"),
    "prints half a decision": (lambda _: '{"decision":', "it answered '{\"decision\":'"),
    "prints without end": (lambda _: "x" * 50_000_000, "it answered 'xxx"),
    "gives a class": (lambda _: Block, "it answered <class"),
    "gives what cannot be shown": (lambda _: Unshowable(), "it answered <Unshowable"),
    "raises half a character": (raising(ValueError("\ud83c")), "it raised ValueError: �"),
}


@pytest.mark.parametrize("point", HookPoint)
@pytest.mark.parametrize("how", BROKEN)
async def test_a_hook_that_fails_to_decide_is_broken_at_every_point(point: HookPoint, how: str) -> None:
    """R33: hanging, crashing and nonsense are not an opinion, and never the lenient one."""
    decide, problem = BROKEN[how]
    answer = await ask(point, decide)
    assert answer is not None
    assert answer.decision is None
    assert problem in answer.problem
    assert len(answer.problem) < 300
    answer.problem.encode()


@pytest.mark.parametrize(
    ("point", "decision"),
    [
        (HookPoint.PRE_TOOL_USE, Block(reason=None)),  # type: ignore[arg-type]
        (HookPoint.PRE_TOOL_USE, Ask(reason=5)),  # type: ignore[arg-type]
        (HookPoint.PRE_TOOL_USE, Rewrite(arguments="rm", reason="r")),  # type: ignore[arg-type]
        (HookPoint.PRE_TOOL_USE, Rewrite(arguments=["rm"], reason="r")),  # type: ignore[arg-type]
        (HookPoint.PRE_TOOL_USE, Rewrite(arguments={"k": math.nan}, reason="r")),
        (HookPoint.PRE_TOOL_USE, Rewrite(arguments={"k": {1, 2}}, reason="r")),  # type: ignore[dict-item]
        (HookPoint.PRE_TOOL_USE, Rewrite(arguments={1: "k"}, reason="r")),  # type: ignore[dict-item]
        (HookPoint.USER_PROMPT_SUBMIT, AddContext(text=b"bytes")),  # type: ignore[arg-type]
        (HookPoint.POST_TOOL_USE, Withhold(reason=["a"])),  # type: ignore[arg-type]
        (HookPoint.POST_VERIFY, Repair(instruction=None)),  # type: ignore[arg-type]
        (HookPoint.POST_VERIFY, Repair(instruction=" \n")),
        (HookPoint.STOP, Continue(instruction="")),
    ],
)
async def test_a_decision_with_a_wrong_content_is_nonsense_too(point: HookPoint, decision: Decision) -> None:
    """Such a one used to crash the turn after its tools had run, or to pass for no objection."""
    answer = await ask(point, lambda _: decision)
    assert answer is not None
    assert answer.broken


async def test_arguments_nested_without_end_are_nonsense() -> None:
    """A30: what cannot be written down cannot be judged."""
    endless: dict[str, Any] = {}
    endless["self"] = endless
    answer = await ask(HookPoint.PRE_TOOL_USE, lambda _: Rewrite(arguments=endless, reason="r"))
    assert answer is not None
    assert answer.broken


async def test_a_hook_that_clings_to_life_cannot_hold_the_session() -> None:
    """R33 and R22: cancelling is not enough; a retry loop with a bare `except` goes on for ever."""
    before, began = asyncio.all_tasks(), asyncio.get_running_loop().time()
    answer = await ask(HookPoint.PRE_TOOL_USE, clings, time_limit_s=3)
    assert answer is not None
    assert answer.problem == "no answer within 3 s"
    assert asyncio.get_running_loop().time() - began == 3 + GRACE_S
    await end_all(asyncio.all_tasks() - before)


async def test_a_cancelled_session_does_not_take_the_hook_for_broken() -> None:
    task = asyncio.create_task(ask(HookPoint.PRE_TOOL_USE, hangs))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_texts_are_cleaned_once_at_the_boundary() -> None:
    """R14: a hook may quote what a tool printed; the words go to the history, the timeline and the provider."""
    answer = await ask(HookPoint.PRE_TOOL_USE, lambda _: Block(reason="\ud83c\0"))
    assert answer is not None
    assert answer.decision == Block(reason="��")
    rewrite = Rewrite(arguments={"k\udc8f": ["\ud83c"]}, reason="r")
    answer = await ask(HookPoint.PRE_TOOL_USE, lambda _: rewrite)
    assert answer is not None
    assert answer.decision == Rewrite(arguments={"k�": ["�"]}, reason="r")


async def test_a_hook_keeps_no_hand_on_its_rewrite() -> None:
    """A23: arguments that change after they were judged were not judged."""
    kept: dict[str, Any] = {"paths": ["a"]}
    answer = await ask(HookPoint.PRE_TOOL_USE, lambda _: Rewrite(arguments=kept, reason="r"))
    kept["paths"].append("/etc/passwd")
    assert answer is not None
    assert answer.decision == Rewrite(arguments={"paths": ["a"]}, reason="r")


async def test_hooks_are_asked_at_their_points_in_the_order_of_the_scaffold() -> None:
    first = ScriptedHook(HookPoint.STOP, HookPoint.PRE_TOOL_USE, name="first")
    second = ScriptedHook(HookPoint.STOP, name="second")
    registry = HookRegistry([first, second])
    assert registry.at(HookPoint.STOP) == (first, second)
    assert registry.at(HookPoint.PRE_TOOL_USE) == (first,)
    assert registry.at(HookPoint.POST_VERIFY) == ()


async def test_memory_goes_through_a_snapshot_to_the_hook_of_the_same_name() -> None:
    one, other = ScriptedHook(HookPoint.STOP, name="one"), ScriptedHook(HookPoint.STOP, name="other")
    registry = HookRegistry([one, other])
    await registry.ask_one(one, HookPoint.STOP, EVENTS[HookPoint.STOP])
    again, stranger = ScriptedHook(HookPoint.STOP, name="one"), ScriptedHook(HookPoint.STOP, name="new")
    HookRegistry([stranger, again]).restore(registry.snapshot())
    assert (again.remembered, stranger.remembered) == (1, 0)


class Forgetful(ScriptedHook):
    """A hook whose memory cannot be taken or given back."""

    def __init__(self, *, memory: object = None, refuses: bool = False) -> None:
        super().__init__(HookPoint.PRE_TOOL_USE, name="forgetful")
        self._memory, self._refuses = memory, refuses

    def snapshot(self) -> Any:
        if isinstance(self._memory, Exception):
            raise self._memory
        return self._memory

    def restore(self, memory: object) -> None:
        if self._refuses:
            raise KeyError("times")


@pytest.mark.parametrize("memory", [ValueError("odd"), {1, 2}, math.nan, "\ud83c", object()])
async def test_a_guard_whose_memory_cannot_be_saved_blocks_from_then_on(memory: object) -> None:
    """After a restart it would not know what it has seen. It must neither end the turn nor wave things through."""
    hook, sound = Forgetful(memory=memory), ScriptedHook(HookPoint.STOP, name="sound")
    registry = HookRegistry([hook, sound])
    event = EVENTS[HookPoint.PRE_TOOL_USE]
    assert await registry.ask_one(hook, HookPoint.PRE_TOOL_USE, event) is None
    if memory == "\ud83c":
        assert registry.snapshot() == {"forgetful": "\ud83c", "sound": 0}  # as JSON it is ASCII, and reads back
        return
    assert registry.snapshot() == {"sound": 0}
    answer = await registry.ask_one(hook, HookPoint.PRE_TOOL_USE, event)
    assert answer is not None
    assert answer.broken
    assert "its memory is lost" in answer.problem


async def test_a_guard_whose_memory_cannot_be_restored_blocks() -> None:
    """The session opens all the same: what else it holds is worth resuming."""
    hook, sound = Forgetful(refuses=True), ScriptedHook(HookPoint.STOP, name="sound")
    registry = HookRegistry([hook, sound])
    registry.restore({"forgetful": 1, "sound": 7})
    answer = await registry.ask_one(hook, HookPoint.PRE_TOOL_USE, EVENTS[HookPoint.PRE_TOOL_USE])
    assert answer is not None
    assert answer.problem == "its memory is lost: KeyError: 'times'"
    assert sound.remembered == 7


async def test_a_hook_without_memory_takes_no_room() -> None:
    assert HookRegistry([Forgetful()]).snapshot() == {}
