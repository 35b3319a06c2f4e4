"""Facts of a session that was killed at any moment: nothing twice, nothing lost, nothing made up.

A picture of the folder is taken before every SQL statement and at every point outside the stores; each is opened as
what a killed process left, and gone on with. The invariants are those of the crash matrix of CASEBOOK 3.13.
"""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from geode.clock import ManualClock
from geode.hooks.points import HookEvent, HookPoint, Pass
from geode.llm.messages import ModelResponse, Origin, StopReason, TextBlock, ToolResult, ToolUse
from geode.llm.usage import Usage
from geode.loop.turn import TurnResult, TurnStop
from geode.loop.verify import CheckOutcome, CompletionResult, CompletionView
from geode.records.receipts import ReceiptState
from geode.records.timeline import read_timeline
from geode.tools.spec import Arguments, ToolOutput
from tests.doubles.crashes import Camera, Planner
from tests.doubles.effects import OutsideWorld, tool
from tests.doubles.hooks import ScriptedHook
from tests.doubles.models import calls, says
from tests.doubles.sessions import Bench, open_bench
from tests.doubles.virtual_time import VirtualTimeLoop
from tests.doubles.wire import problems

pytestmark = pytest.mark.slow

Click = Callable[[str], None]


def no_click(_: str) -> None:
    return


@dataclass(slots=True)
class Judging:
    """Passes the answers that it is told to pass; all others are to be repaired."""

    passes: str
    click: Click
    name: str = "judge"

    async def judge_completion(self, view: CompletionView) -> CompletionResult:
        self.click("judge")
        await asyncio.sleep(0)
        outcome = CheckOutcome.PASS if view.answer == self.passes else CheckOutcome.REPAIRABLE
        return CompletionResult(outcome=outcome, reasons=("again",) if outcome is CheckOutcome.REPAIRABLE else ())


@dataclass(slots=True)
class Session:
    """A session in `home`, with the outside world beside it, and every part watched."""

    home: Path
    planner: Planner
    passes: str = "answer 1"
    click: Click = no_click
    clock: ManualClock | None = None

    @property
    def world(self) -> OutsideWorld:
        return OutsideWorld(self.home / "effects.log")

    def open(self) -> Bench:
        async def mark(arguments: Arguments) -> ToolOutput:
            self.click("dispatch")
            await asyncio.sleep(0)
            self.world.happen(str(arguments["n"]))
            self.click("effect visible outside")
            await asyncio.sleep(0)
            return ToolOutput(text="marked")

        def told(event: HookEvent) -> Pass:
            self.click(f"hook at {type(event).__name__}")
            return Pass()

        return open_bench(
            self.home / "session",
            self.planner,
            {"mark": tool(mark, name="mark")},
            hooks=[ScriptedHook(*HookPoint, decide=told)],
            judges=[Judging(self.passes, self.click)],
            clock=self.clock,
        )


def stored_rounds(bench: Bench) -> list[int]:
    return [row[0] for row in bench.checkpoint._db.rows("SELECT round FROM messages ORDER BY seq")]


async def finish(session: Session, bench: Bench) -> TurnResult | None:
    """Go on as an operator would: resume if there is something to resume, else send the prompt that is missing."""
    if bench.loop.unfinished:
        return await bench.loop.aresume()
    prompts = sum(_is_prompt(message) for message in bench.loop.messages)
    return await bench.loop.arun("go") if not prompts else None


def _is_prompt(message: Any) -> bool:
    return any(isinstance(block, TextBlock) and block.origin is Origin.USER for block in message.blocks)


def _is_result_of(block: object, call_id: str) -> TypeGuard[ToolResult]:
    return isinstance(block, ToolResult) and block.call_id == call_id


