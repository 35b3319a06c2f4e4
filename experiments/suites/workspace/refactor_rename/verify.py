"""Compares what the three modules say to Python with the fixtures' own text under the new name."""

import ast
from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import Fault, altered_files, answer_text, lost_comments, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
RENAMED = {
    "store.py": (("def load(", "def read_orders("), ("in load(", "in read_orders(")),
    "report.py": (("store.load(", "store.read_orders("),),
    "cli.py": (("import load,", "import read_orders,"), (": load,", ": read_orders,")),
}


def verify(workspace: Path) -> Outcome:
    """Pass if each module means what it meant, with the new name, and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=RENAMED)
    for name, places in RENAMED.items():
        wanted = (FIXTURES / name).read_text(encoding="utf-8")
        for old, new in places:
            wanted = wanted.replace(old, new)
        yield from lost_comments(workspace, FIXTURES, name, mark="#")
        if _meaning(answer_text(workspace, name), name) != _meaning(wanted, name):
            yield f"{name} does not say the same as before under the new name"


def _meaning(source: str, name: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        # Python's parser reports what is nested too deeply as a lack of memory.
        raise Fault(f"{name} is no Python: {error}") from error
