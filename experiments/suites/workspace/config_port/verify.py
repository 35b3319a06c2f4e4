"""Reads the three files as programs would, and compares every setting."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import (
    altered_files,
    answer_ini,
    answer_json,
    answer_yaml,
    lost_comments,
    other_than,
    outcome_of,
)

FIXTURES = Path(__file__).parent / "fixtures"
SERVICE = {
    "server": {"host": "0.0.0.0", "port": "9090", "workers": "4"},  # noqa: S104  (the fixture's own value)
    "metrics": {"port": "8081"},
    "billing": {"url": "http://billing.internal:8080/v1"},
}
COMPOSE = {
    "services": {
        "tickets": {
            "image": "tickets:1.14",
            "environment": {"BILLING_URL": "http://billing.internal:8080/v1"},
            "ports": ["443:9090", "8081:8081"],
            "healthcheck": {"test": ["CMD", "curl", "--fail", "http://localhost:9090/health"]},
        }
    }
}
HEALTH = {
    "interval_s": 30,
    "targets": [
        {"name": "tickets", "url": "http://tickets:9090/health"},
        {"name": "tickets-metrics", "url": "http://tickets:8081/metrics"},
        {"name": "billing", "url": "http://billing.internal:8080/health"},
    ],
}


def verify(workspace: Path) -> Outcome:
    """Pass if the ticket service has the new port everywhere and nothing else changed."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    changed = ("service.ini", "deploy/compose.yaml", "deploy/health.json")
    yield from altered_files(workspace, FIXTURES, may_change=changed)
    yield from lost_comments(workspace, FIXTURES, "service.ini", mark=";")
    yield from lost_comments(workspace, FIXTURES, "deploy/compose.yaml", mark="#")
    yield from other_than(SERVICE, answer_ini(workspace, "service.ini"), "service.ini")
    yield from other_than(COMPOSE, answer_yaml(workspace, "deploy/compose.yaml"), "deploy/compose.yaml")
    yield from other_than(HEALTH, answer_json(workspace, "deploy/health.json"), "deploy/health.json")
