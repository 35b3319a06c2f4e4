"""Sinks in their own process: they get every cell, and whatever they do, the run goes on."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.mirror import MirrorSpec, SinkMirror
from experiments.store import load_cells
from experiments.written import WrittenCells
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from tests.doubles.cells import make_cells, store_cells

pytestmark = pytest.mark.slow

LETTERS = {"base": {"csv_a": "P" * 30}, "hook": {"csv_a": "F" * 30}}

SINKS = '''
import os, time
from pathlib import Path

class Noting:
    """Writes a line for everything that it is asked."""
    def __init__(self, settings):
        self.path = settings.root.path / "noted"
        self.note(f"open {os.getpid()}")
    def note(self, line):
        with self.path.open("a") as file:
            file.write(line + "\\\\n")
    def write(self, cell):
        self.note(f"cell {cell.variant.name} {len(cell.episodes)}")
    def close(self):
        self.note("close")

class Early(Noting):
    def write_traces(self, experiment, variant, episodes):
        self.note(f"traces {variant.name} {len(episodes)}")

class Judging(Noting):
    def write_comparison(self, table):
        verdicts = ", ".join(f"{row.variant} {row.verdict.kind}" for row in table.candidates)
        self.note(f"verdicts of {table.experiment.name}: {verdicts}")

class Failing(Noting):
    def write(self, cell):
        raise ValueError("the database is locked")

class Dying(Noting):
    def write(self, cell):
        os._exit(9)

class Slow(Early):
    def write_traces(self, experiment, variant, episodes):
        time.sleep(60)

def closed(settings):
    raise PermissionError("no database here")
'''


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateRoot:
    """A store with two finished cells, and a package that offers the sinks above."""
    info = tmp_path / "some_sinks-1.dist-info"
    info.mkdir()
    names = ("Noting", "Early", "Judging", "Failing", "Dying", "Slow", "closed")
    points = "\n".join(f"{name.lower()} = some_sinks:{name}" for name in names)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-sinks\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[geode.sinks]\n{points}\n", encoding="utf-8")
    (tmp_path / "some_sinks.py").write_text(SINKS.replace("\\\\", "\\"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))  # a spawned process inherits the path
    root = StateRoot(tmp_path / "root")
    store_cells(root, make_cells(LETTERS))
    return root


def spec_of(root: StateRoot, *sinks: str) -> MirrorSpec:
    settings = Settings(root=root, tracking_uri=None, environment={})
    return MirrorSpec(settings=settings, experiment="ablation", sinks=sinks, log=root.path / "sinks.log")


def noted(root: StateRoot) -> list[str]:
    path = root.path / "noted"
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("open")]


def missing(root: StateRoot, sink: str) -> tuple[str, ...]:
    return WrittenCells(root.experiment("ablation")).missing([sink], load_cells(root, "ablation"))


async def mirror_all(root: StateRoot, *sinks: str) -> SinkMirror:
    """Offer every episode as it would end, then have both cells written."""
    mirror = SinkMirror(spec_of(root, *sinks))
    mirror.start()
    try:
        for cell in make_cells(LETTERS):
            for stored in cell.episodes:
                mirror.episode_done(cell.variant.name, stored.record.episode_key)
        await mirror.finish(["base", "hook"])
    finally:
        await mirror.stop()
    return mirror


async def test_a_sink_gets_each_whole_cell_and_is_closed(root: StateRoot) -> None:
    """The cell holds every finished episode, read from the folders: nothing else is the truth."""
    mirror = await mirror_all(root, "noting")
    assert noted(root) == ["cell base 30", "cell hook 30", "close"]
    assert (mirror.problems, missing(root, "noting")) == ((), ())


async def test_a_sink_that_takes_traces_early_gets_them_while_episodes_run(root: StateRoot) -> None:
    """Most of the work of tracking is done when the last episode ends, on the other core."""
    mirror = SinkMirror(spec_of(root, "early"))
    mirror.start()
    keys = [stored.record.episode_key for stored in make_cells(LETTERS)[0].episodes]
    for key in keys:
        mirror.episode_done("base", key)
    await asyncio.to_thread(wait_for, lambda: noted(root) == ["traces base 25"] or None)
    await mirror.finish(["base"])
    await mirror.stop()
    assert noted(root) == ["traces base 25", "cell base 30", "close"]


async def test_a_sink_that_shows_verdicts_gets_them_after_the_cells(root: StateRoot) -> None:
    """The page that compares runs is read by people who never call the gate themselves."""
    await mirror_all(root, "judging")
    assert noted(root) == ["cell base 30", "cell hook 30", "verdicts of ablation: hook REJECT", "close"]


async def test_two_runs_at_once_write_each_cell_once_and_know_what_the_other_wrote(root: StateRoot) -> None:
    """What a sink remembers of its store is old when another process has written: it is opened anew."""
    first = SinkMirror(spec_of(root, "early"))
    first.start()
    for stored in make_cells(LETTERS)[0].episodes:
        first.episode_done("base", stored.record.episode_key)
    await asyncio.to_thread(wait_for, lambda: noted(root) == ["traces base 25"] or None)
    await mirror_all(root, "early")
    await first.finish(["base", "hook"])
    await first.stop()
    second = ["cell base 30", "cell hook 30", "close"]
    assert noted(root) == ["traces base 25", *second, "close", "close"], "the first closes it to open it again"
    assert first.problems == ()


async def test_what_another_command_runs_is_written_before_it_is_compared(root: StateRoot) -> None:
    """A verdict stands beside the figures of all variants; one that nobody has written yet would be missing there."""
    mirror = SinkMirror(spec_of(root, "judging"))
    mirror.start()
    await mirror.finish(["base"])
    await mirror.stop()
    assert noted(root) == ["cell base 30", "cell hook 30", "verdicts of ablation: hook REJECT", "close"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
async def test_what_is_sent_to_the_whole_group_does_not_end_the_sinks(root: StateRoot, sent: signal.Signals) -> None:
    """Ctrl-C and `timeout` reach every process, and a sink cut off in a transaction would call that a failure."""
    mirror = SinkMirror(spec_of(root, "noting"))
    mirror.start()
    opened = await asyncio.to_thread(wait_for, lambda: (root.path / "noted").read_text(encoding="utf-8").split()[1])
    os.kill(int(opened), sent)
    await mirror.finish(["base"])
    await mirror.stop()
    assert (mirror.problems, noted(root)) == ((), ["cell base 30", "close"])


async def test_one_sink_that_fails_keeps_no_other_from_its_cells(root: StateRoot) -> None:
    """The failure is told with its reason, and what is not written is not called written."""
    mirror = await mirror_all(root, "closed", "failing", "noting")
    assert [missing(root, sink) for sink in ("closed", "failing", "noting")] == [("base", "hook")] * 2 + [()]
    assert mirror.problems == (
        "closed: it does not open: PermissionError: no database here",
        "failing: the cell 'base' is not written, and so 1 more: ValueError: the database is locked",
    )


async def test_the_death_of_the_sinks_is_told_and_waited_for_by_nobody(root: StateRoot) -> None:
    """A sink that is killed for its memory must not hang a run that has all its results."""
    async with asyncio.timeout(30):
        mirror = await mirror_all(root, "dying")
    assert missing(root, "dying") == ("base", "hook")
    assert mirror.problems == (f"sinks: their process died: it left {root.path / 'sinks.log'}",)


HOST = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from experiments.mirror import SinkMirror
from experiments.store import load_cells
from tests.experiments.test_mirror import spec_of
from geode.config.paths import StateRoot

async def main():
    root = StateRoot(Path(sys.argv[2]))
    mirror = SinkMirror(spec_of(root, "early"))
    mirror.start()
    await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.slow
def test_the_sinks_do_not_outlive_a_killed_run(root: StateRoot, tmp_path: Path) -> None:
    """An orphan would hold the databases open, and the run that resumes could write nothing."""
    script = tmp_path / "host.py"
    script.write_text(HOST, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(script), str(tmp_path), str(root.path)]
    with subprocess.Popen(command, env=environment) as host:
        opened = wait_for(lambda: (root.path / "noted").read_text(encoding="utf-8").splitlines()[0])
        host.kill()
        host.wait()
    sinks = int(opened.split()[1])
    wait_for(lambda: noted(root) == ["close"] or None)
    wait_for(lambda: not Path(f"/proc/{sinks}").exists() or None)


def wait_for(condition: object, limit_s: float = 30.0) -> str:
    """Poll until another process has done its part."""
    assert callable(condition)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            if (value := condition()) is not None:
                return str(value)
        except (FileNotFoundError, IndexError):
            pass
        time.sleep(0.02)
    raise AssertionError(f"it did not happen within {limit_s} s")
