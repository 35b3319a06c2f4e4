"""One episode: what is measured, what is INVALID, and what stops the run."""

import asyncio
import errno
import shutil
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.episode import EpisodeRecord
from experiments.plan import EpisodeSpec, make_plan
from experiments.run_episode import EpisodeParts, run_episode
from experiments.store import EpisodeStore
from experiments.suite import Outcome, OutcomeKind, Task, Verifier
from experiments.suites.verifier_runner import VerifierRunner
from experiments.suites.verify_command import CommandVerifier
from experiments.suites.verify_file import load_verifier
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.executor.policy import Mode
from geode.llm.errors import ConfigurationError
from geode.loop.turn import TurnResult, TurnStop
from geode.records.database import RecordError
from geode.redaction import Redactor
from geode.scaffold import LoopLimits
from geode.tools.shell import shell_tool
from geode.tools.spec import ToolFailed
from geode.tools.workspace import Workspace
from tests.doubles.cells import make_experiment
from tests.doubles.openers import (
    ScriptedOpener,
    ScriptedSession,
    Step,
    do_the_task,
    make_task,
    passes_if_done,
    turn,
)
from tests.doubles.sandboxes import plain, saying


class Bench:
    """One planned episode, run with a scripted session."""

    def __init__(self, path: Path) -> None:
        self.root = StateRoot(path / "root")
        self.store = EpisodeStore(self.root, ManualClock(), Redactor())
        experiment = make_experiment({"base": {"csv_a": "."}})
        (self.block,) = make_plan(experiment, ["base"], 1, self.store).blocks
        self.verifiers = VerifierRunner()
        self.task = make_task(path, "csv_a", experiment.ruler.tasks[0].task_hash)

    @property
    def spec(self) -> EpisodeSpec:
        return self.block.episodes[0].spec

    async def run(self, opener: ScriptedOpener, task: Task | None = None) -> EpisodeRecord:
        folder = self.store.begin(self.spec.episode_key, self.spec.model_dump(mode="json", by_alias=True))
        parts = EpisodeParts(root=self.root, opener=opener, clock=ManualClock(), verifiers=self.verifiers)
        return await run_episode(parts, self.spec, task or self.task, folder)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_the_session_is_the_production_one_with_what_the_episode_is_keyed_by(bench: Bench) -> None:
    """Randomness is keyed by scaffold, task, seed and repetition; the ruler's caps bound it; its records are here."""
    opener = ScriptedOpener(do_the_task)
    record = await bench.run(opener)
    (asked,) = opener.opened
    assert asked["mode"] is Mode.EXPERIMENT
    assert asked["simulation_key"] == f"{bench.spec.scaffold_id}/csv_a/1/0"
    assert asked["folder"] == bench.root.episode(bench.spec.episode_key)
    assert asked["caps"] == LoopLimits(rounds=60, tokens=1_000_000, seconds=1_800, cost_usd=10)
    assert (record.outcome.kind, record.episode_key) == (OutcomeKind.PASS, bench.spec.episode_key)
    assert (record.rounds, record.tool_calls, record.repairs_used, record.verified) == (3, 2, 1, True)
    assert record.usage["target"].model_dump(exclude_defaults=True) == {
        "uncached_input_tokens": 70,
        "output_tokens": 7,
        "cost_usd": 0.5,
        "calls": 3,
        "latency_ms": 900,
    }
    assert opener.closed == 1


async def test_the_workspace_is_a_copy_that_is_gone_afterwards(bench: Bench) -> None:
    """The next episode begins with the same fixtures, and the state root does not fill with copies."""
    seen: list[str] = []

    def spoil(workspace: Path) -> None:
        seen.extend(path.name for path in workspace.iterdir())
        (workspace / "start").write_text("spoilt", encoding="utf-8")

    await bench.run(ScriptedOpener(spoil))
    assert seen == ["start"]
    assert (bench.task.fixtures / "start").read_text(encoding="utf-8") == "begin"
    assert list(bench.root.workspaces.iterdir()) == []


