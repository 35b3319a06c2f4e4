"""Blocks through the local executor: what has ended is stored, whatever happens to the rest."""

import errno
import io
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from experiments.budget import Budget
from experiments.claims import Claims, block_name, episode_name
from experiments.engine import Attempted, Ending, EpisodeBench, LocalEngine
from experiments.manifest import EpisodeStatus, Manifest, read_manifest
from experiments.plan import Plan, PlannedEpisode, make_plan
from experiments.progress import Progress
from experiments.records import ExperimentRecord
from experiments.run_episode import EpisodeParts
from experiments.run_spec import BudgetChoice
from experiments.runner import OverBudget, Runner, RunStopped
from experiments.store import EpisodeStore, count_set_aside
from experiments.suite import OutcomeKind
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.llm.errors import ConfigurationError
from geode.loop.turn import TurnStop
from geode.redaction import Redactor
from tests.doubles.cells import make_cells, make_experiment
from tests.doubles.claimer import Claimer
from tests.doubles.openers import ScriptedOpener, Step, do_the_task, make_task, steps_of

VARIANTS = ["base", "hook"]
NO_BUDGET = BudgetChoice()


class FullOutput(io.StringIO):
    """What a log on a full disk is."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


class Noticing(io.StringIO):
    """Does something as soon as a text is shown."""

    def __init__(self, text: str, then: Callable[[], object]) -> None:
        super().__init__()
        self._text, self._then = text, then

    def write(self, text: str) -> int:
        if self._text in text:
            self._then()
        return super().write(text)


class Dying:
    """An engine whose first attempts end as scripted: the process dies. Those after them are made here."""

    slots = 1

    def __init__(self, bench: EpisodeBench, *endings: Ending) -> None:
        self._bench, self._endings = bench, list(endings)

    async def run(self, slot: int, episode: PlannedEpisode) -> Attempted:
        if self._endings:
            return Attempted(ending=self._endings.pop(0), cause="SIGKILL")
        return await self._bench.attempt(episode)

    async def close(self) -> None:
        pass


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

    def run(
        self,
        opener: ScriptedOpener,
        *,
        concurrency: int = 1,
        budget: BudgetChoice = NO_BUDGET,
        deaths: Sequence[Ending] = (),
    ) -> bool:
        plan = self.plan()
        manifest = Manifest(self.folder, self.clock)
        claims = Claims(self.root)
        manifest.note_lost(claims, self.store)
        for block in plan.blocks:
            for episode in block.episodes:
                manifest.note(episode, EpisodeStatus.PLANNED)
        reused = {variant.variant: variant.reused for variant in plan.variants}
        self.progress = Progress(Console(file=self.shown), self.clock, reused=reused, to_run=plan.to_run)
        bench = EpisodeBench(
            parts=EpisodeParts(root=self.root, opener=opener, clock=self.clock),
            store=self.store,
            tasks={"csv_a": self.task},
            claims=claims,
            manifest=manifest,
        )
        runner = Runner(
            bench=bench,
            engine=Dying(bench, *deaths) if deaths else LocalEngine(bench=bench, slots=concurrency),
            budget=Budget(budget, self.clock),
            mirror=None,
            progress=self.progress,
            poll_s=0.01,
        )
        try:
            return runner.run(plan, ())
        finally:
            manifest.close()
            claims.close()

    def store_as_another(self, episode: PlannedEpisode) -> None:
        """Finish an episode as another process would: the task failed."""
        spec = episode.spec
        letters = {name: {"csv_a": "FFFF"} for name in VARIANTS}
        (cell,) = [cell for cell in make_cells(letters, self.experiment) if cell.variant.name == episode.variant]
        self.store.begin(spec.episode_key, {})
        self.store.finish(next(e.record for e in cell.episodes if e.record.episode_key == spec.episode_key))

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
    again = Manifest(bench.folder, bench.clock)
    again.note_lost(Claims(bench.root), bench.store)
    again.close()
    assert read_manifest(bench.folder) == {first.spec.episode_key: EpisodeStatus.LOST}
    assert bench.run(ScriptedOpener(do_the_task))
    assert bench.statuses() == ["done"] * 8


@pytest.fixture
def another(bench: Bench) -> Iterator[Claimer]:
    """Another command on the same root."""
    bench.root.path.mkdir()
    with Claimer(bench.root.path) as claimer:
        yield claimer


def at_the(number: int, then: Callable[[], object]) -> ScriptedOpener:
    """Sessions that do their task; while the one with this number runs, something happens elsewhere."""

    def step(workspace: Path) -> None:
        do_the_task(workspace)
        then()

    return ScriptedOpener(*[do_the_task] * (number - 1), step, do_the_task)


def ran(opener: ScriptedOpener) -> list[str]:
    return [Path(str(asked["folder"])).name for asked in opener.opened]


@pytest.mark.parametrize("how", ["released", "killed"])
def test_a_block_of_another_process_comes_last_and_is_taken_over(bench: Bench, another: Claimer, how: str) -> None:
    """Nobody waits while there is other work, and nothing is left to a process that is no more."""
    block = bench.plan().blocks[0]
    name = block_name(bench.experiment.name, block.task_id, block.seed, block.repetition)
    assert another.take(name)
    opener = at_the(6, another.kill if how == "killed" else partial(another.release, name))
    assert bench.run(opener)
    assert ran(opener)[6:] == [episode.spec.episode_key for episode in block.episodes]
    assert bench.statuses() == ["done"] * 8


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_episode_of_another_process_is_waited_for_and_counted(
    bench: Bench, another: Claimer, concurrency: int
) -> None:
    """Its record is that of the episode, whoever ran it, and the report is as whole as any."""
    first, second, *_ = bench.plan().blocks[0].episodes
    for episode in (first, second):
        assert another.take(episode_name(episode.spec.episode_key))

    def end() -> None:
        bench.store_as_another(first)
        another.kill()

    opener = at_the(6, end)
    assert bench.run(opener, concurrency=concurrency)
    assert sorted(ran(opener)) == sorted(bench.done() - {first.spec.episode_key})
    assert bench.progress is not None
    assert (bench.progress.run, bench.progress.found) == (7, 1)
    assert bench.progress.counts[first.variant] == {OutcomeKind.PASS: 3, OutcomeKind.FAIL: 1}
    assert bench.plan().to_run == 0


def test_waiting_for_others_is_told(bench: Bench, another: Claimer) -> None:
    """Whoever looks at the terminal must not take it for hanging."""
    for block in bench.plan().blocks:
        another.take(block_name(bench.experiment.name, block.task_id, block.seed, block.repetition))
    bench.shown = Noticing("waiting for 8 episodes that other processes run", another.kill)
    assert bench.run(ScriptedOpener(do_the_task))
    assert bench.shown.getvalue().count("waiting for") == 1


def test_what_another_process_finished_since_the_plan_is_not_run_again(bench: Bench) -> None:
    """The claim is free and the plan says that it is to run: only a fresh look can know better."""
    last = bench.plan().blocks[-1].episodes[-1]
    opener = at_the(2, lambda: bench.store_as_another(last))
    assert bench.run(opener)
    assert len(opener.opened) == 7
    assert last.spec.episode_key not in ran(opener)


def test_an_episode_whose_process_died_begins_again(bench: Bench) -> None:
    """Twice; and a process that died before it had begun anything is not held against the episode."""
    deaths = [Ending.UNBEGUN, Ending.LOST, Ending.UNBEGUN, Ending.LOST, *[Ending.UNBEGUN] * 3]
    assert bench.run(ScriptedOpener(do_the_task), deaths=deaths)
    assert bench.statuses() == ["done"] * 8
    assert bench.shown.getvalue().count("died (SIGKILL)") == 2


def test_an_episode_that_takes_every_process_with_it_is_invalid(bench: Bench) -> None:
    """It would do so for ever. Its record says why there is no measurement, and the others are run."""
    assert bench.run(ScriptedOpener(do_the_task), deaths=[Ending.LOST] * 3)
    assert bench.statuses() == ["done"] * 7 + ["failed"]
    assert bench.progress is not None
    assert dict(bench.progress.reasons) == {"the process that ran it died 3 times (SIGKILL, SIGKILL, SIGKILL)": 1}
    assert bench.plan().to_run == 0


def test_a_lost_attempt_counts_with_all_that_it_may_have_spent(bench: Bench) -> None:
    """Nobody knows what the model was asked before the process died; of what had not begun everybody does."""
    deaths = [Ending.UNBEGUN, Ending.UNBEGUN, Ending.LOST]
    with pytest.raises(OverBudget, match=r"budget\.calls=82: 43 model calls are spent"):
        bench.run(ScriptedOpener(do_the_task), deaths=deaths, budget=BudgetChoice(calls=82))
    assert len(bench.done()) == 1


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_budget_that_is_used_up_ends_the_run_and_keeps_what_is_done(bench: Bench, concurrency: int) -> None:
    """An episode may need 40 calls, and uses 3: under a cap of 45 there is room for two, one after the other."""
    opener = ScriptedOpener(do_the_task)
    with pytest.raises(OverBudget, match=r"budget\.calls=45: 6 model calls are spent"):
        bench.run(opener, concurrency=concurrency, budget=BudgetChoice(calls=45))
    assert (len(opener.opened), opener.most_open, len(bench.done())) == (2, 1, 2)
    assert not bench.root.set_aside.exists()


def test_when_the_time_is_up_what_runs_is_cancelled_and_set_aside(bench: Bench) -> None:
    """A cap on time is kept, whatever a model takes."""
    with pytest.raises(OverBudget, match=r"budget\.seconds=0\.1 are over"):
        bench.run(ScriptedOpener(do_the_task, do_the_task, None), budget=BudgetChoice(seconds=0.1))
    assert len(bench.done()) == 2
    assert len(list(bench.root.set_aside.iterdir())) == 1


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


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_episode_that_meets_a_cap_on_money_is_set_aside_and_run_afresh(tmp_path: Path, concurrency: int) -> None:
    """It is no outcome: neither PASS, FAIL nor INVALID; and nothing more begins."""
    bench = Bench(tmp_path)
    with pytest.raises(OverBudget, match="why it is budget_reached"):
        bench.run(ScriptedOpener(do_the_task, do_the_task, TurnStop.BUDGET_REACHED), concurrency=concurrency)
    assert len(bench.done()) == 2
    assert "failed" not in bench.statuses()
    assert list(bench.root.set_aside.iterdir())
    assert bench.run(ScriptedOpener(do_the_task))
    assert len(bench.done()) == 8
