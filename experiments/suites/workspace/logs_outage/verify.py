"""Compares the account of the outage with what the logs really say."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, answer_json, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
INCIDENT = {
    "began": "2026-02-11T08:13:58Z",
    "ended": "2026-02-11T08:30:58Z",
    "cause": "pool_exhausted",
    "failed": ["p12", "p13", "p17", "p18"],
}
REGISTER = [
    ["day", "cause", "minutes"],
    ["2025-11-03", "upstream_timeout", "9"],
    ["2026-01-20", "disk_full", "42"],
    ["2026-02-11", "pool_exhausted", "17"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if both files tell what happened and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("register.csv",))
    yield from other_than(INCIDENT, answer_json(workspace, "incident.json"), "incident.json")
    yield from other_than(REGISTER, answer_csv(workspace, "register.csv"), "register.csv")
