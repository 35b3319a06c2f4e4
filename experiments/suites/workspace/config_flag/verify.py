"""Reads the three files as programs would, and compares every switch, owner and comment."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import (
    altered_files,
    answer_json,
    answer_yaml,
    lost_comments,
    other_than,
    outcome_of,
)

FIXTURES = Path(__file__).parent / "fixtures"
SWITCHES = {
    "features/staging.yaml": {
        "search_suggestions": True,
        "checkout_v2": True,
        "new_checkout_banner": True,
        "gift_cards": False,
    },
    "features/production.yaml": {
        "search_suggestions": True,
        "gift_cards": True,
        "new_checkout_banner": False,
        "checkout_v2": False,
    },
}
OWNERS = {
    "gift_cards": "dora",
    "checkout_v2": "bertil",
    "new_checkout_banner": "bertil",
    "search_suggestions": "amina",
}


def verify(workspace: Path) -> Outcome:
    """Pass if the switch has its new name in every file and nothing else changed."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=(*SWITCHES, "owners.json"))
    for name, wanted in SWITCHES.items():
        yield from lost_comments(workspace, FIXTURES, name, mark="#")
        yield from other_than(wanted, answer_yaml(workspace, name), name)
    yield from other_than(OWNERS, answer_json(workspace, "owners.json"), "owners.json")
