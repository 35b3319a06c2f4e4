"""Asks intervals.py, in a process of its own, for answers that its test does not ask for."""

import sys
from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, outcome_of, run_program

FIXTURES = Path(__file__).parent / "fixtures"
ANSWERS = {
    "merge([])": "[]",
    "merge([(5, 9)])": "[(5, 9)]",
    "merge([(5, 9), (5, 9)])": "[(5, 9)]",
    "merge([(20, 30), (1, 4), (4, 8)])": "[(1, 8), (20, 30)]",
    "merge([(1, 2), (2, 3), (3, 4), (4, 5)])": "[(1, 5)]",
    "merge([(0, 1), (2, 3), (4, 5)])": "[(0, 1), (2, 3), (4, 5)]",
    "merge([(1, 100), (2, 3), (4, 5), (6, 7)])": "[(1, 100)]",
    "merge([(1, 100), (2, 3), (50, 120), (121, 130)])": "[(1, 120), (121, 130)]",
    "merge([(1, 10), (1, 5), (1, 20)])": "[(1, 20)]",
    "merge([(0.5, 1.0), (1.0, 1.5), (1.75, 2.0)])": "[(0.5, 1.5), (1.75, 2.0)]",
    "merge(((3, 4), (1, 2)))": "[(1, 2), (3, 4)]",
    "merge(given) and given": "[(9, 10), (1, 2)]",
    "free((0, 100), [])": "[(0, 100)]",
    "free((0, 100), [(0, 100)])": "[]",
    "free((0, 100), [(0, 10), (90, 100)])": "[(10, 90)]",
    "free((0, 100), [(20, 30), (30, 40), (25, 28)])": "[(0, 20), (40, 100)]",
    "free((0, 100), [(-5, 5), (95, 120)])": "[(5, 95)]",
    "free((0, 100), [(10, 60), (20, 30), (61, 70)])": "[(0, 10), (60, 61), (70, 100)]",
}
# Runs with `-I -S` and imports nothing but `sys`, to start quickly. It does not know the right answers; what the module
# prints by itself goes elsewhere.
_PROBE = f"""
import sys
answers, sys.stdout = sys.stdout, sys.stderr
sys.path.insert(0, "")
from intervals import free, merge
for question in {tuple(ANSWERS)!r}:
    given = [(9, 10), (1, 2)]
    try:
        answer = repr([tuple(interval) for interval in eval(question)])
    except Exception as error:
        answer = repr(error)
    print(answer.replace(chr(10), " "), file=answers)
"""


def verify(workspace: Path) -> Outcome:
    """Pass if both functions give every answer here and nothing but the module was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("intervals.py",))
    interpreter = (sys.executable, "-I", "-S", "-B", "-c", _PROBE)
    given = run_program(interpreter, workspace, subject="intervals.py").splitlines()
    if len(given) != len(ANSWERS):
        yield f"intervals.py gave {len(given)} answers to {len(ANSWERS)} questions"
        return
    for (question, wanted), answer in zip(ANSWERS.items(), given, strict=True):
        if answer != wanted:
            yield f"{question} is {answer:.80}, not {wanted}"
