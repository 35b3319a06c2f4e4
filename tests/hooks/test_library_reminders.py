"""Facts of the hooks in `geode.hooks.library` that speak beside a result, or in its place."""

import pytest

from geode.hooks.points import AddContext, HookEvent, Pass, Repair, Withhold
from tests.hooks.library_events import answered, asked, ended, hook, last

# trim_results


async def test_a_huge_result_is_shown_by_its_ends_with_how_to_ask_for_less() -> None:
    """The model keeps what usually matters, and the context keeps its room."""
    text = "first\n" + "x" * 80 + "\n" + "y" * 80 + "\nlast"
    answer = await last(hook("trim_results", chars=100, shown_chars=10), ended("read_file", "a", text))
    assert isinstance(answer, Withhold)
    assert answer.reason.startswith(f"{len(text)} characters")
    assert "start_line" in answer.reason
    assert answer.reason.endswith("\nfirst\n[...]\nlast")


@pytest.mark.parametrize(("tool", "advice"), [("search", "narrower"), ("shell", "grep, head"), ("other", "less")])
async def test_each_tool_has_its_own_advice(tool: str, advice: str) -> None:
    answer = await last(hook("trim_results", chars=100), ended(tool, "a", "x" * 101))
    assert isinstance(answer, Withhold)
    assert advice in answer.reason


async def test_a_result_within_the_limit_stays_whole() -> None:
    assert await last(hook("trim_results", chars=100), ended("read_file", "a", "x" * 100)) == Pass()


async def test_what_is_shown_of_a_result_is_never_more_than_came() -> None:
    answer = await last(hook("trim_results", chars=100, shown_chars=10_000), ended("read_file", "a", "x" * 101))
    assert isinstance(answer, Withhold)
    assert answer.reason.count("x" * 50) == 2
    assert "1 of them were left out" in answer.reason


# show_effort


async def test_it_speaks_every_few_rounds_and_once_in_a_round() -> None:
    """A figure beside each result would be noise."""
    teller = hook("show_effort", every_rounds=2, last_rounds=0)
    answers = [
        await teller.decide(ended("read_file", "a", at=at, is_error=at == 1, left=40 - at)) for at in (1, 2, 2, 3, 4)
    ]
    assert [isinstance(answer, AddContext) for answer in answers] == [False, True, False, False, True]
    assert answers[1] == AddContext(
        text="So far this request took 2 rounds and 2 calls (1 ended in an error). 38 rounds are left."
    )


async def test_near_the_limit_it_speaks_in_every_round_and_says_what_to_do() -> None:
    teller = hook("show_effort", last_rounds=1)
    answers = [await last(teller, ended("read_file", "a", at=9 + n, left=2 - n)) for n in range(3)]
    assert answers[0] == Pass()
    assert all(isinstance(answer, AddContext) and "finish what you began" in answer.text for answer in answers[1:])


async def test_each_prompt_is_counted_for_itself_and_an_unknown_limit_is_not_named() -> None:
    teller = hook("show_effort", every_rounds=1)
    answer = await last(teller, ended("read_file", "a", at=1), asked(), ended("read_file", "a", at=2))
    assert answer == AddContext(text="So far this request took 1 rounds and 1 calls (0 ended in an error).")


# show_files

LISTING = ended("list_files", ".", "a.py\nb.py\nsrc/\n[9 more entries]")


async def test_the_map_holds_what_the_tools_showed_and_what_was_done_to_it() -> None:
    """Changed is more than read, and read is more than listed; folders are no files."""
    shows = hook("show_files", every_calls=4)
    answer = await last(
        shows,
        ended("search", ".", "src/c.py:7: x\nsrc/c.py:9: y"),
        ended("edit_file", "a.py"),
        ended("read_file", "a.py"),
        LISTING,
    )
    assert answer == AddContext(
        text="Files met so far, and what you did to each:\na.py (changed)\nb.py (listed)\nsrc/c.py (read)"
    )


async def test_the_map_comes_again_only_if_it_has_changed_and_with_a_new_prompt() -> None:
    shows = hook("show_files", every_calls=1)
    assert isinstance(await last(shows, LISTING), AddContext)
    assert await last(shows, LISTING) == Pass()
    assert await last(shows, ended("read_file", "z.py", is_error=True)) == Pass()
    assert isinstance(await last(shows, ended("read_file", "b.py")), AddContext)
    assert isinstance(await last(shows, asked()), AddContext)
    assert await last(hook("show_files"), asked()) == Pass()


async def test_the_map_keeps_the_files_met_last() -> None:
    shows = hook("show_files", every_calls=3, files=2)
    answer = await last(shows, *(ended("read_file", f"{n}.py") for n in range(3)))
    assert isinstance(answer, AddContext)
    assert answer.text.splitlines()[1:] == ["1.py (read)", "2.py (read)"]


# remind_of_errors

FAILED = ended("shell", "sh test.sh", "exit code: 1\nFAIL in src/a.py: got 2\n", is_error=True)
LOOK = ended("list_files", ".")


@pytest.mark.parametrize(
    ("since", "is_open"),
    [
        ([], True),
        ([LOOK], True),
        ([ended("read_file", "b.py")], True),
        ([ended("edit_file", "src/a.py")], False),
        ([ended("shell", "sh test.sh")], False),
        ([ended("shell", "cat src/a.py")], False),
        ([ended("read_file", "src/a.py")], False),
    ],
)
async def test_an_error_is_open_until_a_call_takes_it_up(since: list[HookEvent], *, is_open: bool) -> None:
    answer = await last(hook("remind_of_errors"), FAILED, *since, answered())
    assert isinstance(answer, Repair) is is_open
    if isinstance(answer, Repair):
        assert "shell (sh test.sh) ended in an error (FAIL in src/a.py: got 2)" in answer.instruction


async def test_a_failed_edit_is_taken_up_by_an_edit_of_the_same_file() -> None:
    failed = ended("edit_file", "a.py", "old text not found", is_error=True)
    assert await last(hook("remind_of_errors"), failed, ended("edit_file", "a.py"), answered()) == Pass()
    assert isinstance(await last(hook("remind_of_errors"), failed, ended("shell", "ls"), answered()), Repair)


async def test_it_reminds_once_of_an_error_after_calls_that_went_past_it() -> None:
    reminds = hook("remind_of_errors", after_calls=2)
    answers = [await reminds.decide(event) for event in (FAILED, LOOK, LOOK, LOOK)]
    assert [isinstance(answer, AddContext) for answer in answers] == [False, False, True, False]
    assert isinstance(await last(reminds, FAILED, LOOK, LOOK), AddContext), "another error is another reminder"


async def test_an_answer_comes_back_once_a_prompt_and_never_without_budget() -> None:
    """An unread error is no proof that the work is wrong, so it must not cost the answer its verification."""
    reminds = hook("remind_of_errors")
    assert await last(reminds, FAILED, answered(repairs_left=0)) == Pass()
    assert isinstance(await last(reminds, answered()), Repair)
    assert await last(reminds, answered()) == Pass()
    assert await last(reminds, FAILED, asked(), answered()) == Pass()
