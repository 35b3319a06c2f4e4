"""One batch: the calls of one round, each to exactly one result, in the order in which the model asked."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from geode.executor.call import ExecutedCall, Place
from geode.executor.executor import ToolExecutor
from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, ToolUse

_STOPPED = "not started: the session was stopped first"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What a batch gave. `message` answers every call; `cancelled` says that the session is being stopped."""

    message: Message
    calls: tuple[ExecutedCall, ...]
    cancelled: bool = False

    @property
    def lost_record(self) -> str:
        """Why an effect's end could not be made durable, or nothing."""
        return next((call.lost_record for call in self.calls if call.lost_record), "")


class ToolCallProcessor:
    """Runs batches. Calls of one batch run side by side; resource locks order those that touch the same thing."""

    def __init__(self, executor: ToolExecutor, *, calls_max: int) -> None:
        self._executor = executor
        self._calls_max = calls_max

    async def arun(self, uses: Sequence[ToolUse], place: Place) -> BatchResult:
        """Run the batch. It never raises; a cancellation is reported in the result, after every call has its end."""
        runnable, surplus = uses[: self._calls_max], uses[self._calls_max :]
        if len(runnable) == 1:
            calls, cancelled = await self._one(runnable[0], place)
        else:
            tasks = [asyncio.ensure_future(self._executor.aexecute(use, place)) for use in runnable]
            cancelled = await _all_ended(tasks)
            calls = [
                self._executor.refuse(use, place, "cancelled", _STOPPED) if task.cancelled() else task.result()
                for use, task in zip(runnable, tasks, strict=True)
            ]
        text = f"not started: at most {self._calls_max} calls run in one round; ask for this one again if you need it"
        calls += [self._executor.refuse(use, place, "limit", text) for use in surplus]
        return _batch(calls, cancelled=cancelled)

    def refuse(self, uses: Sequence[ToolUse], place: Place, stage: str, text: str) -> BatchResult:
        """Answer a batch of which nothing is to run."""
        return _batch([self._executor.refuse(use, place, stage, text) for use in uses])

    async def _one(self, use: ToolUse, place: Place) -> tuple[list[ExecutedCall], bool]:
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        return [await self._executor.aexecute(use, place)], task.cancelling() > before


def _batch(calls: Sequence[ExecutedCall], *, cancelled: bool = False) -> BatchResult:
    contexts = [context for call in calls for context in call.contexts]
    blocks: tuple[ToolResult | TextBlock, ...] = (
        *(call.result for call in calls),
        *(TextBlock(text=context, origin=Origin.HOST) for context in contexts),
    )
    return BatchResult(message=Message(role=Speaker.USER, blocks=blocks), calls=tuple(calls), cancelled=cancelled)


async def _all_ended(tasks: Sequence[asyncio.Task[ExecutedCall]]) -> bool:
    """Wait until every task has ended, also when this one is cancelled: no call outlives its batch. Return whether."""
    cancelled = False
    pending = set(tasks)
    while pending:
        try:
            _, pending = await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
            for task in pending:
                task.cancel()
    return cancelled
