"""What pytest collects, told by a plugin of its own: `python -m pytest --collect-only -p tests.done.collected`.

A test that is removed, renamed, left out or skipped is then not there, whatever its file still says.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
_LISTING = "COLLECTED_TESTS_FILE"
_NAMED = re.compile(r"PROVIDERS ((?:\d+(?:\.\d+)?(?:, | and )?)+)")
_MAY_NOT_RUN = ("skip", "skipif", "xfail")


@dataclass(frozen=True)
class Collected:
    """One test: where it is, which lines of section 7 it names, and whether nothing can keep it from running."""

    node: str
    lines: tuple[int, ...]
    runs: bool

    @property
    def module(self) -> str:
        return self.node.partition("::")[0]


def lines_named(docstrings: str) -> tuple[int, ...]:
    """Return the lines that docstrings name. `PROVIDERS 1.1` is a section, and no line."""
    words = (word for found in _NAMED.finditer(docstrings) for word in re.split(r", | and ", found[1]))
    return tuple(int(word) for word in words if word.isdigit())


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write down what is left to be run."""
    tests = [
        Collected(
            node=item.nodeid,
            lines=lines_named(f"{item.module.__doc__}\n{inspect.getdoc(item.function)}"),
            runs=not any(item.get_closest_marker(name) for name in _MAY_NOT_RUN)
            and "pytest.skip(" not in inspect.getsource(item.function),
        )
        for item in session.items
        if isinstance(item, pytest.Function)
    ]
    Path(os.environ[_LISTING]).write_text(json.dumps([asdict(test) for test in tests]))


def collect(folder: Path, paths: Iterable[Path], *options: str) -> list[Collected]:
    """Return the tests that pytest would run of `paths`. `folder` is for what passes between the processes."""
    listing = folder / "collected.json"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tests.done.collected"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *options, *map(str, paths)],
        cwd=REPO,
        env={**os.environ, _LISTING: str(listing), "PYTEST_ADDOPTS": "", "PYTEST_XDIST_WORKER": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    # 5: nothing was collected, which a caller may have asked for.
    assert done.returncode in (0, 5), done.stdout + done.stderr
    stored = json.loads(listing.read_text())
    return [Collected(node=test["node"], lines=tuple(test["lines"]), runs=test["runs"]) for test in stored]
