"""Compares the summary and the closed month with the figures that the export really gives."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import (
    altered_files,
    answer_csv,
    answer_ini,
    lost_comments,
    other_than,
    outcome_of,
)

FIXTURES = Path(__file__).parent / "fixtures"
SUMMARY = [
    ["region", "orders", "revenue"],
    ["Harbour", "6", "799.25"],
    ["Hills", "4", "1405.00"],
    ["Old Town", "5", "1603.00"],
]
MONTHS = {
    "2025-09": {"status": "closed", "revenue": "4127.80"},
    "2025-10": {"status": "closed", "revenue": "3807.25"},
    "2025-11": {"status": "open", "revenue": ""},
}


def verify(workspace: Path) -> Outcome:
    """Pass if both files hold the right figures and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("months.ini",))
    yield from lost_comments(workspace, FIXTURES, "months.ini", mark=";")
    yield from other_than(SUMMARY, answer_csv(workspace, "summary.csv"), "summary.csv")
    yield from other_than(MONTHS, answer_ini(workspace, "months.ini"), "months.ini")
