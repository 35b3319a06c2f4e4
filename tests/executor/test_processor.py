"""Facts of `geode.executor.processor`: one result a call, in order, whatever the calls, tools and hooks do."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geode.authority import SafetyLevel
from geode.events import CallEnd, CallEnded
from geode.executor.call import Place
from geode.executor.policy import Mode
from geode.executor.processor import BatchResult, ToolCallProcessor
from geode.hooks.points import AddContext, Block, HookEvent, HookPoint, Rewrite, Withhold
from geode.llm.messages import Speaker, TextBlock, ToolResult, ToolUse
from geode.records.receipts import ReceiptState
from geode.tools.spec import Arguments, ToolFailed, ToolOutput, ToolSpec
from tests.doubles.effects import OutsideWorld, marking_tool, raising, returning, tool
from tests.doubles.hooks import ScriptedHook
from tests.doubles.hooks import hangs as hook_hangs
from tests.doubles.models import ScriptedModel
from tests.doubles.sessions import Bench, open_bench
from tests.executor.conftest import BenchOpener

PLACE = Place(turn=1, round=1)


async def hangs(_: Arguments) -> ToolOutput:
    return await asyncio.get_running_loop().create_future()


def odd_tools(world: OutsideWorld) -> list[ToolSpec]:
    """A tool for every way in which a handler can end."""
    return [
        marking_tool(world, name="mark", resource="r"),
        tool(returning(ToolOutput(text="")), name="silent", level=SafetyLevel.READ),
        tool(returning(ToolOutput(text="\ud83c\0")), name="dirty"),
        tool(returning(ToolOutput(text="x" * 100_000)), name="flood"),
        tool(returning(None), name="nothing"),
        tool(raising(ToolFailed("no \udc8f")), name="fails"),
        tool(raising(ValueError("\ud83c")), name="crashes", resource="r"),
        tool(raising(asyncio.CancelledError()), name="cancels"),
        tool(raising(SystemExit(1)), name="exits"),
        tool(hangs, name="hangs", timeout_s=5, resource="r"),
        tool(returning(ToolOutput(text="x")), name="far", level=SafetyLevel.EXTERNAL),
        tool(returning(ToolOutput(text="x")), name="strict", schema={"type": "object", "required": ["q"]}),
    ]


NAMES = [
    "mark",
    "silent",
    "dirty",
    "flood",
    "nothing",
    "fails",
    "crashes",
    "cancels",
    "exits",
    "hangs",
    "far",
    "strict",
]
ARGUMENTS = st.sampled_from(
    [
        "{}",
        "",
        "null",
        '["a"]',
        '"{\\"q\\":1}"',
        '{"q":1}',
        '{"path":"a.txt","content":"line 1',
        "\ud83c",
        "[" * 100_000,
    ]
) | st.text(max_size=20)
CALLS = st.lists(
    st.tuples(st.sampled_from([*NAMES, "run_shel", "", "m\udc8f"]) | st.text(max_size=8), ARGUMENTS), max_size=8
)
PRE = st.sampled_from(
    [
        None,
        Block(reason="no"),
        Rewrite(arguments={"q": 2}, reason="r"),
        Rewrite(arguments={}, reason="r"),
        "nonsense",
        "hang",
    ]
)
POST = st.sampled_from([None, AddContext(text="note"), AddContext(text=""), Withhold(reason="w"), "nonsense", "hang"])


def answering(answer: object) -> Any:
    if answer == "hang":
        return hook_hangs
    if answer is None:
        return None
    return lambda _: answer


def hooks(pre: object, post: object) -> list[ScriptedHook]:
    asked = [(HookPoint.PRE_TOOL_USE, "pre", answering(pre)), (HookPoint.POST_TOOL_USE, "post", answering(post))]
    return [ScriptedHook(point, name=name, decide=decide) for point, name, decide in asked if decide]


def batch_of(calls: Sequence[tuple[str, str]]) -> list[ToolUse]:
    return [ToolUse(call_id=f"c{n}", name=name, arguments=arguments) for n, (name, arguments) in enumerate(calls)]


def hold(bench: Bench, uses: Sequence[ToolUse], batch: BatchResult) -> None:
    """What is true of every batch: contract 5.3 and 5.5, told without the code under test."""
    message = batch.message
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    assert message.role is Speaker.USER
    assert list(message.blocks[: len(results)]) == results, "results come first"
    assert [result.call_id for result in results] == [use.call_id for use in uses], "one each, in order"
    for block in message.blocks:
        assert isinstance(block, ToolResult | TextBlock)
        assert block.text.strip()
        block.text.encode()
    assert [call.result for call in batch.calls] == results
    events = [event for event in bench.events if isinstance(event, CallEnded)]
    assert sorted(event.call_id for event in events) == sorted(use.call_id for use in uses), (
        "each call is on record once"
    )
    receipts = {receipt.key.call_id: receipt.state for receipt in bench.receipts.all()}
    for call in batch.calls:
        state = receipts.get(call.result.call_id)
        if call.end is CallEnd.NOT_STARTED:
            assert call.stage
            assert state in (None, ReceiptState.NOT_STARTED)
        elif state is not None:
            assert state.value == call.end.value
    assert bench.executor._locks._resources == {}


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    calls=CALLS,
    pre=PRE,
    post=POST,
    calls_max=st.integers(1, 6),
    cancel_at=st.none() | st.sampled_from([0.0, 0.5, 3.0, 6.0]),
)
async def test_every_call_of_any_batch_gets_one_result_in_order(
    calls: list[tuple[str, str]], pre: object, post: object, calls_max: int, cancel_at: float | None
) -> None:
    """Contract 5.3; R07, R10, R12, R19, A30: also refused, cancelled, timed out, crashed, surplus or malformed."""
    with tempfile.TemporaryDirectory() as folder:
        world = OutsideWorld(Path(folder) / "effects.log")
        tools = {spec.name: spec for spec in odd_tools(world)}
        bench = open_bench(Path(folder) / "s", ScriptedModel([]), tools, hooks=hooks(pre, post))
        before = asyncio.all_tasks()
        uses = batch_of(calls)
        task = asyncio.create_task(ToolCallProcessor(bench.executor, calls_max=calls_max).arun(uses, PLACE))
        if cancel_at is not None:
            asyncio.get_running_loop().call_later(cancel_at, task.cancel)
        batch = await task
        hold(bench, uses, batch)
        marks = [call for call, use in zip(batch.calls, uses, strict=True) if use.name == "mark"]
        known, doubtful = (sum(call.end is end for call in marks) for end in (CallEnd.SUCCEEDED, CallEnd.UNCERTAIN))
        assert known <= len(world.effects) <= known + doubtful, "counted outside"
        assert asyncio.all_tasks() == before, "no task outlives its batch"
        bench.close()


async def run(bench: Bench, *calls: tuple[str, str], calls_max: int = 16) -> BatchResult:
    uses = batch_of(calls)
    batch = await ToolCallProcessor(bench.executor, calls_max=calls_max).arun(uses, PLACE)
    hold(bench, uses, batch)
    return batch


async def test_five_bad_calls_and_a_good_one_give_six_results(opened: BenchOpener) -> None:
    """R12, word for word."""
    read = tool(
        returning(ToolOutput(text="the file")),
        name="read_file",
        level=SafetyLevel.READ,
        schema={"type": "object", "properties": {"q": {}}, "required": ["q"], "additionalProperties": False},
    )
    bench = opened(read)
    batch = await run(
        bench,
        ("read_file", ""),
        ("read_file", "null"),
        ("read_file", '["a"]'),
        ("read_file", '"{\\"x\\":1}"'),
        ("run_shel", "{}"),
        ("read_file", '{"q":1}'),
    )
    assert [call.result.is_error for call in batch.calls] == [True] * 5 + [False]
    assert batch.calls[5].result.text == "the file"


async def test_one_failing_call_does_not_lose_its_siblings(opened: BenchOpener) -> None:
    """R19: A succeeds at 10 ms, B raises at 50 ms, C writes at 500 ms. Three results, three receipts, in order."""
    times = []

    def after(seconds: float, outcome: object) -> Any:
        async def work(_: Arguments) -> ToolOutput:
            await asyncio.sleep(seconds)
            times.append(seconds)
            if isinstance(outcome, Exception):
                raise outcome
            return ToolOutput(text=str(outcome))

        return work

    bench = opened(
        tool(after(0.01, "a"), name="a"), tool(after(0.05, ValueError("b")), name="b"), tool(after(0.5, "c"), name="c")
    )
    batch = await run(bench, ("c", "{}"), ("b", "{}"), ("a", "{}"))
    assert times == [0.01, 0.05, 0.5], "side by side"
    assert [call.end for call in batch.calls] == [CallEnd.SUCCEEDED, CallEnd.UNCERTAIN, CallEnd.SUCCEEDED]
    assert [receipt.state.value for receipt in bench.receipts.all()] == ["succeeded", "uncertain", "succeeded"]


async def test_calls_that_touch_the_same_thing_go_one_after_the_other(opened: BenchOpener) -> None:
    """Also if the first one is stopped at its limit: its late work may not mix with the next one's. R22."""
    log: list[str] = []

    async def work(arguments: Arguments) -> ToolOutput:
        log.append(f"{arguments['n']} begins")
        try:
            await asyncio.sleep(3 if arguments["n"] == 0 else 1)
            log.append(f"{arguments['n']} wrote")
        finally:
            log.append(f"{arguments['n']} ends")
        return ToolOutput(text="ok")

    bench = opened(tool(work, resource="state", timeout_s=2))
    batch = await run(bench, ("act", '{"n":0}'), ("act", '{"n":1}'))
    assert log == ["0 begins", "0 ends", "1 begins", "1 wrote", "1 ends"]
    assert [call.end for call in batch.calls] == [CallEnd.UNCERTAIN, CallEnd.SUCCEEDED]


