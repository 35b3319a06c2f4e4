"""Facts of the loop and its stores: nothing happens before it is on record, and what cannot be ends the turn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geode.events import CallEnd
from geode.llm.messages import ToolResult
from geode.loop.turn import INFRASTRUCTURE_STOPS, TurnStop
from geode.records.checkpoint import SessionCheckpoint
from geode.records.database import RecordDamaged, RecordError
from geode.records.receipts import EffectReceiptStore, ReceiptKey, ReceiptState
from geode.tools.spec import Arguments, ToolOutput
from tests.doubles.effects import OutsideWorld, marking_tool, tool
from tests.doubles.models import ScriptedModel, calls, says
from tests.doubles.sessions import Bench
from tests.loop.conftest import SessionOpener

BATCH = calls(("c1", "mark", '{"n":1}'), ("c2", "mark", '{"n":2}'))


@pytest.fixture
def world(tmp_path: Path) -> OutsideWorld:
    return OutsideWorld(tmp_path / "effects.log")


class FailsAt(SessionCheckpoint):
    """A checkpoint of which one step fails, or, as a control, does nothing and says nothing."""

    step = ""
    silently = False

    def _fails(self, step: str) -> bool:
        if self.step == step and not self.silently:
            raise RecordError(f"no room for {step}")
        return self.step == step

    def save_messages(self, *args: Any) -> None:
        if not self._fails("messages"):
            super().save_messages(*args)

    def save_pending(self, *args: Any) -> None:
        if not self._fails("pending"):
            super().save_pending(*args)

    def save_complete(self, *args: Any) -> None:
        if not self._fails("complete"):
            super().save_complete(*args)


def sabotage(bench: Bench, step: str, *, silently: bool = False) -> None:
    """Let the bench's checkpoint fail at `step`."""
    store = FailsAt(bench.checkpoint._db)
    store._saved, store.step, store.silently = dict(bench.checkpoint._saved), step, silently
    object.__setattr__(bench.loop._parts, "checkpoint", store)


def watching(bench_of: Callable[[], Bench], seen: list[tuple[int, int]]) -> Any:
    """A tool that looks, while it runs, at what is durable: messages, and open batches."""

    async def look(_: Arguments) -> ToolOutput:
        rows = bench_of().checkpoint._db.rows
        seen.append(
            (rows("SELECT count(*) FROM messages")[0][0], rows("SELECT count(*) FROM batches WHERE complete = 0")[0][0])
        )
        return ToolOutput(text="ok")

    return tool(look, name="mark")


async def test_the_batch_is_durable_before_any_of_its_tools_runs(opened: SessionOpener) -> None:
    """Contract 5.4, seen from inside the tools."""
    seen: list[tuple[int, int]] = []
    benches: list[Bench] = []
    bench, _ = opened([BATCH, says("done")], watching(lambda: benches[0], seen))
    benches.append(bench)
    await bench.loop.arun("go")
    assert seen == [(2, 1), (2, 1)]
    assert bench.checkpoint._db.rows("SELECT round, calls, complete FROM batches") == [(1, 2, 1)]


async def test_the_test_above_sees_a_batch_that_was_not_saved(opened: SessionOpener) -> None:
    """Its negative control: a checkpoint that only claims to have saved."""
    seen: list[tuple[int, int]] = []
    benches: list[Bench] = []
    bench, _ = opened([BATCH, says("done")], watching(lambda: benches[0], seen))
    benches.append(bench)
    sabotage(bench, "pending", silently=True)
    await bench.loop.arun("go")
    assert seen == [(1, 0), (1, 0)]


async def test_no_tool_runs_if_the_batch_cannot_be_saved(opened: SessionOpener, world: OutsideWorld) -> None:
    """Contract 5.4 and R23: the turn ends before any tool, says so, and loses nothing."""
    bench, model = opened([BATCH, says("done")], marking_tool(world))
    sabotage(bench, "pending")
    result = await bench.loop.arun("go")
    assert (result.stop, result.detail) == (TurnStop.CHECKPOINT_FAILED, "no room for pending")
    assert result.stop in INFRASTRUCTURE_STOPS
    assert (world.effects, bench.receipts.all(), len(model.asked)) == ([], [], 1)

    bench, model = opened([says("done")], marking_tool(world))
    assert bench.loop.unfinished
    assert [message.text for message in bench.loop.messages] == ["go"]
    assert (await bench.loop.aresume()).stop is TurnStop.COMPLETED


