"""Compares the list and the month's numbers with what the database really holds."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, answer_ini, lost_comments, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
OVERDUE = [
    ["member_id", "name", "books", "oldest_due"],
    ["1", "Ana Lund", "2", "2026-02-20"],
    ["2", "Bo Falk", "1", "2026-03-30"],
    ["4", "Ana Lund", "3", "2026-03-01"],
    ["5", "Dan Roos", "1", "2026-02-11"],
]
LETTERS = {
    "2026-02": {"letters": "3", "books": "4"},
    "2026-03": {"letters": "4", "books": "7"},
    "2026-04": {"letters": "", "books": ""},
}


def verify(workspace: Path) -> Outcome:
    """Pass if both files say what the database says and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("letters.ini",))
    yield from lost_comments(workspace, FIXTURES, "letters.ini", mark=";")
    yield from other_than(OVERDUE, answer_csv(workspace, "overdue.csv"), "overdue.csv")
    yield from other_than(LETTERS, answer_ini(workspace, "letters.ini"), "letters.ini")