async def test_calls_past_the_limit_are_answered_and_not_run(opened: BenchOpener, tmp_path: Path) -> None:
    """A30: forty calls in one message run no forty tools, and every one is on record."""
    world = OutsideWorld(tmp_path / "effects.log")
    bench = opened(marking_tool(world))
    batch = await run(bench, *[("mark", json.dumps({"n": n})) for n in range(40)], calls_max=3)
    assert len(world.effects) == 3
    assert [call.stage for call in batch.calls] == [""] * 3 + ["limit"] * 37
    assert "at most 3 calls run in one round" in batch.calls[3].result.text


async def test_an_empty_batch_has_no_block(opened: BenchOpener) -> None:
    assert (await run(opened())).message.blocks == ()


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_cancelling_stops_every_call_and_says_so_of_each(opened: BenchOpener, count: int) -> None:
    """Contract 5.11: the batch ends with a result for all, and the receipts say what is in doubt."""
    bench = opened(tool(hangs, name="hangs", timeout_s=1_000))
    before, began = asyncio.all_tasks(), asyncio.get_running_loop().time()
    uses = batch_of([("hangs", "{}")] * count)
    task = asyncio.create_task(ToolCallProcessor(bench.executor, calls_max=16).arun(uses, PLACE))
    await asyncio.sleep(1)
    task.cancel()
    batch = await task
    assert asyncio.get_running_loop().time() - began == 1, "nothing is waited for any longer"
    hold(bench, uses, batch)
    assert batch.cancelled
    assert {call.result.text[:27] for call in batch.calls} == {"cancelled before it ended; "}
    assert [call.end for call in batch.calls] == [CallEnd.UNCERTAIN] * count
    assert [receipt.state for receipt in bench.receipts.all()] == [ReceiptState.UNCERTAIN] * count
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("count", [1, 2])
async def test_a_tool_that_cancels_itself_does_not_stop_the_session(opened: BenchOpener, count: int) -> None:
    """Nobody asked for a stop; the tool is broken, and that is all."""
    batch = await run(opened(tool(raising(asyncio.CancelledError()))), *[("act", "{}")] * count)
    assert not batch.cancelled
    assert [call.end for call in batch.calls] == [CallEnd.UNCERTAIN] * count


