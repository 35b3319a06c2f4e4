"""Facts of PreCompact and PreVerify: what is asked before something is left out, and before an answer is checked."""

from typing import Any

import pytest

from geode.authority import SafetyLevel
from geode.events import CheckEnded, ContextCompacted
from geode.hooks.points import Block, Compacting, Escalate, HookPoint, Pass, Repair, Verifying
from geode.llm.messages import ToolResult
from geode.loop.turn import TurnStop
from geode.loop.verify import CheckOutcome, CompletionResult
from geode.records.timeline import read_timeline
from geode.scaffold import LoopLimits, RepairBudget
from geode.tools.spec import ToolOutput
from tests.doubles.effects import returning, tool
from tests.doubles.hooks import ScriptedHook
from tests.doubles.hooks import raising as hook_raising
from tests.doubles.models import calls, says
from tests.loop.conftest import SessionOpener
from tests.loop.test_repairs import Judge

BIG = tool(returning(ToolOutput(text="x" * 8_000)), name="look", level=SafetyLevel.READ)
ROUNDS = [calls((f"c{number}", "look", "{}")) for number in range(4)]
SMALL_CONTEXT = LoopLimits(context_tokens=5_000)


def kinds(bench: Any) -> list[str]:
    return [str(line["kind"]) for line in read_timeline(bench.folder.timeline)]


async def test_precompact_is_asked_before_results_are_left_out_and_hears_by_how_much(opened: SessionOpener) -> None:
    hook = ScriptedHook(HookPoint.PRE_COMPACT)
    bench, _ = opened([*ROUNDS, says("done")], BIG, limits=SMALL_CONTEXT, hooks=[hook])
    assert (await bench.loop.arun("go")).stop is TurnStop.COMPLETED
    assert hook.seen
    assert all(isinstance(event, Compacting) and event.tokens > event.tokens_max for event in hook.seen)
    assert kinds(bench).count(ContextCompacted.kind) == len(hook.seen)


@pytest.mark.parametrize("decide", [lambda _: Block(reason="keep it all"), hook_raising(OSError("no"))])
async def test_what_precompact_blocks_stays_and_the_turn_says_that_it_does_not_fit(
    opened: SessionOpener, decide: Any
) -> None:
    """A broken guard is the strictest answer, too: a result is never left out against an objection."""
    hook = ScriptedHook(HookPoint.PRE_COMPACT, decide=decide)
    bench, model = opened([*ROUNDS, says("done")], BIG, limits=SMALL_CONTEXT, hooks=[hook])
    assert (await bench.loop.arun("go")).stop is TurnStop.CONTEXT_FULL
    sent = [block for message in model.asked[-1].messages for block in message.blocks if isinstance(block, ToolResult)]
    assert {len(block.text) for block in sent} == {8_000}


async def test_what_was_left_out_stays_so_after_a_restart(opened: SessionOpener) -> None:
    """Saved at once, not with the next round: the provider's cache hangs on the same bytes being sent again."""
    bench, _ = opened([*ROUNDS, says("done")], BIG, limits=SMALL_CONTEXT)
    await bench.loop.arun("go")
    before = bench.loop._conversation.elided
    again, _ = opened([says("x")], BIG, limits=SMALL_CONTEXT)
    assert again.loop._conversation.elided == before > 0


async def test_preverify_sends_an_answer_back_before_a_judge_looks_at_it(opened: SessionOpener) -> None:
    """A judge costs money; a hook that already knows saves it, and the repair counts like any other."""
    judge = Judge(CompletionResult(outcome=CheckOutcome.PASS))
    hook = ScriptedHook(
        HookPoint.PRE_VERIFY,
        decide=lambda event: Repair(instruction="say why") if "because" not in getattr(event, "answer", "") else Pass(),
    )
    bench, model = opened([says("yes"), says("yes, because")], judges=[judge], hooks=[hook])
    result = await bench.loop.arun("go")
    assert (result.stop, result.text, result.repairs_used) == (TurnStop.COMPLETED, "yes, because", 1)
    assert [view.answer for view in judge.seen] == ["yes, because"]
    assert hook.seen[0] == Verifying(answer="yes", repairs_left=2)
    assert "say why" in model.asked[1].messages[-1].text


@pytest.mark.parametrize(
    "decide", [lambda _: Escalate(reason="a person must see it"), hook_raising(OSError("no"))], ids=["said", "broken"]
)
async def test_preverify_can_refuse_the_check_and_nothing_is_then_verified(opened: SessionOpener, decide: Any) -> None:
    judge = Judge(CompletionResult(outcome=CheckOutcome.PASS))
    bench, _ = opened([says("done")], judges=[judge], hooks=[ScriptedHook(HookPoint.PRE_VERIFY, decide=decide)])
    result = await bench.loop.arun("go")
    assert (result.stop, result.verified, judge.seen) == (TurnStop.ESCALATED, False, [])
    (ended,) = [line for line in read_timeline(bench.folder.timeline) if line["kind"] == CheckEnded.kind]
    assert (ended["passed"], ended["decision"]) == (False, "escalate")


async def test_preverify_keeps_to_the_repair_budget(opened: SessionOpener) -> None:
    """A hook that is never content must not hold the agent for ever."""
    hook = ScriptedHook(HookPoint.PRE_VERIFY, decide=lambda _: Repair(instruction="again"))
    bench, model = opened([says("a")] * 5, hooks=[hook], repair=RepairBudget(per_prompt=1))
    result = await bench.loop.arun("go")
    assert (result.stop, result.repairs_used, len(model.asked)) == (TurnStop.NOT_VERIFIED, 1, 2)