def hold(session: Session, bench: Bench, moment: str) -> None:
    """What is always true, whenever the process was killed."""
    effects = session.world.effects
    assert len(set(effects)) == len(effects), f"{moment}: an effect was executed twice: {effects}"
    receipts = {receipt.arguments: receipt.state for receipt in bench.receipts.all()}
    known = {f'{{"n":"{effect}"}}' for effect in effects}
    succeeded = {arguments for arguments, state in receipts.items() if state is ReceiptState.SUCCEEDED}
    uncertain = {arguments for arguments, state in receipts.items() if state is ReceiptState.UNCERTAIN}
    assert succeeded <= known, f"{moment}: a success without its effect"
    assert known <= succeeded | uncertain, f"{moment}: an effect that no receipt lists"
    assert not [state for state in receipts.values() if state in (ReceiptState.ADMITTED, ReceiptState.STARTED)]
    for asked in session.planner.asked:
        paused = asked.messages[-1].role.value == "assistant"
        assert problems(asked.messages, is_request=not paused) == [], moment
    lines = list(read_timeline(bench.folder.timeline))
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1)), f"{moment}: a gap in the timeline"
    rounds = stored_rounds(bench)
    assert rounds == sorted(rounds), f"{moment}: round numbers go back"
    assert sum(_is_prompt(message) for message in bench.loop.messages) <= 1, f"{moment}: a prompt was doubled"


async def pictures(tmp_path: Path, planner: Planner, passes: str) -> list[tuple[str, Path]]:
    """Run the session once, undisturbed, and return what it could have left at each moment."""
    camera = Camera(tmp_path / "home", tmp_path / "album")
    session = Session(tmp_path / "home", planner, passes, camera.click)
    (tmp_path / "home").mkdir(parents=True)
    bench = session.open()
    camera.watch(bench)
    await bench.loop.arun("go")
    camera.click("end")
    bench.close()
    assert len(camera.pictures) > 10
    return camera.pictures


