"""Reads both merged files as programs would."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, answer_json, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
SETTINGS = {
    "name": "ferry-times",
    "cache_mb": 256,
    "timeout_s": 45,
    "retries": 5,
    "log": {"level": "info", "days": 14},
    "languages": ["de", "en", "fr", "pl"],
}
HOSTS = [
    ["host", "address", "use"],
    ["finch", "10.0.0.11", "web"],
    ["heron", "10.0.0.13", "db"],
    ["kite", "10.0.0.14", "web"],
    ["lark", "10.0.0.15", "mail"],
    ["wren", "10.0.0.12", "backup"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if both files are merged by the rules and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("settings.json", "hosts.csv"))
    yield from other_than(SETTINGS, answer_json(workspace, "settings.json"), "settings.json")
    yield from other_than(HOSTS, answer_csv(workspace, "hosts.csv"), "hosts.csv")
