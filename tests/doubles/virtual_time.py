"""An event loop in which waiting costs nothing: its clock jumps to the next timer when nothing else can happen."""

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Time stands still while there is work, and then jumps. A wait that nothing can end fails at once."""

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._now_s

    def jump(self, seconds: float) -> None:
        self._now_s += seconds


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("deadlock: every task waits, and nothing can wake one")
        if not ready and timeout:
            self._loop.jump(timeout)
        return ready


BACKEND: tuple[str, Mapping[str, Any]] = ("asyncio", {"loop_factory": VirtualTimeLoop})
"""What a fixture `anyio_backend` returns to run its tests in virtual time."""


async def end_all(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks that cling to life until they end, so that the next test finds a clean loop."""
    for task in tasks:
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
