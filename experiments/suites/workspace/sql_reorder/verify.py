"""Compares the order with what the database really holds."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
REORDER = [
    ["part", "stock", "order"],
    ["belt", "2", "8"],
    ["bolt", "70", "130"],
    ["cog", "0", "40"],
    ["nut", "30", "70"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if the order is right and nothing was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=())
    yield from other_than(REORDER, answer_csv(workspace, "reorder.csv"), "reorder.csv")