@pytest.mark.parametrize(
    "stop", [TurnStop.COMPLETED, TurnStop.NOT_VERIFIED, TurnStop.ROUND_LIMIT, TurnStop.COST_LIMIT, TurnStop.ESCALATED]
)
async def test_an_agent_that_ran_is_measured_by_its_workspace_however_it_stopped(bench: Bench, stop: TurnStop) -> None:
    """A scaffold that runs into its own limit is a slow scaffold, not broken infrastructure."""
    record = await bench.run(ScriptedOpener(stop))
    assert (record.outcome.kind, record.stop_reason) == (OutcomeKind.FAIL, stop.value)
    assert record.outcome.reasons == ("there is no /workspace/done",), "a record holds no path of this machine"


def break_verifier(_: Path) -> Outcome:
    raise ZeroDivisionError("in the verifier")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (TurnStop.MODEL_FAILED, "the session broke: model_failed: why it is model_failed"),
        (RuntimeError("adapter"), "the session broke: RuntimeError: adapter"),
        (PermissionError(errno.EACCES, "no"), "the session broke: PermissionError: [Errno 13] no"),
    ],
)
async def test_what_infrastructure_prevents_is_invalid_with_the_reason(bench: Bench, step: Step, reason: str) -> None:
    """It is neither a failure of the agent nor silently dropped."""
    record = await bench.run(ScriptedOpener(step))
    assert (record.outcome.kind, record.outcome.score) == (OutcomeKind.INVALID, None)
    assert record.outcome.reasons == (reason,)


async def test_a_verifier_that_breaks_makes_the_episode_invalid(bench: Bench, tmp_path: Path) -> None:
    """Nothing is known about the agent then, and a default in its place would be a lie."""
    task = make_task(tmp_path, "csv_a", bench.task.task_hash, break_verifier)
    record = await bench.run(ScriptedOpener(do_the_task), task)
    line = break_verifier.__code__.co_firstlineno + 1
    told = f"the verifier broke: ZeroDivisionError: in the verifier ({Path(__file__).name}, line {line})"
    assert record.outcome.reasons == (told,)
    assert (record.outcome.kind, record.rounds) == (OutcomeKind.INVALID, 3)


@pytest.mark.parametrize(
    ("verify", "reason"),
    [
        (lambda _: sys.exit(3), "SystemExit: 3"),
        (lambda _: True, "it returned True, which is no experiments.suite.Outcome"),
    ],
)
async def test_a_verifier_that_exits_or_says_something_else_costs_its_episode_only(
    bench: Bench, tmp_path: Path, verify: Verifier, reason: str
) -> None:
    """A script made into a verifier ends with `sys.exit`, and must not end the run of a night with it."""
    record = await bench.run(ScriptedOpener(do_the_task), make_task(tmp_path, "csv_a", bench.task.task_hash, verify))
    (told,) = record.outcome.reasons
    assert told.startswith(f"the verifier broke: {reason}")


async def test_fixtures_that_cannot_be_read_make_the_episode_invalid(bench: Bench, tmp_path: Path) -> None:
    """An unreadable workspace concerns one task; the others go on."""
    task = make_task(tmp_path, "csv_a", bench.task.task_hash, passes_if_done)
    (task.fixtures / "start").unlink()
    task.fixtures.rmdir()
    record = await bench.run(ScriptedOpener(do_the_task), task)
    assert record.outcome.kind is OutcomeKind.INVALID
    assert record.outcome.reasons[0].endswith("FileNotFoundError: [Errno 2] No such file or directory: 'fixtures'")
    assert not record.session_id


@pytest.mark.parametrize(
    "step",
    [OSError(errno.ENOSPC, "No space left on device", "/x"), RecordError("disk is full"), TurnStop.CHECKPOINT_FAILED],
)
async def test_a_failing_disk_is_no_outcome(bench: Bench, step: Step) -> None:
    """A record of it would stay when the disk is well again; the run has to stop instead."""
    with pytest.raises(OSError, match="Errno"):
        await bench.run(ScriptedOpener(step))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
async def test_a_disk_that_takes_no_copy_of_the_fixtures_is_no_outcome(bench: Bench, code: int) -> None:
    """`shutil` gathers what happened to many files into one error that has no number of its own."""
    why = str(OSError(code, "the disk", "a", None, "b"))
    with pytest.raises(OSError, match=r"Errno 5.*the disk"):
        await bench.run(ScriptedOpener(shutil.Error([("a", "b", why)])))