@pytest.mark.parametrize("step", ["messages", "pending", "complete"])
async def test_a_session_whose_store_failed_does_nothing_more_until_it_is_opened_again(
    opened: SessionOpener, world: OutsideWorld, step: str
) -> None:
    """What is in memory is no longer what is stored: going on would write a history with a hole."""
    bench, model = opened([BATCH, says("done")], marking_tool(world))
    sabotage(bench, step)
    assert (await bench.loop.arun("go")).stop is TurnStop.CHECKPOINT_FAILED
    asked, effects = len(model.asked), list(world.effects)
    sabotage(bench, "")  # the disk has room again
    for _ in range(2):
        assert (await bench.loop.arun("again")).stop is TurnStop.CHECKPOINT_FAILED
        if bench.loop.unfinished:
            assert (await bench.loop.aresume()).stop is TurnStop.CHECKPOINT_FAILED
    assert (len(model.asked), world.effects) == (asked, effects)

    bench, _ = opened([says("done")], marking_tool(world))
    turn = bench.loop.aresume() if bench.loop.unfinished else bench.loop.arun("go")
    assert (await turn).stop in (TurnStop.COMPLETED, TurnStop.ESCALATED)
    assert world.effects == effects


async def test_a_prompt_that_cannot_be_saved_asks_no_model(opened: SessionOpener) -> None:
    bench, model = opened([says("done")])
    sabotage(bench, "messages")
    assert (await bench.loop.arun("go")).stop is TurnStop.CHECKPOINT_FAILED
    assert model.asked == []


async def test_results_that_could_not_be_saved_are_answered_from_their_receipts(
    opened: SessionOpener, world: OutsideWorld
) -> None:
    """The effects are known, and must be neither repeated nor called unknown."""
    bench, _ = opened([BATCH, says("done")], marking_tool(world))
    sabotage(bench, "complete")
    assert (await bench.loop.arun("go")).stop is TurnStop.CHECKPOINT_FAILED
    bench, model = opened([says("done")], marking_tool(world))
    assert (await bench.loop.aresume()).stop is TurnStop.COMPLETED
    assert len(world.effects) == 2
    told = [block.text for block in model.asked[0].messages[-1].blocks if isinstance(block, ToolResult)]
    assert len(told) == 2
    assert all("It ran and succeeded" in text for text in told)


async def test_an_effect_whose_end_is_not_durable_ends_the_turn_with_all_results_saved(
    opened: SessionOpener, world: OutsideWorld
) -> None:
    class Forgets(EffectReceiptStore):
        def ended(self, key: ReceiptKey, end: CallEnd, note: str = "") -> None:
            del key, end, note
            raise RecordError("no room for the end")

    bench, model = opened([BATCH, says("done")], marking_tool(world))
    bench.executor._receipts = Forgets(bench.receipts._db, bench.receipts._clock)
    result = await bench.loop.arun("go")
    assert (result.stop, result.detail, len(model.asked)) == (TurnStop.CHECKPOINT_FAILED, "no room for the end", 1)

    bench, model = opened([says("done")], marking_tool(world))
    assert [receipt.state for receipt in bench.receipts.all()] == [ReceiptState.UNCERTAIN] * 2
    result = await bench.loop.aresume()
    assert [block.text for block in model.asked[0].messages[-1].blocks if isinstance(block, ToolResult)] == [
        "marked"
    ] * 2
    assert (result.stop, result.verified) == (TurnStop.ESCALATED, False)
    assert len(world.effects) == 2


async def test_an_end_that_cannot_be_saved_is_not_told_as_a_success(opened: SessionOpener) -> None:
    def then_fails(_: object) -> Any:
        sabotage(bench, "messages")
        return says("done")

    bench, _ = opened([then_fails])
    result = await bench.loop.arun("go")
    assert (result.stop, result.verified) == (TurnStop.CHECKPOINT_FAILED, False)


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM messages WHERE seq = 3",
        "DELETE FROM messages WHERE seq = 1",
        "UPDATE messages SET seq = seq + 9 WHERE seq = 2",
    ],
)
async def test_a_conversation_with_a_hole_is_told_as_damage(
    opened: SessionOpener, world: OutsideWorld, harm: str
) -> None:
    """R25: a request built from it would be refused by every provider, for ever."""
    bench, _ = opened([BATCH, says("done"), BATCH, says("done")], marking_tool(world))
    await bench.loop.arun("go")
    bench.checkpoint._db._connection.execute(harm)
    with pytest.raises(RecordDamaged, match=r"lacks a part .*keep it, and start a new session"):
        type(bench.loop)(bench.loop._parts)


async def test_the_loop_asks_the_model_of_the_bench() -> None:
    """The double keeps its own contract: replies in order, the last one for ever, errors raised."""
    model = ScriptedModel([says("a"), ValueError("b")])
    assert (await model.acomplete(None)).blocks == says("a").blocks  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(ValueError, match="b"):
            await model.acomplete(None)  # type: ignore[arg-type]
