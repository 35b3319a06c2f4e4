"""Done line 3: production and experiment run on the same loop, executor and checkpoint."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.done.command import environment

REPO = Path(__file__).parents[2]
SHARED_BY_BOTH = ("geode/loop/agentic_loop.py", "geode/executor/executor.py", "geode/records/checkpoint.py")
BENCH = ("experiments", "judges", "analysis")
MARKED = """
import sys, trace
from pathlib import Path
seen = set()
def watch(frame, event, arg):
    seen.add(frame.f_code.co_filename)
sys.setprofile(watch)
from geode.cli import main
sys.argv = ["geode", *sys.argv[1:]]
try:
    main()
finally:
    sys.setprofile(None)
    Path({listing!r}).write_text("\\n".join(sorted(seen)))
"""


def files_that_ran(folder: Path, *arguments: str) -> set[str]:
    """Run the command in another process and return the project's files in which code ran."""
    listing = folder / "files.txt"
    done = subprocess.run(
        [sys.executable, "-c", MARKED.format(listing=str(listing)), *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment(folder),
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = listing.read_text().splitlines()
    return {os.path.relpath(file, REPO) for file in files if file.startswith(str(REPO)) and ".venv" not in file}


@pytest.mark.slow
def test_ask_and_sweep_run_the_same_loop_executor_and_checkpoint(tmp_path: Path) -> None:
    """An experiment on another loop would measure another agent."""
    asked = files_that_ran(tmp_path, "ask", "What is here?", "--model", "simulated/apprentice", "--root", str(tmp_path))
    swept = files_that_ran(
        tmp_path, "sweep", "hooks=[],[stop_repeats]", "suite.tasks=[config_port]", "repeats=1", "tracking=none",
        "--root", str(tmp_path),
    )  # fmt: skip
    for module in SHARED_BY_BOTH:
        assert module in asked & swept
    assert not {
        file for file in asked if file.startswith(BENCH) and "cli" not in file and not file.endswith("__init__.py")
    }
    own = {file for file in swept - asked if file.startswith(("geode/loop", "geode/executor", "geode/records"))}
    assert own <= {"geode/loop/limits.py"}, "the experiment has parts of the runtime of its own"


def test_no_bench_module_defines_a_loop_an_executor_or_a_checkpoint() -> None:
    """The import contracts keep the runtime free of the bench; this keeps the bench free of a second runtime."""
    for package in BENCH:
        for path in (REPO / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for name in ("class AgenticLoop", "class ToolExecutor", "class SessionCheckpoint", "def aexecute"):
                assert name not in text, f"{path.name} defines its own {name}"