async def test_a_model_that_cannot_be_used_is_no_outcome(bench: Bench) -> None:
    """A missing key would make every episode INVALID, and each of them would have to be run again."""
    with pytest.raises(ConfigurationError):
        await bench.run(ScriptedOpener(ConfigurationError("no key")))


@pytest.mark.slow
async def test_an_endless_verifier_makes_the_episode_invalid(bench: Bench, tmp_path: Path) -> None:
    """With the reason; and the same parts judge the next episode."""
    (tmp_path / "endless.py").write_text("def verify(workspace):\n    while True: pass\n")
    endless = load_verifier(tmp_path / "endless.py", "geode_test_endless", 0.3)
    with closing(bench.verifiers):
        record = await bench.run(ScriptedOpener(do_the_task), make_task(tmp_path, "csv_a", "0" * 64, endless))
        assert record.outcome.reasons == ("the verifier broke: it did not end within 0.3 s",)
        assert (record.outcome.kind, record.rounds) == (OutcomeKind.INVALID, 3)


async def test_a_verifier_on_a_full_disk_is_no_outcome(bench: Bench, tmp_path: Path) -> None:
    """As for the session: the record would stay when the disk is well again."""

    def full(_: Path) -> Outcome:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        await bench.run(ScriptedOpener(do_the_task), make_task(tmp_path, "csv_a", bench.task.task_hash, full))


async def test_the_session_executes_in_the_task_s_environment(bench: Bench) -> None:
    """What the suite declares is what the session is given."""
    opener = ScriptedOpener(do_the_task)
    await bench.run(opener, replace(bench.task, environment=plain()))
    given = opener.opened[0]["environment"]
    assert getattr(given, "definition", None) == plain()


class ShellOpener(ScriptedOpener):
    """Its sessions call the shell tool until they are stopped, as a model does that only sees failing results."""

    def create_session(self, **asked: Any) -> ScriptedSession:
        session = super().create_session(**asked)
        tool = shell_tool(Workspace(asked["workspace"]), asked["environment"])

        async def arun(prompt: str) -> TurnResult:
            for _ in range(1_000):
                with suppress(ToolFailed):
                    await tool.handler({"command": "true"})
            return turn(TurnStop.COMPLETED)

        session.arun = arun
        return session


async def test_an_environment_that_breaks_ends_the_session_and_is_invalid(bench: Bench) -> None:
    """Each further call of the model would cost money and measure nothing."""
    broken = saying(f'[ -e {bench.root.path}/broken ] && {{ echo the engine is gone; exit 1; }}; exec "$@"')
    bench.root.path.mkdir(parents=True, exist_ok=True)
    (bench.root.path / "broken").touch()
    opener = ShellOpener(None)
    record = await bench.run(opener, replace(bench.task, environment=broken))
    assert record.outcome.kind is OutcomeKind.INVALID
    assert record.outcome.reasons == (
        "the session broke: its environment: sh ended with exit code 1 before anything began (the engine is gone)",
    )
    assert opener.closed == 1
    this = asyncio.current_task()
    assert this is not None
    assert this.cancelling() == 0, "the next episode of this task is not cancelled with it"


async def test_a_cancellation_from_outside_is_not_taken_for_a_broken_environment(bench: Bench) -> None:
    """Half an episode is none."""
    run = asyncio.create_task(bench.run(ScriptedOpener(None), replace(bench.task, environment=plain())))
    await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_an_environment_that_breaks_before_the_verifier_is_invalid(bench: Bench, tmp_path: Path) -> None:
    """Nothing was looked at."""
    verify = CommandVerifier(command="true", task_folder=tmp_path, time_limit_s=5, environment=saying("exit 1"))
    record = await bench.run(ScriptedOpener(do_the_task), replace(bench.task, verify=verify))
    assert record.outcome.kind is OutcomeKind.INVALID
    assert record.outcome.reasons == (
        "the verifier broke: sh ended with exit code 1 before anything began (no output)",
    )