@pytest.mark.parametrize("count", [1, 2])
async def test_a_cancellation_is_not_lost_if_the_tool_swallows_it(opened: BenchOpener, count: int) -> None:
    async def swallows(_: Arguments) -> ToolOutput:
        try:
            return await hangs({})
        except asyncio.CancelledError:
            return ToolOutput(text="so what")

    bench = opened(tool(swallows, timeout_s=1_000))
    uses = batch_of([("act", "{}")] * count)
    task = asyncio.create_task(ToolCallProcessor(bench.executor, calls_max=16).arun(uses, PLACE))
    await asyncio.sleep(1)
    task.cancel()
    batch = await task
    assert batch.cancelled
    assert [call.end for call in batch.calls] == [CallEnd.UNCERTAIN] * count
    assert "so what" in batch.calls[0].result.text


async def test_what_hooks_add_stands_after_the_results_in_the_name_of_the_host(opened: BenchOpener) -> None:
    hook = ScriptedHook(HookPoint.POST_TOOL_USE, decide=note)
    batch = await run(opened(tool(returning(ToolOutput(text="ok"))), hooks=[hook]), ("act", "{}"), ("act", "{}"))
    texts = [(block.text, block.origin.value) for block in batch.message.blocks if isinstance(block, TextBlock)]
    assert texts == [("note", "host"), ("note", "host")]


def note(_: HookEvent) -> object:
    return AddContext(text="note")


async def test_the_loss_of_a_record_is_told_of_the_batch(opened: BenchOpener) -> None:
    async def breaks_its_own_record(_: Arguments) -> ToolOutput:
        bench.receipts._db._connection.execute("PRAGMA query_only=1")
        return ToolOutput(text="done")

    bench = opened(
        tool(breaks_its_own_record), tool(returning(ToolOutput(text="x")), name="read", level=SafetyLevel.READ)
    )
    uses = batch_of([("read", "{}"), ("act", "{}")])
    batch = await ToolCallProcessor(bench.executor, calls_max=16).arun(uses, PLACE)
    assert [call.result.text for call in batch.calls] == ["x", "done"]
    assert "readonly" in batch.lost_record


async def test_a_batch_of_which_nothing_is_to_run_is_answered_whole(opened: BenchOpener, tmp_path: Path) -> None:
    """R10: a cut message's calls."""
    world = OutsideWorld(tmp_path / "effects.log")
    bench = opened(marking_tool(world), mode=Mode.EXPERIMENT)
    uses = batch_of([("mark", "{}"), ("mark", '{"cont')])
    batch = ToolCallProcessor(bench.executor, calls_max=1).refuse(uses, PLACE, "cut", "not started: cut")
    hold(bench, uses, batch)
    assert (world.effects, [call.stage for call in batch.calls]) == ([], ["cut", "cut"])
