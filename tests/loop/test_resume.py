"""Facts of stopping and going on: a cancelled turn is saved with every result, and taken up where it stood."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geode.clock import ManualClock
from geode.events import Notice, TurnEnded
from geode.hooks.points import HookPoint
from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, encode_message
from geode.loop.turn import TurnStop
from geode.loop.verify import CompletionResult, CompletionView
from geode.records.checkpoint import Progress, SessionCheckpoint
from geode.records.cognitive import CognitiveState
from geode.records.folder import SessionFolder
from geode.records.receipts import ReceiptState
from geode.scaffold import LoopLimits
from geode.tools.spec import Arguments, ToolOutput
from tests.doubles.effects import OutsideWorld, marking_tool, tool
from tests.doubles.hooks import ScriptedHook, hangs
from tests.doubles.models import calls, never_answers, says
from tests.doubles.sessions import SESSION_ID, Bench
from tests.doubles.virtual_time import end_all
from tests.doubles.wire import problems
from tests.loop.conftest import SessionOpener

MARK = calls(("c1", "mark", '{"n":1}'))
STUCK = calls(("c2", "stick", "{}"))


@pytest.fixture
def world(tmp_path: Path) -> OutsideWorld:
    return OutsideWorld(tmp_path / "effects.log")


async def never(_: Arguments) -> ToolOutput:
    return await asyncio.get_running_loop().create_future()


class Waiting:
    name = "waiting"

    async def judge_completion(self, view: CompletionView) -> CompletionResult:
        del view
        return await asyncio.get_running_loop().create_future()


def stuck_at(place: str) -> dict[str, Any]:
    """The parts of a session that is busy at `place` for ever."""
    match place:
        case "model":
            return {"replies": [MARK, never_answers]}
        case "tool":
            return {"replies": [MARK, STUCK]}
        case "two tools":
            return {"replies": [MARK, calls(("c2", "stick", "{}"), ("c3", "mark", '{"n":2}'), ("c4", "stick", "{}"))]}
        case "guard":
            return {
                "replies": [MARK],
                "hooks": [ScriptedHook(HookPoint.PRE_TOOL_USE, decide=hangs, time_limit_s=9_999)],
            }
        case "hook after":
            return {
                "replies": [MARK],
                "hooks": [ScriptedHook(HookPoint.POST_TOOL_USE, decide=hangs, time_limit_s=9_999)],
            }
        case "judge":
            return {"replies": [MARK, says("done")], "judges": [Waiting()]}
        case "stop hook":
            return {
                "replies": [MARK, says("done")],
                "hooks": [ScriptedHook(HookPoint.STOP, decide=hangs, time_limit_s=9_999)],
            }
    raise AssertionError(place)


PLACES = {  # place: effects so far, receipts in doubt, the end after going on
    "model": (1, 0, TurnStop.COMPLETED),
    "tool": (1, 1, TurnStop.ESCALATED),
    "two tools": (2, 2, TurnStop.ESCALATED),
    "guard": (0, 0, TurnStop.COMPLETED),
    "hook after": (1, 0, TurnStop.COMPLETED),
    "judge": (1, 0, TurnStop.COMPLETED),
    "stop hook": (1, 0, TurnStop.COMPLETED),
}


async def cancel(bench: Bench, prompt: str = "go") -> None:
    """Cancel a turn in the middle, and hold what is true of every cancelled turn: contract 5.11."""
    before = asyncio.all_tasks()
    task = asyncio.create_task(bench.loop.arun(prompt))
    await asyncio.sleep(60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() - {task} == before, "no task outlives the turn"
    stored = bench.checkpoint.load()
    assert list(stored.messages) == list(bench.loop.messages), "what is in memory is saved"
    assert problems(stored.messages, is_request=False) == []
    assert not bench.loop._conversation.awaited, "every call has its result"
    ended = bench.events[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.stop_reason, ended.verified) == ("cancelled", False)


@pytest.mark.parametrize("again", ["in the same process", "in another one"])
@pytest.mark.parametrize("place", PLACES)
async def test_a_cancelled_turn_is_saved_and_can_be_gone_on_with(
    opened: SessionOpener, world: OutsideWorld, place: str, again: str
) -> None:
    effects, in_doubt, stop = PLACES[place]
    parts = stuck_at(place)
    replies = parts.pop("replies")
    tools = [marking_tool(world), tool(never, name="stick", timeout_s=9_999)]
    bench, model = opened(replies, *tools, **parts, limits=LoopLimits(seconds=9_999))
    await cancel(bench)
    assert bench.loop.unfinished
    assert len(world.effects) == effects
    assert len(bench.receipts.all(ReceiptState.UNCERTAIN)) == in_doubt
    if again == "in another one":
        bench, model = opened([says("done")], *tools)
    else:
        model._replies[:] = [says("done")]
        model.asked.clear()
        object.__setattr__(bench.loop._parts, "judges", ())
        bench.loop._parts.registry._at = dict.fromkeys(HookPoint, ())
    result = await bench.loop.aresume()
    assert (result.stop, result.text) == (stop, "done")
    assert len(world.effects) == effects, "nothing runs again"
    assert len(model.asked) == (0 if place in ("judge", "stop hook") else 1)


async def test_a_cancelled_call_says_that_outside_work_may_go_on(opened: SessionOpener) -> None:
    bench, _ = opened([STUCK], tool(never, name="stick", timeout_s=9_999))
    await cancel(bench)
    (result,) = bench.loop.messages[-1].blocks
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert "work that it began outside may go on" in result.text


async def test_a_tool_that_clings_to_life_does_not_hold_a_cancelled_turn(opened: SessionOpener) -> None:
    """A30: a session answers to a stop within three seconds."""

    async def clings(_: Arguments) -> ToolOutput:
        for _ in range(3):
            try:
                await asyncio.sleep(31_536_000)
            except asyncio.CancelledError:
                continue
        raise TimeoutError

    before = asyncio.all_tasks()
    bench, _ = opened([STUCK], tool(clings, name="stick", timeout_s=9_999))
    task = asyncio.create_task(bench.loop.arun("go"))
    await asyncio.sleep(60)
    task.cancel()
    began = asyncio.get_running_loop().time()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() - began <= 3
    await end_all(asyncio.all_tasks() - before - {task})


async def test_a_turn_cancelled_before_its_prompt_was_accepted_leaves_nothing_to_go_on_with(
    opened: SessionOpener,
) -> None:
    """Taking it up would hold the answer of the prompt before against a prompt that is not there."""
    bench, _ = opened([says("first answer")])
    await bench.loop.arun("first")
    slow = ScriptedHook(HookPoint.USER_PROMPT_SUBMIT, decide=hangs, time_limit_s=9_999)
    bench, _ = opened([says("second answer")], hooks=[slow])
    await cancel(bench, "second")
    assert not bench.loop.unfinished
    with pytest.raises(ValueError, match="nothing to resume"):
        await bench.loop.aresume()
    bench, model = opened([says("second answer")])
    assert not bench.loop.unfinished
    assert (await bench.loop.arun("second, again")).text == "second answer"
    assert [message.text for message in model.asked[0].messages] == ["first", "first answer", "second, again"]


async def test_an_unfinished_prompt_comes_before_a_new_one(opened: SessionOpener, world: OutsideWorld) -> None:
    """R01: the new message is neither dropped nor sent into a broken history."""
    bench, _ = opened([MARK, never_answers], marking_tool(world))
    await cancel(bench)
    bench, model = opened([says("done"), says("hello")], marking_tool(world))
    with pytest.raises(ValueError, match="an earlier prompt of this session is unfinished; resume it first"):
        await bench.loop.arun("hello?")
    assert (await bench.loop.aresume()).text == "done"
    assert (await bench.loop.arun("hello?")).text == "hello"
    with pytest.raises(ValueError, match="there is nothing to resume"):
        await bench.loop.aresume()
    assert len(model.asked) == 2


async def test_a_history_that_ends_in_a_call_is_repaired_before_the_first_request(
    opened: SessionOpener, tmp_path: Path
) -> None:
    """R01: user, assistant asks t1, killed, resumed. The fixture holds the request against the validator."""
    path = tmp_path / "session"
    path.mkdir()
    checkpoint = SessionCheckpoint.open(SessionFolder(path).checkpoint, SESSION_ID)
    prompt = Message(role=Speaker.USER, blocks=(TextBlock(text="go", origin=Origin.USER),))
    asked = Message(role=Speaker.ASSISTANT, blocks=calls(("t1", "mark", "{}")).blocks)
    progress = Progress(turn=1, in_turn=True)
    checkpoint.save_messages([encode_message(prompt)], progress, {}, CognitiveState())
    progress.round = 1
    checkpoint.save_pending(encode_message(asked), 1, progress)
    checkpoint.close()
    bench, model = opened([says("done")], marking_tool(OutsideWorld(tmp_path / "log")))
    assert (await bench.loop.aresume()).stop is TurnStop.COMPLETED
    (result,) = model.asked[0].messages[-1].blocks
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == ("t1", True)
    assert result.text == (
        "The process ended before this call's result was saved."
        " No effect of it is on record; it may not have run at all."
    )
    assert [event.about for event in bench.events if isinstance(event, Notice)] == ["resume"]


async def test_round_numbers_go_on_over_turns_and_processes(opened: SessionOpener, world: OutsideWorld) -> None:
    """A round's number is part of the key of its receipts; used again, it would refuse an honest call."""
    seen = []
    for n in range(3):
        bench, model = opened([calls(("same", "mark", "{}")), says(f"answer {n}")], marking_tool(world))
        await bench.loop.arun("go")
        seen += [asked.round for asked in model.asked]
    assert seen == [1, 2, 3, 4, 5, 6]
    assert [(receipt.key.round, receipt.key.call_id) for receipt in bench.receipts.all()] == [
        (1, "same"),
        (3, "same_2"),
        (5, "same_3"),
    ]


