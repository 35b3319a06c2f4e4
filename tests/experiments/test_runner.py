"""Blocks through the local executor: what has ended is stored, whatever happens to the rest."""

import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from experiments.manifest import EpisodeStatus, Manifest, read_manifest
from experiments.plan import Plan, make_plan
from experiments.progress import Progress
from experiments.records import ExperimentRecord
from experiments.run_episode import EpisodeParts
from experiments.runner import LocalExecutor, RunStopped
from experiments.store import EpisodeStore, count_set_aside
from experiments.suite import OutcomeKind
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.llm.errors import ConfigurationError
from geode.redaction import Redactor
from tests.doubles.cells import make_experiment
from tests.doubles.openers import ScriptedOpener, Step, do_the_task, make_task, steps_of

VARIANTS = ["base", "hook"]


class FullOutput(io.StringIO):
    """What a log on a full disk is."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


class Bench:
    """An experiment of two variants, one task and four repeats, run by a script."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self.root = StateRoot(path / "root")
        self.store = EpisodeStore(self.root, self.clock, Redactor())
        self.experiment: ExperimentRecord = make_experiment({name: {"csv_a": "...."} for name in VARIANTS})
        self.folder = self.root.experiment(self.experiment.name)
        self.task = make_task(path, "csv_a", self.experiment.ruler.tasks[0].task_hash)
        self.shown = io.StringIO()
        self.progress: Progress | None = None

    def plan(self) -> Plan:
        return make_plan(self.experiment, VARIANTS, 4, self.store)

    def run(self, opener: ScriptedOpener, *, concurrency: int = 1) -> bool:
        plan = self.plan()
        manifest = Manifest(self.folder, self.clock)
        for block in plan.blocks:
            for episode in block.episodes:
                manifest.note(episode, EpisodeStatus.PLANNED)
        reused = {variant.variant: variant.reused for variant in plan.variants}
        self.progress = Progress(Console(file=self.shown), self.clock, reused=reused, to_run=plan.to_run)
        executor = LocalExecutor(
            parts=EpisodeParts(root=self.root, opener=opener, clock=self.clock),
            store=self.store,
            tasks={"csv_a": self.task},
            manifest=manifest,
            mirror=None,
            progress=self.progress,
            concurrency=concurrency,
        )
        try:
            return executor.run(plan, ())
        finally:
            manifest.close()

    def statuses(self) -> list[str]:
        return sorted(read_manifest(self.folder).values())

    def done(self) -> set[str]:
        return {key for keys in self.plan().keys.values() for key in keys if self.store.look(key).kind == "done"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_every_planned_episode_runs_once_and_is_stored(bench: Bench, concurrency: int) -> None:
    """However many wait side by side, there is one attempt an episode, and its record is on the disk."""
    opener = ScriptedOpener(*steps_of("PFPFPFPF"))
    assert bench.run(opener, concurrency=concurrency)
    assert len(opener.opened) == len({asked["folder"] for asked in opener.opened}) == 8
    assert opener.most_open == min(concurrency, 4), "four blocks, one a worker"
    assert bench.plan().to_run == 0
    assert bench.progress is not None
    assert sum(counts[OutcomeKind.PASS] for counts in bench.progress.counts.values()) == 4
    assert bench.statuses() == ["done"] * 8


def test_variants_of_a_block_follow_each_other(bench: Bench) -> None:
    """One worker takes a block, so that its variants meet the same weather."""
    opener = ScriptedOpener(do_the_task)
    bench.run(opener)
    keys = [str(asked["simulation_key"]).split("/")[-1] for asked in opener.opened]
    assert [keys[0], keys[2], keys[4], keys[6]] == [keys[1], keys[3], keys[5], keys[7]]


def test_invalid_episodes_are_stored_counted_and_told(bench: Bench) -> None:
    """They are results of the infrastructure, and the next run does not pay for them again unasked."""
    assert bench.run(ScriptedOpener(*steps_of("PMPMPMPM")))
    assert bench.progress is not None
    assert dict(bench.progress.reasons) == {"the session broke: model_failed: why it is model_failed": 4}
    assert bench.statuses() == ["done"] * 4 + ["failed"] * 4
    assert bench.plan().to_run == 0


def full_disk(_: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "/where/it/was")


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (full_disk, "the disk failed at /where/it/was: No space left on device; make room"),
        (ConfigurationError("there is no key"), "the model cannot be used: there is no key"),
    ],
)
@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_would_fail_every_episode_stops_the_run_and_loses_nothing(
    bench: Bench, step: Step, told: str, concurrency: int
) -> None:
    """The message names the place; what had ended stays, and the same command runs the rest."""
    with pytest.raises(RunStopped, match=told):
        bench.run(ScriptedOpener(do_the_task, do_the_task, do_the_task, step), concurrency=concurrency)
    done = bench.done()
    assert 1 <= len(done) <= 3
    again = ScriptedOpener(do_the_task)
    assert bench.run(again)
    assert len(again.opened) == 8 - len(done)
    assert {Path(str(asked["folder"])).name for asked in again.opened}.isdisjoint(done)


