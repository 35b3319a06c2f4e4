"""Compares the list of slow pages with what the log really gives."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
SLOW = [
    ["page", "slow", "worst_ms"],
    ["/cart", "3", "1875"],
    ["/search", "4", "1310"],
    ["/account", "3", "690"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if the list is right and nothing was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=())
    yield from other_than(SLOW, answer_csv(workspace, "slow.csv"), "slow.csv")
