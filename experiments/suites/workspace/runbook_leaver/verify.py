"""Looks for the end state that the procedure prescribes, and for nobody else being touched."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, answer_json, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
GROUPS = {
    "billing": {"owner": "ida.berg", "members": ["ida.berg", "jon.lie"]},
    "deploy": {"owner": "jon.lie", "members": ["ida.berg", "jon.lie"]},
    "press": {"owner": "tess.hall", "members": ["marek.nowak", "tess.hall"]},
}
ONCALL = [
    ["night", "person"],
    ["2026-06-26", "marek.novak"],
    ["2026-07-03", "ida.berg"],
    ["2026-07-10", "jon.lie"],
    ["2026-07-17", "ida.berg"],
]
JOURNAL = [
    ["day", "person", "step", "state"],
    ["2026-04-30", "lea.roth", "groups", "done"],
    ["2026-04-30", "lea.roth", "mailbox", "kept"],
    ["2026-06-30", "marek.novak", "groups", "done"],
    ["2026-06-30", "marek.novak", "oncall", "done"],
    ["2026-06-30", "marek.novak", "mailbox", "kept"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if each step was done, in this order, and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("groups.json", "oncall.csv", "journal.csv"))
    groups = answer_json(workspace, "groups.json")
    yield from other_than(GROUPS, _with_sorted_members(groups), "groups.json")
    yield from other_than(ONCALL, answer_csv(workspace, "oncall.csv"), "oncall.csv")
    yield from other_than(JOURNAL, answer_csv(workspace, "journal.csv"), "journal.csv")


def _with_sorted_members(groups: object) -> object:
    """The order of members means nothing."""
    if not isinstance(groups, dict):
        return groups
    return {
        name: {**group, "members": sorted(group["members"], key=str)}
        if isinstance(group, dict) and isinstance(group.get("members"), list)
        else group
        for name, group in groups.items()
    }