def interrupt(with_signal: signal.Signals) -> Callable[[Path], None]:
    def send(workspace: Path) -> None:
        do_the_task(workspace)
        os.kill(os.getpid(), with_signal)

    return send


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_finishes_nothing_half_and_the_same_command_goes_on(
    bench: Bench, with_signal: signal.Signals
) -> None:
    """Half an episode is none: it is set aside, and run afresh; what had ended is not run again."""
    assert not bench.run(ScriptedOpener(do_the_task, do_the_task, interrupt(with_signal), None))
    done = bench.done()
    assert len(done) in {2, 3}, "the signal arrives while the third ends or the fourth begins"
    unfinished = 8 - len(done)
    assert bench.plan().to_run == unfinished
    assert count_set_aside(bench.root, frozenset(path.name for path in bench.root.episodes.glob("*/*"))) == 0
    assert len(list(bench.root.set_aside.iterdir())) == 1
    assert bench.statuses().count("lost") == 1
    assert list(bench.root.workspaces.iterdir()) == []
    again = ScriptedOpener(do_the_task)
    assert bench.run(again)
    assert len(again.opened) == unfinished


def test_a_started_episode_of_a_killed_run_is_told_as_lost(bench: Bench) -> None:
    """A kill writes nothing. The next run says what it finds, and runs it."""
    plan = bench.plan()
    manifest = Manifest(bench.folder, bench.clock)
    first = plan.blocks[0].episodes[0]
    manifest.note(first, EpisodeStatus.PLANNED)
    manifest.note(first, EpisodeStatus.STARTED)
    bench.store.begin(first.spec.episode_key, {})
    manifest.close()
    Manifest(bench.folder, bench.clock).close()
    assert read_manifest(bench.folder) == {first.spec.episode_key: EpisodeStatus.LOST}
    assert bench.run(ScriptedOpener(do_the_task))
    assert bench.statuses() == ["done"] * 8


def test_progress_off_a_terminal_is_a_line_now_and_then(bench: Bench) -> None:
    """A log of a night's run stays readable: here the clock stands still, so there is a first and no other line."""
    bench.run(ScriptedOpener(*steps_of("PF")))
    assert bench.shown.getvalue() == "0/8 episodes  PASS 0  FAIL 0  INVALID 0\n"
    assert bench.progress is not None
    bench.clock.advance(16)
    bench.progress.close()
    assert bench.shown.getvalue().splitlines()[1] == "8/8 episodes  PASS 1  FAIL 7  INVALID 0  0.5/s"


def test_a_display_that_fails_stops_no_episode(bench: Bench) -> None:
    """Whoever logs a night's run to a disk that fills up must still find its results."""
    bench.shown = FullOutput()
    assert bench.run(ScriptedOpener(do_the_task))
    assert bench.statuses() == ["done"] * 8
