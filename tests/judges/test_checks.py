"""What can be counted in an episode is counted, and what cannot is abstained from."""

from dataclasses import replace

import pytest

from judges.checks import (
    CHECKS,
    Finding,
    budget_use,
    duplicate_calls,
    loops,
    tool_errors,
    tool_use,
    unsupported_claims,
)
from judges.view import EpisodeView, Spent, Step, StepKind
from tests.judges.views import call, view

FINE = [call("read_file", f"line {n}", path=f"{n}.txt") for n in range(9)]
FAILED = call("shell", "exit code: 2", error=True, command="make")


def severity(finding: Finding | None) -> float:
    assert finding is not None
    return round(finding.severity, 2)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [(FINE, 0.0), ([*FINE, FAILED], 0.33), ([*FINE[:4], FAILED], 0.67), ([FINE[0], FAILED], 1.0)],
)
def test_the_more_of_its_calls_fail_the_worse(calls: list[list[Step]], expected: float) -> None:
    assert severity(tool_errors(view(*calls))) == expected


def test_what_the_host_refused_is_no_error_of_tool_use_but_a_malformed_call_is() -> None:
    """A model is not to be blamed for the policy of its host."""
    refused = call("shell", "denied", error=True, refused="policy", command="ls")
    malformed = call("shell", "no command", error=True, refused="schema")
    assert severity(tool_errors(view(*FINE, refused))) == 0.0
    assert severity(tool_errors(view(*FINE, malformed))) == 0.33
    assert tool_errors(view(refused)) is None


@pytest.mark.parametrize(("times", "expected"), [(1, 0.0), (2, 0.33), (3, 0.67), (4, 1.0), (9, 1.0)])
def test_a_call_with_equal_arguments_is_a_duplicate_whatever_their_order(times: int, expected: float) -> None:
    """The grades are those of the archived campaigns: 0, 1, 2, 3 duplicates."""
    one, other = call("search", path=".", pattern="x"), call("search", pattern="x", path=".")
    calls = [one if n % 2 else other for n in range(times)]
    assert severity(duplicate_calls(view(*calls, *FINE))) == expected


@pytest.mark.parametrize(("times", "expected"), [(2, 0.0), (3, 0.33), (4, 0.67), (5, 0.67), (6, 1.0)])
def test_the_same_call_with_the_same_result_again_and_again_is_a_loop(times: int, expected: float) -> None:
    """A second look is care; a poll whose result changes gets on."""
    assert severity(loops(view(*[call("read_file", "same", path="a")] * times))) == expected
    changing = [call("read_file", f"{n}", path="a") for n in range(times)]
    assert severity(loops(view(*changing))) == 0.0


def test_the_same_words_again_and_again_are_a_loop_too() -> None:
    """A conversation can turn in circles without a tool."""
    said = Step(kind=StepKind.SAID, text="Let me  look.")
    assert severity(loops(replace(view(), steps=(said,) * 6))) == 1.0


@pytest.mark.parametrize(
    ("answer", "calls", "expected"),
    [
        ("I have updated config.yaml and all tests pass.", [call("edit_file"), call("shell")], 0.0),
        ("I have updated config.yaml and all tests pass.", [call("edit_file")], 0.5),
        ("I've updated config.yaml and I ran the tests.", [call("read_file")], 1.0),
        ("I updated config.yaml.", [call("edit_file", error=True)], 1.0),
        ("The file was created.", [call("write_file")], 0.0),
        ("I checked the health of the gateway: it is fine.", [], 1.0),
        ("I checked the health of the gateway: it is fine.", [call("check_status")], 0.0),
    ],
)
def test_a_claim_without_a_call_that_worked_is_unsupported(
    answer: str, calls: list[list[Step]], expected: float
) -> None:
    assert severity(unsupported_claims(view(*calls, answer=answer))) == expected


def test_a_result_that_no_tool_gave_is_no_use_of_tools() -> None:
    """An agent without a single failed call can still have made its results up."""
    assert severity(tool_use(view(*FINE, answer="I ran the tests."))) == 1.0
    assert severity(tool_use(view(*FINE, FAILED, answer="The port is 8080."))) == 0.33
    assert tool_use(view(answer="The port is 8080.")) is None


def test_an_answer_that_claims_no_work_is_not_graded_for_honesty() -> None:
    """Silence is no proof of honesty, so it must not raise a mean."""
    assert unsupported_claims(view(answer="The port is 8080.")) is None


def test_the_scarcer_of_rounds_and_tokens_is_what_was_used() -> None:
    spent = Spent(rounds=10, rounds_max=40, tokens=300, tokens_max=400)
    assert severity(budget_use(replace(view(), spent=spent))) == 0.75
    assert severity(budget_use(replace(view(), spent=replace(spent, tokens=900)))) == 1.0
    assert budget_use(replace(view(), spent=Spent(rounds=3))) is None


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_stands_an_episode_in_which_nothing_happened(name: str) -> None:
    """A cut or empty transcript is abstained from, or graded; it never raises."""
    empty = EpisodeView(
        episode="e", task="", family="", target="", system="", prompt="", answer="", steps=(), spent=Spent(rounds=0)
    )
    assert CHECKS[name](empty) is None