SCENARIOS: dict[str, tuple[dict[int, ModelResponse], str, set[TurnStop], int]] = {
    # name: odd replies by length of the history, the answer that passes, possible ends, repairs at the end
    "one repair": ({}, "answer 1", {TurnStop.COMPLETED}, 1),
    "repairs used up": ({}, "never", {TurnStop.NOT_VERIFIED}, 2),
    "a cut call": (
        {3: calls(("x", "mark", '{"n":"cut"}'), stop=StopReason.MAX_TOKENS)},
        "answer 1",
        {TurnStop.COMPLETED},
        1,
    ),
    "a cut answer": ({5: says("half", stop=StopReason.MAX_TOKENS)}, "answer 1", {TurnStop.COMPLETED}, 0),
    "a pause": ({5: says("half", stop=StopReason.PAUSE)}, "answer 0", {TurnStop.COMPLETED}, 0),
    "a refusal": ({5: says("answer 1", stop=StopReason.REFUSAL)}, "answer 1", {TurnStop.MODEL_REFUSED}, 0),
    "nothing said": (
        {3: ModelResponse(blocks=(), stop=StopReason.END_TURN, usage=Usage(), served_model="m", latency_ms=1)},
        "answer 1",
        {TurnStop.EMPTY_ANSWERS},
        0,
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_session_killed_at_any_moment_goes_on_from_there(tmp_path: Path, scenario: str) -> None:
    """Contracts 5.3 to 5.8 and 5.12; R01, R05, R10, R25, R30, R41, each at every moment of the turn."""
    odd, passes, stops, repairs = SCENARIOS[scenario]
    for moment, picture in await pictures(tmp_path, Planner(odd), passes):
        session = Session(picture, Planner(odd), passes)
        bench = session.open()
        before = bench.checkpoint.load()
        in_doubt = bench.receipts.all(ReceiptState.UNCERTAIN)
        bench.close()
        bench = session.open()
        assert bench.checkpoint.load() == before, f"{moment}: opening it twice changes something"
        assert bench.receipts.all(ReceiptState.UNCERTAIN) == in_doubt
        result = await finish(session, bench)
        hold(session, bench, moment)
        assert not bench.loop.unfinished
        cut = [block for message in bench.loop.messages for block in message.blocks if _is_result_of(block, "x")]
        assert all("your message was cut" in block.text for block in cut), (
            f"{moment}: a cut call and its answer are one"
        )
        if result is not None:
            assert result.repairs_used <= 2
            if in_doubt:
                assert not result.verified, f"{moment}: verified on top of an effect in doubt"
            elif result.stop is TurnStop.COMPLETED:
                assert result.verified
            assert result.stop in stops | ({TurnStop.ESCALATED} if in_doubt else set()), moment
            if not in_doubt:
                assert result.repairs_used == repairs, f"{moment}: {result}"
        bench.close()


async def test_a_second_crash_during_recovery_changes_nothing(tmp_path: Path) -> None:
    """CASEBOOK 3.13: what was repaired half is repaired again, and still nothing happens twice."""
    taken = 0
    for moment, picture in await pictures(tmp_path / "first", Planner(), "answer 1"):
        if "effect visible" not in moment and "dispatch" not in moment:
            continue
        for again, second in await _recovery_pictures(picture, tmp_path / f"second{taken}"):
            session = Session(second, Planner())
            bench = session.open()
            await finish(session, bench)
            hold(session, bench, f"{moment}, then {again}")
            bench.close()
        taken += 1
    assert taken


async def _recovery_pictures(home: Path, album: Path) -> list[tuple[str, Path]]:
    camera = Camera(home, album)
    session = Session(home, Planner(), click=camera.click)
    bench = session.open()
    camera.watch(bench)
    await bench.loop.aresume()
    bench.close()
    return camera.pictures[:12]


@pytest.mark.parametrize("scenario", ["nothing said", "a cut call", "repairs used up"])
async def test_no_bound_is_refilled_by_a_restart(tmp_path: Path, scenario: str) -> None:
    """R41: killed at every moment once, a turn gets one call more than undisturbed: the one that was in the air."""
    odd, passes, _, _ = SCENARIOS[scenario]
    calm = Session(tmp_path / "calm", Planner(odd), passes)
    bench = calm.open()
    await bench.loop.arun("go")
    bench.close()
    undisturbed = len(calm.planner.asked)
    for moment, picture in await pictures(tmp_path, Planner(odd), passes):
        rounds = len({line["round"] for line in _called(picture)})
        session = Session(picture, Planner(odd), passes)
        bench = session.open()
        await finish(session, bench)
        assert rounds + len(session.planner.asked) <= undisturbed + 1, moment
        bench.close()


def _called(picture: Path) -> list[dict[str, Any]]:
    lines = read_timeline(picture / "session" / "timeline.jsonl")
    return [line for line in lines if line["kind"] == "model_called"]


async def test_guards_plan_and_figures_are_back_as_they_were(tmp_path: Path) -> None:
    """Contract 5.12. Compared with what the living session held in the moment of each save."""
    camera = Camera(tmp_path / "home", tmp_path / "album")
    (tmp_path / "home").mkdir()
    session = Session(tmp_path / "home", Planner())
    bench = session.open()
    lived: list[tuple[Path, object]] = []

    def remember(event: object) -> None:
        del event
        camera.click("event")
        hook = bench.loop._parts.registry.snapshot()
        lived.append((camera.pictures[-1][1], (hook, bench.loop._cognitive, len(bench.loop.messages))))

    bench.loop._parts.observers._observers = (*bench.loop._parts.observers._observers, remember)
    await bench.loop.arun("go")
    bench.close()
    turn_end, (guards, cognitive, count) = lived[-1]  # type: ignore[misc]
    again = Session(turn_end, Planner()).open()
    stored = again.checkpoint.load()
    assert (stored.guards, stored.cognitive, len(stored.messages)) == (guards, cognitive, count)
    assert [(step.text, step.status.value) for step in stored.cognitive.plan] == [("begin", "done"), ("end", "open")]
    assert stored.cognitive.last_check == "accept: "
    again.close()
    memories = []
    for picture, _ in lived:
        opened = Session(picture, Planner()).open()
        memories.append(int(str(opened.checkpoint.load().guards.get("scripted", 0))))
        opened.close()
    assert memories == sorted(memories), "a guard never remembers less than it did"


async def test_time_and_money_that_were_used_stay_used(tmp_path: Path) -> None:
    """Budgets belong to the prompt, not to the process."""
    clock = ManualClock()
    session = Session(tmp_path, Planner(), clock=clock)

    def slow(event: object) -> None:
        if type(event).__name__ == "ModelCalled":
            clock.advance(300)

    bench = session.open()
    bench.loop._parts.observers._observers = (slow,)
    task = asyncio.create_task(bench.loop.arun("go"))
    for _ in range(1_000):
        await asyncio.sleep(0)
        if len(session.planner.asked) == 3:
            break
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    bench.close()
    again = Session(tmp_path, Planner(), clock=ManualClock(elapsed_s=10_000))
    bench = again.open()
    assert bench.loop._progress.elapsed_s == 600
    assert bench.loop._progress.cost_usd == pytest.approx(0.002)
    result = await bench.loop.aresume()
    assert result.usage.cost_usd == pytest.approx(0.001 * (2 + len(again.planner.asked)))
    assert bench.loop._progress.elapsed_s == 600, "the night between two processes is not the prompt's"
    bench.close()


# The real thing


@pytest.mark.parametrize(
    "moment", ["hook at ToolProposed", "dispatch", "effect visible outside", "hook at ToolEnded", "judge"]
)
def test_a_process_killed_with_sigkill_leaves_what_the_pictures_show(tmp_path: Path, moment: str) -> None:
    """The pictures stand for a killed process; here one really dies, at five of their moments."""
    child = os.fork()
    if child == 0:
        try:
            _die_at(tmp_path, moment)
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        session = Session(tmp_path, Planner())
        bench = session.open()
        assert bench.loop.unfinished
        result = runner.run(bench.loop.aresume())
        hold(session, bench, moment)
        in_doubt = moment in ("dispatch", "effect visible outside")
        assert result.stop is (TurnStop.ESCALATED if in_doubt else TurnStop.COMPLETED)
        assert len(bench.receipts.all(ReceiptState.UNCERTAIN)) == in_doubt
        bench.close()


def _die_at(home: Path, moment: str) -> None:
    def click(reached: str) -> None:
        if reached == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(Session(home, Planner(), click=click).open().loop.arun("go"))


# Controls: the invariants must be able to fail


async def test_the_invariants_see_an_effect_that_was_done_twice(tmp_path: Path) -> None:
    session = Session(tmp_path, Planner())
    bench = session.open()
    await bench.loop.arun("go")
    session.world.happen("1-0")
    with pytest.raises(AssertionError, match="executed twice"):
        hold(session, bench, "control")
    bench.close()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("UPDATE receipts SET state = 'failed'", "no receipt lists"),
        ("DELETE FROM receipts", "no receipt lists"),
        ("UPDATE receipts SET arguments = '{\"n\":\"9\"}' WHERE call_id = 't1a'", "without its effect"),
    ],
)
async def test_the_invariants_see_a_receipt_that_lies(tmp_path: Path, harm: str, words: str) -> None:
    session = Session(tmp_path, Planner())
    bench = session.open()
    await bench.loop.arun("go")
    bench.close()
    with sqlite3.connect(tmp_path / "session" / "effects.db") as raw:
        raw.execute(harm)
    raw.close()
    bench = session.open()
    with pytest.raises(AssertionError, match=words):
        hold(session, bench, "control")
    bench.close()


async def test_the_invariants_see_a_request_that_no_provider_takes(tmp_path: Path) -> None:
    session = Session(tmp_path, Planner())
    bench = session.open()
    await bench.loop.arun("go")
    snapshot = session.planner.asked[-1]
    broken = tuple(message for message in snapshot.messages if not any(isinstance(b, ToolUse) for b in message.blocks))
    session.planner.asked.append(
        type(snapshot)(**{f: getattr(snapshot, f) for f in snapshot.__slots__} | {"messages": broken})
    )
    with pytest.raises(AssertionError, match="do not answer"):
        hold(session, bench, "control")
    bench.close()
