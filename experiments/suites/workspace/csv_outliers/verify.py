"""Compares the list of outliers, and what became of the sensors, with what the readings really give."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_csv, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
HEAD = ["time", "sensor", "celsius"]
OUTLIERS = [
    ["08:00", "s3", "-14.0"],
    ["10:00", "s1", "6.1"],
    ["10:00", "s2", "13.0"],
    ["10:30", "s3", "-13.2"],
    ["12:10", "s4", "15.2"],
    ["14:00", "s1", "1.5"],
    ["14:30", "s3", "-25.5"],
    ["16:10", "s4", "15.5"],
    ["16:20", "s2", "4.0"],
    ["18:10", "s4", "7.9"],
]
SENSORS = [
    ["sensor", "place", "low", "high", "state"],
    ["s1", "milk", "2.0", "6.0", "ok"],
    ["s2", "fruit", "5.0", "12.0", "ok"],
    ["s3", "freezer", "-25.0", "-15.0", "service"],
    ["s4", "cellar", "8.0", "15.0", "service"],
]


def verify(workspace: Path) -> Outcome:
    """Pass if the list is complete and in order of time, and only the states of two sensors changed."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("sensors.csv",))
    yield from other_than(SENSORS, answer_csv(workspace, "sensors.csv"), "sensors.csv")
    head, *rows = answer_csv(workspace, "outliers.csv") or [[]]
    if head != HEAD:
        yield f"outliers.csv: the head is {head!r:.60}, not {HEAD}"
    if extra := [row for row in rows if row not in OUTLIERS]:
        yield f"outliers.csv: {len(extra)} rows do not belong there, the first is {extra[0]!r:.60}"
    if missing := [row for row in OUTLIERS if row not in rows]:
        yield f"outliers.csv: {len(missing)} rows are missing, the first is {missing[0]}"
    if not extra and not missing and [row[0] for row in rows] != [row[0] for row in OUTLIERS]:
        yield "outliers.csv: the rows are not in order of time, each once"
