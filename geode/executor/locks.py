"""Resource locks: two calls share a resource only if both only read it. First come, first served."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from geode.tools.spec import ResourceClaim


@dataclass(slots=True)
class _Resource:
    readers: int = 0
    writing: bool = False
    waiting: deque[tuple[bool, asyncio.Future[None]]] = field(default_factory=deque)

    def admits(self, *, exclusive: bool) -> bool:
        return not self.writing and not (exclusive and self.readers)

    def take(self, *, exclusive: bool) -> None:
        if exclusive:
            self.writing = True
        else:
            self.readers += 1

    def release(self, *, exclusive: bool) -> None:
        if exclusive:
            self.writing = False
        else:
            self.readers -= 1
        self.wake()

    def wake(self) -> None:
        while self.waiting and self.admits(exclusive=self.waiting[0][0]):
            wants_exclusive, waiter = self.waiting.popleft()
            if not waiter.done():
                self.take(exclusive=wants_exclusive)
                waiter.set_result(None)


class ResourceLocks:
    """The locks of one session. Claims are taken in the order of their names, so that two calls cannot deadlock."""

    def __init__(self) -> None:
        self._resources: dict[str, _Resource] = {}

    @asynccontextmanager
    async def hold(self, claims: Sequence[ResourceClaim]) -> AsyncIterator[None]:
        """Hold all `claims` for the length of the block."""
        held: list[tuple[str, bool]] = []
        try:
            for name, exclusive in sorted(_merged(claims).items()):
                await self._take(name, exclusive=exclusive)
                held.append((name, exclusive))
            yield
        finally:
            for name, exclusive in reversed(held):
                self._release(name, exclusive=exclusive)

    async def _take(self, name: str, *, exclusive: bool) -> None:
        resource = self._resources.setdefault(name, _Resource())
        if not resource.waiting and resource.admits(exclusive=exclusive):
            resource.take(exclusive=exclusive)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        resource.waiting.append((exclusive, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # granted and cancelled in the same breath
                self._release(name, exclusive=exclusive)
            else:
                resource.waiting = deque(entry for entry in resource.waiting if entry[1] is not waiter)
                resource.wake()  # whoever stood behind it may share what is held
            raise

    def _release(self, name: str, *, exclusive: bool) -> None:
        resource = self._resources[name]
        resource.release(exclusive=exclusive)
        if not resource.readers and not resource.writing and not resource.waiting:
            del self._resources[name]


def _merged(claims: Sequence[ResourceClaim]) -> dict[str, bool]:
    wanted: dict[str, bool] = {}
    for claim in claims:
        wanted[claim.resource] = wanted.get(claim.resource, False) or claim.exclusive
    return wanted
