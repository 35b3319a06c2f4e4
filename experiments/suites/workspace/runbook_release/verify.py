"""Looks for the end state that the runbook prescribes, with each of its conditions."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_json, answer_text, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
NOTES = [
    "# 3.8.0",
    "- #210 Print a part of the map",
    "- #212 Names of rivers no longer overlap",
    "- #215 Routes are saved with the map",
]
PLAN = {"day": "2026-05-26", "migration": True, "approved_by": None}


def verify(workspace: Path) -> Outcome:
    """Pass if version, notes and plan are as prescribed and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("version.txt",))
    yield from other_than("3.8.0", answer_text(workspace, "version.txt").strip(), "version.txt")
    lines = [line.rstrip() for line in answer_text(workspace, "notes/next.md").splitlines()]
    yield from other_than(NOTES, [line for line in lines if line], "notes/next.md")
    yield from other_than(PLAN, answer_json(workspace, "plan.json"), "plan.json")
