"""What breaks each invariant on purpose. A matrix that cannot fail proves nothing: each of these must be caught.

A control changes a class of the product in the forked process that plays a life, and nowhere else.
"""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from geode.clock import rfc3339
from geode.executor import executor
from geode.executor.call import Place
from geode.llm.messages import Message
from geode.loop.agentic_loop import AgenticLoop
from geode.loop.conversation import Conversation
from geode.records import checkpoint, jsonl
from geode.records.checkpoint import SessionCheckpoint
from geode.records.receipts import EffectReceiptStore
from geode.tools.environment import LocalEnvironment
from tests.crash.script import SERVED_TOOL


def forgets_what_it_acknowledged() -> None:
    """1: results are said to be stored, and only their counters are."""
    save = SessionCheckpoint._save

    def without_bodies(self: Any, bodies: Any, progress: Any, state: Any, batch: Any = None) -> None:
        save(self, bodies if batch is None or "INSERT" in batch[0] else (), progress, state, batch)

    SessionCheckpoint._save = without_bodies  # type: ignore[method-assign]


def runs_a_lost_batch_again() -> None:
    """2: calls without a saved result are simply run once more."""
    take_up = AgenticLoop._take_up

    async def again(self: Any) -> Any:
        if self._conversation.awaited:
            last = self._conversation.messages[-1]
            place = Place(turn=self._progress.turn, round=self._progress.round, attempt=2)
            await self._parts.processor.arun(last.tool_uses, place)
        return await take_up(self)

    AgenticLoop._take_up = again  # type: ignore[method-assign]


def calls_a_server_again() -> None:
    """2, as the server counts it: each of its calls is made once more."""
    dispatch = executor.dispatch

    async def twice(spec: Any, arguments: Any) -> Any:
        if spec.name == SERVED_TOOL:
            await dispatch(spec, arguments)
        return await dispatch(spec, arguments)

    executor.dispatch = twice  # type: ignore[attr-defined]


def takes_an_open_effect_for_failed() -> None:
    """3: what began and did not end is said to have failed."""
    open_ = EffectReceiptStore.open.__func__  # type: ignore[attr-defined]

    def opened(cls: Any, path: Any, clock: Any, *more: Any) -> Any:
        store = open_(cls, path, clock, *more)
        with store._db.write() as connection:
            connection.execute("UPDATE receipts SET state = 'failed' WHERE state = 'uncertain'")
        return store

    EffectReceiptStore.open = classmethod(opened)  # type: ignore[assignment]


def goes_on_with_an_open_batch() -> None:
    """4: the history is taken as it lies, and its rules are not looked at."""

    async def nothing(_: Any) -> None:
        return None

    def anything(self: Any, *, paused: bool = False) -> tuple[Message, ...]:
        return tuple(self._view)

    AgenticLoop._take_up = nothing  # type: ignore[method-assign, assignment]
    Conversation._check = lambda self, message: None  # type: ignore[method-assign]
    Conversation.request = anything  # type: ignore[method-assign]


def counts_the_timeline_anew() -> None:
    """5: after a restart the numbers begin again."""
    jsonl._last_seq = lambda path: 0 if path.stat().st_size else None


def forgets_the_repairs() -> None:
    """6: a restart fills the repair budget up."""
    encode = checkpoint._encode_progress
    checkpoint._encode_progress = lambda progress: encode(replace(progress, repairs_used=0))


def leaves_a_process_behind() -> None:
    """7: a command's processes are not ended with it."""
    run_child = LocalEnvironment.run

    async def with_company(self: Any, *arguments: Any, **named: Any) -> Any:
        subprocess.Popen(("sleep", "20"), start_new_session=True)  # noqa: ASYNC220  (it is not waited for)
        return await run_child(self, *arguments, **named)

    LocalEnvironment.run = with_company  # type: ignore[method-assign]


def notes_each_opening_in_a_receipt() -> None:
    """8: going on changes the records though there is nothing to do."""
    open_ = EffectReceiptStore.open.__func__  # type: ignore[attr-defined]

    def opened(cls: Any, path: Any, clock: Any, *more: Any) -> Any:
        store = open_(cls, path, clock, *more)
        with store._db.write() as connection:
            connection.execute("UPDATE receipts SET note = note || '.' WHERE note != ''")
            connection.execute("UPDATE receipts SET note = ? WHERE note = ''", (rfc3339(clock.now()),))
        return store

    EffectReceiptStore.open = classmethod(opened)  # type: ignore[assignment]


CONTROLS: Mapping[str, tuple[str, Callable[[], None]]] = {
    "forgets what it acknowledged": ("1", forgets_what_it_acknowledged),
    "runs a lost batch again": ("2", runs_a_lost_batch_again),
    "calls a server again": ("2", calls_a_server_again),
    "takes an open effect for failed": ("3", takes_an_open_effect_for_failed),
    "goes on with an open batch": ("4", goes_on_with_an_open_batch),
    "counts the timeline anew": ("5", counts_the_timeline_anew),
    "forgets the repairs": ("6", forgets_the_repairs),
    "leaves a process behind": ("7", leaves_a_process_behind),
    "notes each opening in a receipt": ("8", notes_each_opening_in_a_receipt),
}
"""name -> (the invariant that it breaks, what it does)"""
