"""Facts of the completion check in the loop: stopping is a proposal, and no failure becomes a pass."""

import asyncio
from itertools import product
from typing import Any

import pytest

from geode.authority import SafetyLevel
from geode.events import CheckEnded
from geode.hooks.points import AddContext, Block, Continue, Escalate, HookPoint, Pass, Repair, Withhold
from geode.llm.messages import Origin, TextBlock
from geode.loop.turn import TurnStop
from geode.loop.verify import CheckOutcome, CompletionResult, CompletionView
from geode.scaffold import LoopLimits, RepairBudget
from geode.tools.spec import ToolOutput
from tests.doubles.effects import OutsideWorld, marking_tool, raising, returning, tool
from tests.doubles.hooks import ScriptedHook, clings, hangs
from tests.doubles.hooks import raising as hook_raising
from tests.doubles.models import calls, says
from tests.doubles.virtual_time import end_all
from tests.loop.conftest import SessionOpener


class Judge:
    """Gives its verdicts in order, the last one for ever after; a callable is awaited."""

    name = "judge"

    def __init__(self, *verdicts: object) -> None:
        self.verdicts, self.seen = list(verdicts), list[CompletionView]()

    async def judge_completion(self, view: CompletionView) -> CompletionResult:
        self.seen.append(view)
        verdict = self.verdicts[min(len(self.seen), len(self.verdicts)) - 1]
        return await verdict() if callable(verdict) else verdict  # type: ignore[no-any-return, return-value]


def verdict(outcome: CheckOutcome, *reasons: str) -> CompletionResult:
    return CompletionResult(outcome=outcome, reasons=reasons, by="judge")


PASS = verdict(CheckOutcome.PASS)
REPAIRABLE = verdict(CheckOutcome.REPAIRABLE, "there is no test")
FAILED = verdict(CheckOutcome.FAILED, "it is made up")


async def never() -> CompletionResult:
    return await asyncio.get_running_loop().create_future()


async def test_an_answer_that_is_not_accepted_goes_back_with_the_reason(opened: SessionOpener) -> None:
    judge = Judge(REPAIRABLE, PASS)
    bench, model = opened([says("first"), says("second")], judges=[judge], repair=RepairBudget(preamble="Not yet."))
    result = await bench.loop.arun("go")
    assert (result.stop, result.text, result.verified, result.repairs_used) == (TurnStop.COMPLETED, "second", True, 1)
    instruction = model.asked[1].messages[-1]
    assert instruction.blocks == (TextBlock(text="Not yet. there is no test", origin=Origin.HOST),)
    assert [(view.prompt, view.answer) for view in judge.seen] == [("go", "first"), ("go", "second")]


async def test_a_prompt_has_exactly_its_repairs_and_the_answer_is_then_delivered_as_not_verified(
    opened: SessionOpener,
) -> None:
    """R41: a verifier that always fails forced 51 rounds once. And an exhausted run is not called success."""
    bench, model = opened([says("one"), says("two"), says("three"), says("four")], judges=[Judge(REPAIRABLE)])
    result = await bench.loop.arun("go")
    assert (result.stop, result.text, result.verified) == (TurnStop.NOT_VERIFIED, "three", False)
    assert (result.repairs_used, len(model.asked)) == (2, 3)
    assert result.detail == "2 of 2 repairs are used up: there is no test"


async def test_a_second_prompt_has_repairs_of_its_own(opened: SessionOpener) -> None:
    """R41: a budget per session that is used up once switches the guard off for the rest of it."""
    bench, model = opened([says("x")], judges=[Judge(REPAIRABLE)])
    for _ in range(2):
        model.asked.clear()
        result = await bench.loop.arun("go")
        assert (result.stop, result.repairs_used, len(model.asked)) == (TurnStop.NOT_VERIFIED, 2, 3)


async def test_a_pass_on_the_last_round_is_a_pass(opened: SessionOpener) -> None:
    """R41: the budget ran out on the very round that fixed it."""
    bench, _ = opened([says("x")], judges=[Judge(REPAIRABLE, REPAIRABLE, PASS)])
    result = await bench.loop.arun("go")
    assert (result.stop, result.verified, result.repairs_used) == (TurnStop.COMPLETED, True, 2)


