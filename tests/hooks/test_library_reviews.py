"""Facts of the hooks in `geode.hooks.library` that look at an answer before it counts."""

import pytest

from geode.hooks.points import Continue, HookEvent, Pass, Repair
from tests.hooks.library_events import answered, asked, ended, hook, last, stopping

EDIT = ended("edit_file", "a.py")
TEST = ended("shell", "sh test.sh")


# review_request


async def test_before_the_end_the_request_is_gone_through_once() -> None:
    reviews = hook("review_request")
    answer = await last(reviews, asked("Mend a.py."), EDIT, stopping())
    assert isinstance(answer, Continue)
    assert answer.instruction.startswith("Before you end, go through the request point by point.")
    assert answer.instruction.endswith("The request was:\nMend a.py.")
    assert await last(reviews, EDIT, stopping()) == Pass()
    assert isinstance(await last(reviews, asked(), EDIT, stopping()), Continue), "the next prompt has its own"


@pytest.mark.parametrize("events", [[], [ended("read_file", "a.py")], [ended("edit_file", "a.py", is_error=True)]])
async def test_a_mere_answer_is_not_held_up(events: list[HookEvent]) -> None:
    assert await last(hook("review_request"), asked(), *events, stopping()) == Pass()


async def test_it_does_not_ask_where_nothing_can_go_on() -> None:
    assert await last(hook("review_request"), EDIT, stopping(continuations_left=0)) == Pass()


async def test_a_long_request_is_quoted_only_so_far() -> None:
    answer = await last(hook("review_request", quoted_chars=4), asked("x" * 9), EDIT, stopping())
    assert isinstance(answer, Continue)
    assert answer.instruction.endswith(":\nxxxx")
    silent = await last(hook("review_request", quoted_chars=0), asked("x" * 9), EDIT, stopping())
    assert isinstance(silent, Continue)
    assert "The request was" not in silent.instruction


# review_changes


@pytest.mark.parametrize(
    ("events", "unread"),
    [
        ([], ""),
        ([EDIT], "a.py"),
        ([EDIT, ended("write_file", "b.py")], "a.py, b.py"),
        ([ended("read_file", "a.py"), EDIT], "a.py"),
        ([EDIT, ended("read_file", "a.py")], ""),
        ([EDIT, ended("read_file", "a.py", is_error=True)], "a.py"),
        ([EDIT, ended("shell", "cat a.py")], ""),
        ([EDIT, ended("shell", "git diff")], ""),
        ([EDIT, ended("write_file", "b.py"), ended("shell", "git diff b.py")], "a.py"),
        ([EDIT, TEST], "a.py"),
        ([ended("edit_file", "a.py", is_error=True)], ""),
    ],
)
async def test_what_was_changed_is_looked_at_before_the_answer_counts(events: list[HookEvent], unread: str) -> None:
    """Running a test is no reading: a change in the wrong place can pass every test that there is."""
    answer = await last(hook("review_changes"), *events, answered())
    assert isinstance(answer, Repair) is bool(unread)
    if isinstance(answer, Repair):
        assert f"You changed {unread} and have not looked" in answer.instruction


async def test_a_review_is_asked_for_once_a_prompt_and_never_without_budget() -> None:
    reviews = hook("review_changes")
    assert await last(reviews, EDIT, answered(repairs_left=0)) == Pass()
    assert isinstance(await last(reviews, answered()), Repair)
    assert await last(reviews, EDIT, answered()) == Pass()
    assert await last(reviews, asked(), answered()) == Pass()
    assert isinstance(await last(reviews, EDIT, answered()), Repair)


async def test_many_changes_are_named_only_so_far() -> None:
    edits = [ended("edit_file", f"{n}.py") for n in range(12)]
    answer = await last(hook("review_changes"), *edits, answered())
    assert isinstance(answer, Repair)
    assert "9.py and 2 more and have not" in answer.instruction


# require_evidence


@pytest.mark.parametrize(
    "claim",
    [
        "All tests pass.",
        "I mended a.py. The tests now pass.",
        "The check passes and nothing else changed.",
        "Every test in the suite passed.",
        "The tests are green.",
        "It has passing tests.",
        "I ran the checks, and all checks succeeded.",
    ],
)
async def test_a_claim_of_passing_tests_needs_a_run_after_the_last_change(claim: str) -> None:
    """What an agent reports is what people act on."""
    empty = await last(hook("require_evidence"), EDIT, answered(claim))
    assert isinstance(empty, Repair)
    assert "no call shows that" in empty.instruction
    assert await last(hook("require_evidence"), EDIT, TEST, answered(claim)) == Pass()
    assert isinstance(await last(hook("require_evidence"), TEST, EDIT, answered(claim)), Repair)
    failing = ended("shell", "sh test.sh", is_error=True)
    assert isinstance(await last(hook("require_evidence"), TEST, failing, answered(claim)), Repair)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I changed a.py.",
        "I did not run the tests, so I cannot say that they pass.",
        "The tests should pass.",
        "The tests don't pass.",
        "One test fails. The others were left alone.",
        "Run the tests to see whether it works; if the tests pass, you are done.",
        "I passed the path to the test function.",
        "I have not created out.csv.",
        "I added a line to README.md, as described in NOTES.md.",
        "I created a new section in the report.",
    ],
)
async def test_an_answer_without_a_claim_is_believed(answer: str) -> None:
    """A guard that objects to honest words teaches the model to hide them."""
    assert await last(hook("require_evidence"), EDIT, answered(answer)) == Pass()


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("I created out.csv.", "out.csv"),
        ("I wrote the results to `out/totals.csv`.", "out/totals.csv"),
        ("I have written a new file called out.csv and it is sorted.", "out.csv"),
        ("Saved report.md and data.json.", "report.md, data.json"),
        ("I created a.py and out.csv.", "out.csv"),
    ],
)
async def test_a_claim_of_a_file_needs_a_call_that_made_it(answer: str, missing: str) -> None:
    objection = await last(hook("require_evidence"), EDIT, ended("read_file", "out.csv"), answered(answer))
    assert isinstance(objection, Repair)
    assert f"you made {missing}, and no call did" in objection.instruction
    made = [ended("write_file", f"out/{name.rsplit('/', 1)[-1]}") for name in missing.split(", ")]
    assert await last(hook("require_evidence"), EDIT, *made, answered(answer)) == Pass()


async def test_a_command_that_names_the_file_backs_it() -> None:
    sorts = ended("shell", "sort in.csv > out.csv")
    assert await last(hook("require_evidence"), sorts, answered("I created out.csv.")) == Pass()
    failed = ended("shell", "sort in.csv > out.csv", is_error=True)
    assert isinstance(await last(hook("require_evidence"), failed, answered("I created out.csv.")), Repair)


async def test_an_empty_claim_is_refused_without_budget_too() -> None:
    """The answer is then delivered as not verified, which is what it is."""
    assert isinstance(await last(hook("require_evidence"), answered("All tests pass.", repairs_left=0)), Repair)