async def test_the_time_between_stopping_and_going_on_is_not_the_prompts(opened: SessionOpener) -> None:
    clock = ManualClock()

    def slow(step: float) -> Callable[[Any], Any]:
        def reply(_: Any) -> Any:
            clock.advance(step)
            return says("done")

        return reply

    bench, model = opened([never_answers], clock=clock, limits=LoopLimits(seconds=9_999))
    clock.advance(5)
    task = asyncio.create_task(bench.loop.arun("go"))
    await asyncio.sleep(60)
    clock.advance(7)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.checkpoint.load().progress.elapsed_s == 7
    clock.advance(50_000)
    model._replies[:] = [slow(3)]
    assert (await bench.loop.aresume()).stop is TurnStop.COMPLETED
    assert bench.checkpoint.load().progress.elapsed_s == 10


async def test_hooks_remember_what_they_saw_before(opened: SessionOpener, world: OutsideWorld) -> None:
    hook = ScriptedHook(HookPoint.PRE_TOOL_USE, HookPoint.POST_VERIFY)
    bench, _ = opened([MARK, MARK, says("done")], marking_tool(world), hooks=[hook])
    await bench.loop.arun("go")
    assert hook.remembered == 3
    again = ScriptedHook(HookPoint.PRE_TOOL_USE, HookPoint.POST_VERIFY)
    bench, _ = opened([never_answers], marking_tool(world), hooks=[again])
    assert again.remembered == 3
    await cancel(bench)
    third = ScriptedHook(HookPoint.STOP)
    opened([says("x")], marking_tool(world), hooks=[third])
    assert third.remembered == 3