async def test_without_a_budget_the_first_answer_is_delivered(opened: SessionOpener) -> None:
    bench, model = opened([says("x")], judges=[Judge(REPAIRABLE)], repair=RepairBudget(per_prompt=0))
    result = await bench.loop.arun("go")
    assert (result.stop, len(model.asked)) == (TurnStop.NOT_VERIFIED, 1)


async def test_a_failure_that_cannot_be_repaired_is_escalated(opened: SessionOpener) -> None:
    bench, model = opened([says("x")], judges=[Judge(FAILED)])
    result = await bench.loop.arun("go")
    assert (result.stop, result.text, result.verified, len(model.asked)) == (TurnStop.ESCALATED, "x", False, 1)
    assert result.detail == "it is made up"


async def test_a_repair_does_not_run_finished_effects_again(opened: SessionOpener, tmp_path: Any) -> None:
    """Contract 5.8."""
    world = OutsideWorld(tmp_path / "effects.log")
    bench, _ = opened(
        [calls(("c1", "mark", "{}")), says("x"), says("y")], marking_tool(world), judges=[Judge(REPAIRABLE, PASS)]
    )
    assert (await bench.loop.arun("go")).verified
    assert len(world.effects) == 1


async def test_an_effect_in_doubt_keeps_the_answer_from_being_verified_in_its_own_turn_only(
    opened: SessionOpener,
) -> None:
    bench, _ = opened(
        [calls(("c1", "crash", "{}")), says("done"), says("hello")], tool(raising(ValueError()), name="crash")
    )
    result = await bench.loop.arun("go")
    assert (result.stop, result.verified) == (TurnStop.ESCALATED, False)
    assert result.detail == "Whether crash (call c1, round 1) took effect is unknown."
    assert (await bench.loop.arun("next")).verified


# Hooks can only be stricter

AFTER = {
    "nothing": None,
    "pass": lambda _: Pass(),
    "repair": lambda _: Repair(instruction="run the test"),
    "escalate": lambda _: Escalate(reason="ask somebody"),
    "escalate without a word": lambda _: Escalate(reason=""),
    "allow": lambda _: AddContext(text="it is fine"),
    "true": lambda _: True,
    "none": lambda _: None,
    "an empty repair": lambda _: Repair(instruction=" "),
    "raise": hook_raising(ValueError("odd")),
    "hang": hangs,
}
STRICT_AFTER = {
    "nothing": "accept",
    "pass": "accept",
    "repair": "repair",
}


@pytest.mark.parametrize(
    ("check", "said"),
    list(product([PASS, REPAIRABLE, FAILED], AFTER)),
    ids=lambda value: getattr(value, "outcome", value),
)
async def test_a_hook_after_the_check_can_only_be_stricter(
    opened: SessionOpener, check: CompletionResult, said: str
) -> None:
    """Contract 5.8: every combination. What is neither no opinion nor a repair escalates."""
    decide = AFTER[said]
    hooks = [ScriptedHook(HookPoint.POST_VERIFY, decide=decide)] if decide else []
    bench, _ = opened([says("x")], judges=[Judge(check)], hooks=hooks)
    result = await bench.loop.arun("go")
    hook = STRICT_AFTER.get(said, "escalate")
    own = {"pass": "accept", "repairable": "repair", "failed": "escalate"}[check.outcome]
    expected = max(hook, own, key=["accept", "repair", "escalate"].index)
    stop = {"accept": TurnStop.COMPLETED, "repair": TurnStop.NOT_VERIFIED, "escalate": TurnStop.ESCALATED}[expected]
    assert (result.stop, result.verified) == (stop, expected == "accept")
    decided = [event.decision for event in bench.events if isinstance(event, CheckEnded)]
    assert set(decided) == {expected}
    assert {event.passed for event in bench.events if isinstance(event, CheckEnded)} == {check.passed}


async def test_a_broken_guard_after_the_check_says_that_it_is_broken(opened: SessionOpener) -> None:
    hook = ScriptedHook(HookPoint.POST_VERIFY, decide=hook_raising(ValueError("odd")), name="guard")
    bench, _ = opened([says("x")], hooks=[hook])
    assert (await bench.loop.arun("go")).detail == "the guard 'guard' is broken (it raised ValueError: odd)"


