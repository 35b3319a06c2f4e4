"""Reads the list as a program would, and compares every column of every row."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
CONTACTS = [
    ["id", "name", "street", "note"],
    ["v01", "Brandt, Lea", "Old Town", ""],
    ["v02", "Yilmaz, Can", "Quay Street", "keys"],
    ["v03", "Olsen, Per", "Mill lane", ""],
    ["v04", "Abel, Ruth", "Old Town", "drives, cooks"],
    ["v05", "Hale, Ann", "Quay Street", ""],
    ["v06", "Moreau, Luc", "Hill Road", "has a van, only on Sundays"],
    ["v07", "Costa, Ines", "Hill Road", "first aid"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if everybody is there with the right words and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("contacts.csv",))
    yield from other_than(CONTACTS, answer_csv(workspace, "contacts.csv"), "contacts.csv")
