"""Compares the merged notes line by line, and the merged messages as a program reads them."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_ini, answer_text, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
CHANGES = [
    "# Changes",
    "## Not released",
    "- #44 The search finds words with accents.",
    "- #43 The menu opens, also on small screens.",
    "- #41 A letter is sent once, also after an error.",
    "- #40 Times are shown in the reader's zone.",
    "- #38 The footer names the editor.",
    "## 2.3",
    "- #31 The first page loads in half the time.",
]
MESSAGES = {
    "start": {"hello": "Good to see you."},
    "mail": {
        "sent": "We sent you a letter.",
        "retry": "Try again in a minute.",
        "closed": "We are closed today.",
        "lost": "Nothing came back.",
    },
}


def verify(workspace: Path) -> Outcome:
    """Pass if nothing of either side is lost and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("CHANGES.md", "messages.ini"))
    lines = [line.rstrip() for line in answer_text(workspace, "CHANGES.md").splitlines()]
    yield from other_than(CHANGES, [line for line in lines if line], "CHANGES.md")
    yield from other_than(MESSAGES, answer_ini(workspace, "messages.ini"), "messages.ini")
