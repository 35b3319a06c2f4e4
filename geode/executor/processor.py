"""One batch: the calls of one round, each to exactly one result, in the order in which the model asked."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from geode.events import CallEnd
from geode.executor.executor import ExecutedCall, Place, ToolExecutor
from geode.llm.messages import Message, Origin, Role, TextBlock, ToolResult, ToolUse


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
        cancelled = False
        done: list[ExecutedCall | None]
        if len(runnable) == 1:
            try:
                done = [await self._executor.aexecute(runnable[0], place)]
            except asyncio.CancelledError:
                done, cancelled = [None], True
        else:
            tasks = [asyncio.ensure_future(self._executor.aexecute(use, place)) for use in runnable]
            done, cancelled = await _all_ended(tasks)
        calls = [call or _cut_short(use) for use, call in zip(runnable, done, strict=True)]
        calls += [_surplus(use, self._calls_max) for use in surplus]
        contexts = [context for call in calls for context in call.contexts]
        blocks: tuple[ToolResult | TextBlock, ...] = (
            *(call.result for call in calls),
            *(TextBlock(text=context, origin=Origin.HOST) for context in contexts if context),
        )
        return BatchResult(message=Message(role=Role.USER, blocks=blocks), calls=tuple(calls), cancelled=cancelled)


async def _all_ended(tasks: Sequence[asyncio.Task[ExecutedCall]]) -> tuple[list[ExecutedCall | None], bool]:
    """Wait until every task has ended, also when this one is cancelled: no call outlives its batch."""
    cancelled = False
    pending = set(tasks)
    while pending:
        try:
            _, pending = await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
            for task in pending:
                task.cancel()
    return [None if task.cancelled() else task.result() for task in tasks], cancelled


def _cut_short(use: ToolUse) -> ExecutedCall:
    text = "cancelled before it ended; work that it began outside may go on, and its outcome is unknown"
    return ExecutedCall(
        result=ToolResult(call_id=use.call_id, text=text, is_error=True), end=CallEnd.UNCERTAIN, stage="cancelled"
    )


def _surplus(use: ToolUse, allowed: int) -> ExecutedCall:
    text = f"not started: at most {allowed} calls run in one round; ask for this one again if you still need it"
    return ExecutedCall(
        result=ToolResult(call_id=use.call_id, text=text, is_error=True), end=CallEnd.NOT_STARTED, stage="limit"
    )