async def test_every_repair_that_is_asked_for_is_told_once(opened: SessionOpener) -> None:
    ask = [
        lambda _: Repair(instruction="run the test"),
        lambda _: Repair(instruction="run the test"),
        lambda _: Repair(instruction="format it"),
    ]
    hooks = [ScriptedHook(HookPoint.POST_VERIFY, decide=decide, name=f"h{n}") for n, decide in enumerate(ask)]
    bench, model = opened([says("x")], judges=[Judge(REPAIRABLE)], hooks=hooks, repair=RepairBudget(preamble="No:"))
    await bench.loop.arun("go")
    assert model.asked[1].messages[-1].text == "No: there is no test\nrun the test\nformat it"


# Stop


async def test_a_stop_hook_gets_one_continuation(opened: SessionOpener) -> None:
    hook = ScriptedHook(HookPoint.STOP, decide=lambda _: Continue(instruction="Also say goodbye."))
    bench, model = opened([says("one"), says("two"), says("three")], hooks=[hook])
    result = await bench.loop.arun("go")
    assert (result.stop, result.text, len(model.asked)) == (TurnStop.COMPLETED, "two", 2)
    assert model.asked[1].messages[-1].text == "Also say goodbye."
    assert [event.continuations_left for event in hook.seen] == [1, 0]  # type: ignore[union-attr]


async def test_what_comes_after_a_continuation_is_checked_like_the_first_answer(opened: SessionOpener) -> None:
    hook = ScriptedHook(HookPoint.STOP, decide=lambda _: Continue(instruction="More."))
    bench, _ = opened([says("x")], judges=[Judge(PASS, FAILED)], hooks=[hook])
    assert (await bench.loop.arun("go")).stop is TurnStop.ESCALATED


@pytest.mark.parametrize(
    "decide", [hook_raising(ValueError("odd")), hangs, lambda _: Block(reason="no"), lambda _: Withhold(reason="no")]
)
async def test_a_broken_guard_at_the_stop_delivers_as_not_verified(opened: SessionOpener, decide: Any) -> None:
    bench, _ = opened([says("x")], hooks=[ScriptedHook(HookPoint.STOP, decide=decide, name="guard")])
    result = await bench.loop.arun("go")
    assert (result.stop, result.text, result.verified) == (TurnStop.NOT_VERIFIED, "x", False)
    assert "the guard 'guard' is broken" in result.detail


async def test_stop_hooks_are_not_asked_about_a_failure(opened: SessionOpener) -> None:
    hook = ScriptedHook(HookPoint.STOP)
    bench, _ = opened([says("x")], judges=[Judge(FAILED)], hooks=[hook])
    await bench.loop.arun("go")
    assert hook.seen == []


# Time


@pytest.mark.parametrize("seconds", [30, 0.5])
async def test_a_judge_that_does_not_answer_is_no_pass_and_does_not_hold_the_turn(
    opened: SessionOpener, seconds: float
) -> None:
    """R41: it has what is left of the prompt's time, and a second at the least."""
    before, began = asyncio.all_tasks(), asyncio.get_running_loop().time()
    bench, _ = opened([says("x")], judges=[Judge(never)], limits=LoopLimits(seconds=seconds))
    result = await bench.loop.arun("go")
    assert (result.stop, result.text) == (TurnStop.ESCALATED, "x")
    assert result.detail == "The completion check did not end in the time that was left."
    assert asyncio.get_running_loop().time() - began == max(1, seconds)
    assert asyncio.all_tasks() == before


async def test_a_slow_judge_within_the_time_is_waited_for(opened: SessionOpener) -> None:
    async def slow() -> CompletionResult:
        await asyncio.sleep(60)
        return PASS

    bench, model = opened([says("x")], judges=[Judge(slow)])
    assert (await bench.loop.arun("go")).verified
    assert len(model.asked) == 1, "waiting is no failure, and is not repaired"


async def test_a_hook_that_clings_to_life_cannot_hold_the_turn(opened: SessionOpener) -> None:
    before = asyncio.all_tasks()
    bench, _ = opened([says("x")], hooks=[ScriptedHook(HookPoint.POST_VERIFY, decide=clings)])
    assert (await bench.loop.arun("go")).stop is TurnStop.ESCALATED
    await end_all(asyncio.all_tasks() - before)


async def test_a_read_in_doubt_is_no_effect_in_doubt(opened: SessionOpener) -> None:
    look = tool(raising(ValueError()), name="look", level=SafetyLevel.READ)
    fine = tool(returning(ToolOutput(text="ok")), name="fine")
    bench, _ = opened([calls(("c1", "look", "{}"), ("c2", "fine", "{}")), says("x")], look, fine)
    assert (await bench.loop.arun("go")).verified
