"""Facts of `geode.deadline`: no code that is not ours can hold a session longer than it is given."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from geode.deadline import GRACE_S, Finished, Halt, run_within
from tests.doubles.virtual_time import BACKEND, end_all


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return BACKEND


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def never() -> str:
    return await asyncio.get_running_loop().create_future()


async def clinging() -> str:
    for _ in range(5):
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            continue
    raise ValueError("long after everybody has gone")


async def test_work_that_ends_in_time_gives_its_value() -> None:
    async def work() -> str:
        await asyncio.sleep(3)
        return "done"

    assert await run_within(4, work) == Finished(value="done")


async def test_work_that_hangs_is_cancelled_at_its_limit() -> None:
    finished = await run_within(4, never)
    assert (finished.halt, finished.interrupted, finished.abandoned) == (Halt.TIME, True, False)
    assert isinstance(finished.error, asyncio.CancelledError)
    assert now_s() == 4


async def test_work_that_ignores_its_cancellation_is_left_behind() -> None:
    """R22: a limit that waits for what it limits is none. asyncio's own timeout waits for ever here."""
    before = asyncio.all_tasks()
    finished = await run_within(4, clinging)
    assert finished == Finished(halt=Halt.TIME, interrupted=True, abandoned=True)
    assert now_s() == 4 + GRACE_S
    await end_all(asyncio.all_tasks() - before)  # what it raises in the end reaches nobody, and no log


async def test_work_gets_time_to_end_what_it_started() -> None:
    ended = []

    async def work() -> str:
        try:
            return await never()
        finally:
            await asyncio.sleep(GRACE_S / 2)
            ended.append("child")

    assert (await run_within(4, work)).abandoned is False
    assert ended == ["child"]


async def test_a_value_given_after_the_limit_is_marked_as_interrupted() -> None:
    """Half the work may stand behind it, so whoever asked must not take it for a success."""

    async def work() -> str:
        try:
            return await never()
        except asyncio.CancelledError:
            return "half"

    assert await run_within(4, work) == Finished(value="half", halt=Halt.TIME, interrupted=True)


@pytest.mark.parametrize("error", [ValueError("x"), TimeoutError(), asyncio.CancelledError(), GeneratorExit()])
async def test_whatever_work_raises_is_its_own_error(error: BaseException) -> None:
    """A tool that raises TimeoutError or cancels itself did not reach our limit, and nobody stopped the session."""

    async def work() -> str:
        raise error

    finished = await run_within(4, work)
    assert type(finished.error) is type(error)
    assert (finished.halt, finished.interrupted) == (Halt.NONE, False)


async def test_work_cannot_end_the_process() -> None:
    """An event loop ends at once when a task raises SystemExit, with every other session in it."""

    async def work() -> str:
        raise SystemExit(3)

    finished = await run_within(4, work)
    assert isinstance(finished.error, RuntimeError)
    assert "code 3" in str(finished.error)


async def test_a_callable_that_is_not_async_fails_inside() -> None:
    finished = await run_within(4, lambda: 5)  # type: ignore[arg-type, return-value]
    assert isinstance(finished.error, TypeError)


async def test_a_cancellation_of_the_caller_stops_the_work_and_is_reported() -> None:
    before = asyncio.all_tasks()
    task = asyncio.create_task(run_within(1_000, never))
    await asyncio.sleep(1)
    task.cancel()
    finished = await task
    assert (finished.halt, finished.interrupted) == (Halt.CANCELLED, True)
    assert asyncio.all_tasks() == before


async def test_many_cancellations_do_not_shorten_the_grace_or_lengthen_it() -> None:
    before = asyncio.all_tasks()
    task = asyncio.create_task(run_within(1_000, clinging))
    await asyncio.sleep(1)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.1)
    finished = await task
    assert (finished.halt, finished.abandoned) == (Halt.CANCELLED, True)
    assert now_s() == pytest.approx(1 + GRACE_S)
    await end_all(asyncio.all_tasks() - before)
