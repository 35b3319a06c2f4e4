"""The points of persistence (CASEBOOK 3.13), and what goes wrong at one of them."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """Where a session can be broken, in the order of a turn."""

    PROMPT_ACCEPTED = "1 prompt accepted"
    MESSAGE_STORED = "2 message stored"
    REQUEST_SENT = "3 request sent"
    FIRST_BYTE = "4 first byte"
    REPLY_COMPLETE = "5 reply complete"
    BEFORE_PENDING = "6a before the batch is saved"
    PENDING_SAVED = "6b batch saved"
    BEFORE_ADMITTED = "7a before the receipt"
    ADMITTED = "7b receipt admitted"
    LOCK_TAKEN = "8 lock taken"
    STARTED = "9a dispatch"
    SERVER_CALLED = "9b a server's call under way"
    EFFECT_VISIBLE = "10 effect visible"
    RECEIPT_ENDED = "11 receipt ended"
    BEFORE_COMPLETE = "12a before the results are saved"
    COMPLETE_SAVED = "12b results saved"
    TIMELINE_ROW = "13 timeline row"
    EVIDENCE_ROW = "14 evidence row"
    VERIFY_STARTED = "15 check started"
    REPAIR_COUNTED = "16 repair counted"
    ANSWER_STORED = "17 answer stored"
    DELIVERED = "18 delivered"


class Fault(StrEnum):
    """What happens at the point."""

    SIGKILL = "SIGKILL"
    SIGTERM = "SIGTERM"
    EIO = "EIO"
    ENOSPC = "ENOSPC"
    LOCKED = "locked"


Act = Callable[[], None]


class At:
    """Counts how often each point is passed, and does `act` at the given passing of one."""

    def __init__(self, point: Point | None = None, passing: int = 0, act: Act | None = None) -> None:
        self._point, self._passing, self._act = point, passing, act
        self.passed: Counter[Point] = Counter()

    def __call__(self, point: Point) -> None:
        self.passed[point] += 1
        if point is self._point and self.passed[point] == self._passing and self._act is not None:
            self._act()

    async def later(self, point: Point) -> None:
        """Pass a point at which others may run."""
        self(point)
        await asyncio.sleep(0)


def kill() -> None:
    """End this process as the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def terminate() -> None:
    """Ask this process to end."""
    os.kill(os.getpid(), signal.SIGTERM)
