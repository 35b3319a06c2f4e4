"""Waiting for code that is not ours: for a limited time and never longer, whatever it does when it is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

GRACE_S = 2.0  # what cancelled work gets to end what it started; a child process needs 1.6 at the most

T = TypeVar("T")


class Halt(StrEnum):
    """Why the wait ended before the work did."""

    NONE = "none"
    TIME = "time"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Generic[T]):
    """How work ended: a value or an error, never both, and neither if it still runs (`abandoned`).

    `interrupted` says that it was told to stop before it had ended, so that its value may be that of half the work.
    """

    value: T | None = None
    error: BaseException | None = None
    halt: Halt = Halt.NONE
    interrupted: bool = False
    abandoned: bool = False


async def run_within(limit_s: float, work: Callable[[], Awaitable[T]]) -> Finished[T]:
    """Run `work` in a task of its own for at most `limit_s` seconds, and say how it ended.

    Nothing that it raises comes through, not even an exit of the process. Neither does a cancellation of the caller:
    it stops the work and is reported as `Halt.CANCELLED`, and the caller must see to it that it is not lost.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(_contained(work))
    halt = await _ended(task, limit_s)
    interrupted = not task.done()
    if interrupted:
        task.cancel()
        until = loop.time() + GRACE_S
        while not task.done() and (left := until - loop.time()) > 0:
            if await _ended(task, left) is Halt.CANCELLED:
                halt = Halt.CANCELLED
    if not task.done():
        task.add_done_callback(_forget)
        return Finished(halt=halt, interrupted=True, abandoned=True)
    if task.cancelled():
        return Finished(error=asyncio.CancelledError(), halt=halt, interrupted=interrupted)
    if (error := task.exception()) is not None:
        return Finished(error=error, halt=halt, interrupted=interrupted)
    return Finished(value=task.result(), halt=halt, interrupted=interrupted)


async def _contained(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except SystemExit as error:
        # An event loop that sees it ends at once, with every other session in it.
        raise RuntimeError(f"it tried to end the process with code {error.code!r}") from error


async def _ended(task: asyncio.Task[T], limit_s: float) -> Halt:
    """Wait for the end of `task`. This is `asyncio.wait` for one task, at half its price."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[Halt] = loop.create_future()

    def wake(halt: Halt) -> None:
        if not waiter.done():
            waiter.set_result(halt)

    def woken(_: object) -> None:
        wake(Halt.NONE)

    task.add_done_callback(woken)
    timer = loop.call_later(limit_s, wake, Halt.TIME)
    try:
        return await waiter
    except asyncio.CancelledError:
        return Halt.CANCELLED
    finally:
        timer.cancel()
        task.remove_done_callback(woken)


def _forget(task: asyncio.Task[T]) -> None:
    # Whoever could have heard of its error is gone; asking for it keeps the event loop quiet.
    if not task.cancelled():
        task.exception()
