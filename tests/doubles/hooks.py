"""A hook that does what a test says."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from pydantic import JsonValue

from geode.hooks.points import Decision, HookEvent, HookPoint, Pass

Deciding = Callable[[HookEvent], object | Awaitable[object]]


class ScriptedHook:
    """Asks `decide` for each event of its points, and keeps the events. What `decide` raises, it raises.

    Its memory is the number of events that it saw.
    """

    def __init__(
        self, *points: HookPoint, decide: Deciding = lambda _: Pass(), name: str = "scripted", time_limit_s: float = 5.0
    ) -> None:
        self.name, self.points, self.time_limit_s = name, frozenset(points), time_limit_s
        self._decide = decide
        self.seen: list[HookEvent] = []
        self.remembered = 0

    async def decide(self, event: HookEvent) -> Decision:
        self.seen.append(event)
        self.remembered += 1
        answer = self._decide(event)
        return cast("Decision", await answer if isinstance(answer, Awaitable) else answer)

    def snapshot(self) -> JsonValue:
        return self.remembered

    def restore(self, memory: JsonValue) -> None:
        self.remembered = int(str(memory))


def raising(error: BaseException) -> Deciding:
    def decide(_: HookEvent) -> object:
        raise error

    return decide


async def hangs(_: HookEvent) -> object:
    """Never answers, and ends when it is cancelled."""
    return await asyncio.get_running_loop().create_future()


async def clings(_: HookEvent) -> object:
    """Does not answer within a year, and does not end when it is cancelled, nor when it is once more."""
    for _ in range(3):
        try:
            await asyncio.sleep(31_536_000)
        except asyncio.CancelledError:
            continue
    raise TimeoutError("nobody listens any more")
