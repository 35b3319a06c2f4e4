"""Facts of `geode.executor.dispatch`: four ends, told apart, and never one in place of another."""

import asyncio
from typing import Any

import pytest

from geode.authority import SafetyLevel
from geode.deadline import GRACE_S
from geode.events import CallEnd
from geode.executor.dispatch import Dispatched, dispatch
from geode.tools.spec import Arguments, OutOfScope, ToolFailed, ToolOutput
from tests.doubles.effects import raising, returning, tool
from tests.doubles.virtual_time import end_all

READ, WRITE = SafetyLevel.READ, SafetyLevel.WRITE


async def hangs(_: Arguments) -> ToolOutput:
    return await asyncio.get_running_loop().create_future()


async def clings(_: Arguments) -> ToolOutput:
    for _ in range(3):
        try:
            await asyncio.sleep(31_536_000)
        except asyncio.CancelledError:
            continue
    raise TimeoutError


async def test_what_a_tool_gives_is_its_result() -> None:
    ended = await dispatch(tool(returning(ToolOutput(text="42"))), {})
    assert ended == Dispatched(end=CallEnd.SUCCEEDED, text="42", is_error=False)
    failing = await dispatch(tool(returning(ToolOutput(text="exit code: 1", is_error=True))), {})
    assert failing == Dispatched(end=CallEnd.SUCCEEDED, text="exit code: 1", is_error=True)


@pytest.mark.parametrize("error", [ToolFailed("no such file"), OutOfScope("no such file")])
async def test_a_tool_that_says_nothing_happened_is_believed(error: ToolFailed) -> None:
    ended = await dispatch(tool(raising(error)), {})
    assert ended == Dispatched(end=CallEnd.FAILED, text="no such file", is_error=True)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        TimeoutError("inner"),
        asyncio.CancelledError(),
        SystemExit(1),
        GeneratorExit(),
        RecursionError("deep"),
    ],
)
async def test_a_crash_leaves_an_effect_uncertain(error: BaseException) -> None:
    """Nobody knows how far it came. A tool that raises TimeoutError did not reach its limit."""
    ended = await dispatch(tool(raising(error)), {})
    assert (ended.end, ended.is_error, ended.cancelled) == (CallEnd.UNCERTAIN, True, False)
    assert "the tool crashed (" in ended.text
    assert "; whether it took effect is unknown" in ended.text
    assert ended.crash


async def test_a_crash_of_what_only_reads_is_a_failure_without_effect() -> None:
    ended = await dispatch(tool(raising(ValueError("odd")), level=READ), {})
    assert (ended.end, ended.text) == (CallEnd.FAILED, "the tool crashed (ValueError: odd)")


@pytest.mark.parametrize("output", [None, "text", b"x", {"text": "x"}, ToolOutput(text=None), ToolOutput(text=b"x")])  # type: ignore[arg-type]
async def test_what_is_no_output_is_a_crash(output: object) -> None:
    """R19: one tool that breaks its contract must not cost the batch its results."""
    ended = await dispatch(tool(returning(output)), {})
    assert (ended.end, ended.is_error) == (CallEnd.UNCERTAIN, True)
    assert "which is no output" in ended.crash


async def test_a_handler_that_is_not_async_is_a_crash() -> None:
    ended = await dispatch(tool(lambda _: ToolOutput(text="x")), {})  # type: ignore[arg-type, return-value]
    assert ended.end is CallEnd.UNCERTAIN


@pytest.mark.parametrize(("level", "end"), [(WRITE, CallEnd.UNCERTAIN), (READ, CallEnd.FAILED)])
async def test_a_tool_is_stopped_at_its_limit(level: SafetyLevel, end: CallEnd) -> None:
    began = asyncio.get_running_loop().time()
    ended = await dispatch(tool(hangs, level=level, timeout_s=7), {})
    assert asyncio.get_running_loop().time() - began == 7
    assert (ended.end, ended.is_error, ended.cancelled) == (end, True, False)
    assert ended.text == "stopped after 7 s" + ("; whether it took effect is unknown" if level is WRITE else "")


async def test_a_tool_that_clings_to_life_gives_control_back_all_the_same() -> None:
    """R22: control is back at the limit and a short grace, and the result says that the work may go on."""
    before, began = asyncio.all_tasks(), asyncio.get_running_loop().time()
    ended = await dispatch(tool(clings, timeout_s=7), {})
    assert asyncio.get_running_loop().time() - began == 7 + GRACE_S
    assert ended.end is CallEnd.UNCERTAIN
    assert "it did not stop when it was told to, and may still run" in ended.text
    await end_all(asyncio.all_tasks() - before)


async def test_what_came_before_the_limit_is_kept_and_marked() -> None:
    """R22: a model that sees nothing of a hundred printed lines runs the same loop again."""

    async def prints(_: Arguments) -> ToolOutput:
        try:
            return await hangs({})
        except asyncio.CancelledError:
            return ToolOutput(text="line 1\nline 2")

    ended = await dispatch(tool(prints, timeout_s=7), {})
    assert (ended.end, ended.is_error) == (CallEnd.UNCERTAIN, True)
    assert ended.text == "stopped after 7 s; whether it took effect is unknown\nline 1\nline 2"


async def cancelled_after(seconds: float, spec: Any) -> Dispatched:
    task = asyncio.create_task(dispatch(spec, {}))
    await asyncio.sleep(seconds)
    task.cancel()
    return await task


async def test_a_cancelled_tool_is_uncertain_and_says_that_outside_work_may_go_on() -> None:
    """Contract 5.11: cancelling stops the wait. It undoes nothing, and does not claim to."""
    ended = await cancelled_after(1, tool(hangs))
    assert (ended.end, ended.cancelled) == (CallEnd.UNCERTAIN, True)
    assert ended.text == (
        "cancelled before it ended; work that it began outside may go on; whether it took effect is unknown"
    )


async def test_a_tool_that_says_on_its_way_out_that_nothing_happened_is_believed() -> None:
    async def careful(_: Arguments) -> ToolOutput:
        try:
            return await hangs({})
        except asyncio.CancelledError:
            raise ToolFailed("rolled back") from None

    ended = await cancelled_after(1, tool(careful))
    assert ended == Dispatched(end=CallEnd.FAILED, text="rolled back", is_error=True, cancelled=True)


async def test_a_tool_that_had_ended_when_the_cancellation_came_keeps_its_result() -> None:
    """Its effect is known. Calling it uncertain would invent a doubt that an operator has to settle."""
    task = asyncio.current_task()
    assert task is not None

    async def cancels_and_returns(_: Arguments) -> ToolOutput:
        waiting.cancel()
        return ToolOutput(text="done")

    waiting = asyncio.create_task(dispatch(tool(cancels_and_returns), {}))
    assert await waiting == Dispatched(end=CallEnd.SUCCEEDED, text="done", is_error=False, cancelled=True)
