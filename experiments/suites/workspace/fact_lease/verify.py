"""Compares the answer with the one paper that counts today."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_json, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
ANSWER = {
    "months": 4,
    "paper": "papers/2024-amendments.md",
    "sentence": "The notice for Mill Lane is four months, to the end of any month.",
}


def verify(workspace: Path) -> Outcome:
    """Pass if the answer is right, from the right paper, and nothing was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=())
    yield from other_than(ANSWER, answer_json(workspace, "answer.json"), "answer.json")
