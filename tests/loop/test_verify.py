"""Facts of `geode.loop.verify`: only a judge that says pass has passed an answer."""

from dataclasses import FrozenInstanceError

import pytest

from geode.loop.verify import CheckOutcome, CompletionResult, CompletionView, verify_turn_async

PASS = CompletionResult(outcome=CheckOutcome.PASS, by="kind")


class Judge:
    """Says what it is told to, and counts how often it was asked."""

    def __init__(self, answer: object, name: str = "judge") -> None:
        self.answer, self.name, self.asked = answer, name, 0

    async def judge_completion(self, view: CompletionView) -> CompletionResult:
        del view
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


def view(answer: str = "done", *uncertain: str) -> CompletionView:
    return CompletionView(prompt="go", answer=answer, uncertain_effects=uncertain)


async def test_an_answer_without_a_judge_is_held_to_the_rules() -> None:
    assert await verify_turn_async(view()) == CompletionResult(outcome=CheckOutcome.PASS)
    empty = await verify_turn_async(view(" \n"))
    assert (empty.outcome, empty.reasons) == (CheckOutcome.REPAIRABLE, ("The answer is empty.",))


async def test_an_effect_that_nobody_knows_the_end_of_is_no_pass() -> None:
    """Contract 5.5: a claim of success on top of an unknown effect is not checked by asking a judge."""
    judge = Judge(PASS)
    result = await verify_turn_async(view("done", "shell (call c1, round 2)"), [judge])
    assert result.outcome is CheckOutcome.FAILED
    assert result.reasons == ("Whether shell (call c1, round 2) took effect is unknown.",)
    assert judge.asked == 0


async def test_every_judge_must_pass_it_and_the_first_that_does_not_is_heard() -> None:
    strict = Judge(CompletionResult(outcome=CheckOutcome.REPAIRABLE, reasons=("no test",), by="strict"))
    judges = [Judge(PASS), strict, Judge(PASS)]
    result = await verify_turn_async(view(), judges)
    assert result == CompletionResult(outcome=CheckOutcome.REPAIRABLE, reasons=("no test",), by="strict")
    assert [judge.asked for judge in judges] == [1, 1, 0]
    assert (await verify_turn_async(view(), [Judge(PASS), Judge(PASS)])).passed


@pytest.mark.parametrize(
    "answer",
    [
        ValueError("down \ud83c"),
        TimeoutError(),
        None,
        True,
        "pass",
        CompletionResult(outcome="pass"),  # type: ignore[arg-type]
        CompletionResult(outcome=CheckOutcome.PASS, reasons=(5,)),  # type: ignore[arg-type]
    ],
)
async def test_a_judge_that_is_down_or_talks_nonsense_is_no_pass(answer: object) -> None:
    """R50: no verdict is not a verdict, and an attack that crashes the judge must not win. A28."""
    result = await verify_turn_async(view(), [Judge(answer, "frail"), Judge(PASS)])
    assert (result.outcome, result.by) == (CheckOutcome.FAILED, "frail")
    (reason,) = result.reasons
    assert reason.startswith("The judge frail is down (")
    reason.encode()


@pytest.mark.parametrize("outcome", [CheckOutcome.REPAIRABLE, CheckOutcome.FAILED])
@pytest.mark.parametrize("reasons", [(), ("",), (" ", "\n")])
async def test_a_failure_without_a_reason_is_still_a_failure(outcome: CheckOutcome, reasons: tuple[str, ...]) -> None:
    """What stands for *no objection* further on is an empty list, so a failure may not have one."""
    result = await verify_turn_async(view(), [Judge(CompletionResult(outcome=outcome, reasons=reasons), "terse")])
    assert (result.outcome, result.passed) == (outcome, False)
    assert result.reasons == ("The judge terse did not accept the answer, and gave no reason.",)


async def test_reasons_are_cleaned_and_a_result_cannot_change() -> None:
    said = CompletionResult(outcome=CheckOutcome.REPAIRABLE, reasons=("half \ud83c",))
    result = await verify_turn_async(view(), [Judge(said)])
    assert result.reasons == ("half �",)
    with pytest.raises(FrozenInstanceError):
        result.outcome = CheckOutcome.PASS  # type: ignore[misc]
