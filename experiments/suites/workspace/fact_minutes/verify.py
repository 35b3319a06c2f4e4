"""Compares the list with what the minutes come to."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, answer_text, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
TODO = [
    ["resolution", "person", "due"],
    ["2", "nils", "2026-06-20"],
    ["4", "olga", "2026-07-15"],
    ["7", "sara", "2026-06-30"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if the list is right, the one point is ticked off and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("agenda.md",))
    yield from other_than(TODO, answer_csv(workspace, "todo.csv"), "todo.csv")
    before = (FIXTURES / "agenda.md").read_text(encoding="utf-8")
    wanted = before.replace("[ ] Boat shed: who", "[x] Boat shed: who").split("\n")
    found = answer_text(workspace, "agenda.md").replace("[X]", "[x]").split("\n")
    yield from other_than(wanted, [line.rstrip() for line in found], "agenda.md")
