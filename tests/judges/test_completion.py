"""Any engine as the judge of the completion check: only a value that is high enough is a pass."""

import pytest

from geode.clock import ManualClock
from geode.llm.errors import BudgetReached
from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, ToolUse
from geode.loop.verify import CheckOutcome, CompletionView, verify_turn_async
from judges.completion import EngineCompletion, shown_turn
from judges.engine import RubricRefused
from judges.judgment import Unscored
from judges.rubric import Rubric
from judges.rules import Rules
from judges.view import StepKind
from tests.judges.jev_house import CARE, DONE
from tests.judges.scripted import Said, Scripted

RUBRIC = Rubric(name="completion", dimensions=(DONE, CARE))
TARGET = "zai/glm-5.3"


def said(role: Speaker, *blocks: TextBlock | ToolUse | ToolResult) -> Message:
    return Message(role=role, blocks=blocks)


MESSAGES = (
    said(Speaker.USER, TextBlock(text="First.", origin=Origin.USER)),
    said(Speaker.ASSISTANT, TextBlock(text="Old.")),
    said(
        Speaker.USER, TextBlock(text="Mend it. " * 400, origin=Origin.USER), TextBlock(text="ctx", origin=Origin.HOST)
    ),
    said(Speaker.ASSISTANT, ToolUse(call_id="c1", name="shell", arguments="{}")),
    said(Speaker.USER, ToolResult(call_id="c1", text="ok")),
    said(Speaker.ASSISTANT, TextBlock(text="Done.")),
)
VIEW = CompletionView(prompt="Mend it. Mend...", answer="Done.", uncertain_effects=(), messages=MESSAGES)


def judge(engine: Scripted, pass_at: float = 0.5) -> EngineCompletion:
    return EngineCompletion(engine, RUBRIC, pass_at=pass_at, target=TARGET)


def scripted(done: Said, care: Said) -> Scripted:
    return Scripted({"done": done, "care": care}, "llm", model="anthropic/claude-opus-5-5")


@pytest.mark.parametrize(
    ("done", "care", "outcome"),
    [
        (1, 1, CheckOutcome.PASS),
        (1, 5, CheckOutcome.PASS),
        (1, 6, CheckOutcome.REPAIRABLE),
        (0, 1, CheckOutcome.REPAIRABLE),
        (1, Unscored.ABSTAINED, CheckOutcome.FAILED),
        (0, Unscored.PARSE_FAILURE, CheckOutcome.FAILED),
        (Unscored.INFRASTRUCTURE, Unscored.INFRASTRUCTURE, CheckOutcome.FAILED),
    ],
)
async def test_only_a_high_enough_value_everywhere_is_a_pass(done: Said, care: Said, outcome: CheckOutcome) -> None:
    """Of `care` lower is better: 5 of 1 to 10 is 5/9 from the bad end, 6 is 4/9."""
    result = await verify_turn_async(VIEW, (judge(scripted(done, care)),))
    assert (result.outcome, result.by) == (outcome, "llm")


async def test_the_agent_reads_why_it_is_to_be_repaired() -> None:
    result = await judge(scripted(0, 1)).judge_completion(VIEW)
    [reason] = result.reasons
    assert reason.startswith("Does a tool result show that the task is done? Judged 0 on 0 to 1: llm says so")


async def test_what_it_asked_and_that_it_was_down_is_kept() -> None:
    completion = judge(scripted(1, Unscored.INFRASTRUCTURE))
    await completion.judge_completion(VIEW)
    assert completion.down
    assert [asked.cost_usd for asked in completion.asked] == [0.01]


async def test_a_judge_without_money_is_no_pass_and_says_so() -> None:
    engine = scripted(1, 1)
    engine.out_of_money = True
    completion = judge(engine)
    result = await verify_turn_async(VIEW, (completion,))
    assert not result.passed
    assert completion.out_of_money == "no money is left"
    with pytest.raises(BudgetReached):
        await completion.judge_completion(VIEW)


def test_it_is_shown_the_turn_from_the_users_last_words_on() -> None:
    """Whole: the loop's own view of the prompt is shortened."""
    shown = shown_turn(VIEW, TARGET)
    assert (shown.prompt, shown.answer, shown.target) == ("Mend it. " * 400, "Done.", TARGET)
    assert [step.kind for step in shown.steps] == [
        StepKind.PROMPT,
        StepKind.HOST,
        StepKind.CALLED,
        StepKind.RESULT,
        StepKind.SAID,
    ]
    assert shown.spent.rounds == 2


def test_a_rubric_that_the_engine_refuses_is_refused_at_once() -> None:
    with pytest.raises(RubricRefused):
        EngineCompletion(Rules(ManualClock()), RUBRIC, pass_at=1, target=TARGET)
