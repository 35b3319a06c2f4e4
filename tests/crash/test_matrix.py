"""A small run of the crash matrix; `make crash SEEDS=n` runs more seeds at every point and fault."""

import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from tests.crash.matrix import is_served
from tests.crash.points import Fault, Point
from tests.crash.script import NOTES, ROUNDS, steps

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="faults are made with what Linux offers"),
]


def test_every_point_with_every_fault_leaves_a_session_that_goes_on_and_every_control_is_caught() -> None:
    """CASEBOOK 3.13: nothing lost, nothing twice, nothing made up, and a matrix that can fail."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.matrix", "--seeds", "1", "--first-seed", "1"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(Point) * len(Fault)} runs, " in done.stdout
    assert "NOT CAUGHT" not in done.stdout


def test_every_point_and_fault_meets_the_server_of_the_script_within_twenty_seeds() -> None:
    """It is started in a part of the runs only."""
    meetings = Counter(
        (point, fault) for point, fault in product(Point, Fault) for seed in range(20) if is_served(point, fault, seed)
    )
    assert set(meetings) == set(product(Point, Fault))
    assert min(meetings.values()) >= 4


def test_the_script_changes_things_by_every_tool() -> None:
    """A matrix over a session that does nothing would hold, too."""
    made = [step for seed in range(3) for number in range(ROUNDS) for step in steps(seed, number, served=True)]
    assert {step.tool for step in made} == {"list_files", "write_file", "edit_file", "shell", "notary__record"}
    assert all(step.arguments["old"] in NOTES for step in made if step.tool == "edit_file")
