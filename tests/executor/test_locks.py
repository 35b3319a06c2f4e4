"""Facts of `geode.executor.locks`: first come, first served; readers share; nobody waits for what is free."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geode.executor.locks import ResourceLocks
from geode.tools.spec import ResourceClaim

pytestmark = pytest.mark.slow


def reads(name: str) -> ResourceClaim:
    return ResourceClaim(resource=name, exclusive=False)


def writes(name: str) -> ResourceClaim:
    return ResourceClaim(resource=name, exclusive=True)


@dataclass(slots=True, kw_only=True)
class Worker:
    """Comes at a time, holds its claims for a while, and may be cancelled."""

    claims: tuple[ResourceClaim, ...]
    comes_at: float
    holds_s: float
    cancelled_at: float | None = None
    got_at: float | None = None
    left_at: float | None = None


@dataclass(slots=True)
class Floor:
    """Lets workers work, and watches that no two hold what they may not share."""

    locks: ResourceLocks = field(default_factory=ResourceLocks)
    holding: list[Worker] = field(default_factory=list)

    async def work(self, worker: Worker) -> None:
        clock = asyncio.get_running_loop()
        await asyncio.sleep(worker.comes_at)
        async with self.locks.hold(worker.claims):
            worker.got_at = clock.time()
            for other in self.holding:
                for one in worker.claims:
                    for two in other.claims:
                        assert one.resource != two.resource or not (one.exclusive or two.exclusive)
            self.holding.append(worker)
            try:
                await asyncio.sleep(worker.holds_s)
            finally:
                self.holding.remove(worker)
                worker.left_at = clock.time()

    async def open(self, workers: list[Worker]) -> None:
        clock = asyncio.get_running_loop()
        start = clock.time()
        tasks = []
        for worker in workers:
            task = asyncio.create_task(self.work(worker))
            if worker.cancelled_at is not None:
                clock.call_later(worker.cancelled_at, task.cancel)
            tasks.append(task)
        for task, worker in zip(tasks, workers, strict=True):
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            assert ended is None or isinstance(ended, asyncio.CancelledError)
            if worker.got_at is not None:
                worker.got_at -= start


def expected(workers: list[Worker]) -> list[float | None]:
    """When each worker gets one resource, told by the rule alone: the head of the queue goes as soon as it may."""
    got: list[float | None] = [None] * len(workers)
    queue = sorted(range(len(workers)), key=lambda n: workers[n].comes_at)
    times = {worker.comes_at for worker in workers} | {w.cancelled_at for w in workers if w.cancelled_at is not None}
    while times:
        now = min(times)
        times.remove(now)
        queue = [n for n in queue if (at := workers[n].cancelled_at) is None or at > now]
        for n in list(queue):
            if workers[n].comes_at > now:
                break
            held = [m for m, at in enumerate(got) if at is not None and at <= now < _leaves(workers[m], at)]
            alone = workers[n].claims[0].exclusive
            if held and (alone or any(workers[m].claims[0].exclusive for m in held)):
                break
            got[n] = now
            queue.remove(n)
            times.add(_leaves(workers[n], now))
    return got


def _leaves(worker: Worker, got_at: float) -> float:
    left = got_at + worker.holds_s
    return left if worker.cancelled_at is None else min(left, max(worker.cancelled_at, got_at))


@st.composite
def crowds(draw: st.DrawFn, names: tuple[str, ...]) -> list[Worker]:
    workers = []
    for n in range(draw(st.integers(1, 7))):
        wanted = draw(st.lists(st.tuples(st.sampled_from(names), st.booleans()), min_size=1, max_size=3))
        if len(names) == 1:
            wanted = wanted[:1]
        workers.append(
            Worker(
                claims=tuple(ResourceClaim(resource=name, exclusive=exclusive) for name, exclusive in wanted),
                # The fractions keep any two moments apart, so that there is one right order.
                comes_at=draw(st.integers(0, 5)) + n / 100,
                holds_s=draw(st.integers(1, 5)) + n / 10_000,
                cancelled_at=draw(st.none() | st.integers(0, 12).map(lambda at, n=n: at + 0.5 + n / 1_000)),
            )
        )
    return workers


@settings(max_examples=80, deadline=None)
@given(crowds(("a",)))
async def test_everybody_gets_one_resource_at_the_first_moment_that_is_his(workers: list[Worker]) -> None:
    """A cancelled writer in front must not keep the readers behind it waiting; nobody overtakes."""
    floor = Floor()
    await floor.open(workers)
    assert [worker.got_at for worker in workers] == pytest.approx(expected(workers))
    assert floor.locks._resources == {}


@settings(max_examples=80, deadline=None)
@given(crowds(("a", "b", "c")))
async def test_many_resources_never_deadlock_and_leave_nothing_behind(workers: list[Worker]) -> None:
    """Virtual time fails at once when every task waits. Whoever is not cancelled gets what it claims."""
    floor = Floor()
    await floor.open(workers)
    assert all(worker.left_at is not None for worker in workers if worker.cancelled_at is None)
    assert floor.locks._resources == {}


async def got_at(*workers: Worker) -> list[float | None]:
    await Floor().open(list(workers))
    return [worker.got_at for worker in workers]


async def test_readers_share_and_a_writer_is_alone() -> None:
    assert await got_at(
        Worker(claims=(reads("f"),), comes_at=0, holds_s=5),
        Worker(claims=(reads("f"),), comes_at=1, holds_s=5),
        Worker(claims=(writes("f"),), comes_at=2, holds_s=5),
        Worker(claims=(reads("f"),), comes_at=3, holds_s=5),
        Worker(claims=(writes("g"),), comes_at=3, holds_s=5),
    ) == [0, 1, 6, 11, 3]


async def test_a_writer_that_gives_up_lets_the_readers_behind_it_in() -> None:
    """They may share what is held; waiting on for the holder would be for nothing."""
    assert await got_at(
        Worker(claims=(reads("f"),), comes_at=0, holds_s=100),
        Worker(claims=(writes("f"),), comes_at=1, holds_s=1, cancelled_at=3),
        Worker(claims=(reads("f"),), comes_at=2, holds_s=1),
    ) == [0, None, 3]


async def test_two_calls_that_want_the_same_two_things_do_not_block_each_other() -> None:
    """The second waits for b without a, the third holds a and waits for b behind it: a deadlock without an order."""
    assert await got_at(
        Worker(claims=(writes("b"),), comes_at=0, holds_s=5),
        Worker(claims=(writes("b"), writes("a")), comes_at=1, holds_s=2),
        Worker(claims=(writes("a"), writes("b")), comes_at=2, holds_s=2),
    ) == [0, 5, 7]


async def test_one_resource_claimed_twice_is_held_once_in_the_stricter_way() -> None:
    assert await got_at(
        Worker(claims=(reads("a"), writes("a"), reads("a")), comes_at=0, holds_s=2),
        Worker(claims=(reads("a"),), comes_at=1, holds_s=2),
    ) == [0, 2]


async def test_no_claim_waits_for_nobody() -> None:
    assert await got_at(
        Worker(claims=(writes("a"),), comes_at=0, holds_s=9), Worker(claims=(), comes_at=1, holds_s=1)
    ) == [0, 1]


async def test_a_lock_granted_in_the_moment_of_a_cancellation_is_handed_on() -> None:
    """The holder lets go and the waiter is cancelled before it wakes: the lock must not be lost with it."""
    locks = ResourceLocks()
    order: list[str] = []

    async def hold(name: str) -> None:
        async with locks.hold((writes("a"),)):
            order.append(name)

    async with locks.hold((writes("a"),)):
        first, second = asyncio.create_task(hold("first")), asyncio.create_task(hold("second"))
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert (order, first.cancelled(), locks._resources) == (["second"], True, {})


async def test_a_failure_while_holding_lets_go() -> None:
    locks = ResourceLocks()
    with pytest.raises(ZeroDivisionError):
        async with locks.hold((writes("a"), reads("b"))):
            raise ZeroDivisionError
    assert locks._resources == {}
