"""Before launching: what a sweep will use, can show and is refused; and caps that stop before they are passed."""

import io
import json
import random
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from experiments.budget import Budget
from experiments.claims import Claims
from experiments.engine import EpisodeBench, LocalEngine
from experiments.episode import EpisodeRecord
from experiments.manifest import Manifest
from experiments.plan import make_plan
from experiments.progress import Progress
from experiments.records import Caps
from experiments.run_episode import EpisodeParts
from experiments.run_spec import BudgetChoice
from experiments.runner import OverBudget, Runner
from experiments.store import EpisodeStore
from geode.clock import SystemClock
from geode.config.paths import StateRoot
from geode.llm.messages import ModelResponse, StepSnapshot
from geode.redaction import Redactor
from tests.done.command import geode
from tests.doubles.cells import make_experiment
from tests.doubles.models import PricedModel, calls, says
from tests.doubles.openers import make_task
from tests.experiments.test_budget import PricedSessions

pytestmark = pytest.mark.slow

SWEEP = ("sweep", "tracking=none", "suite.tasks=[config_port,csv_totals]", "hooks=[],[stop_repeats]", "repeats=5")


def records(root: Path) -> list[EpisodeRecord]:
    found = root.glob("episodes/*/*/episode.json")
    return [EpisodeRecord.model_validate_json(path.read_bytes()) for path in found]


def test_a_plan_says_what_is_known_and_more_once_something_has_run(tmp_path: Path) -> None:
    """First only the bound and the assumption; after one repeat a forecast that the rest then keeps."""
    root = ("--root", str(tmp_path / "root"))
    first = geode(tmp_path, *SWEEP, "name=a", *root, "--plan")
    assert first.code == 0, first.err
    assert "Forecast: nothing is known" in first.out
    assert "at most 800 model calls and 100.00 US dollars" in first.out
    assert "the assumption that the baseline passes half of the time" in first.out
    assert not (tmp_path / "root").exists()
    assert geode(tmp_path, *SWEEP, "name=a", "repeats=3", *root).code == 0
    body = geode(tmp_path, *SWEEP, "name=a", "repeats=9", *root, "--plan", "--json").json
    forecast = json.loads(json.dumps(body["forecast"]))
    assert (forecast["episodes"], forecast["from_past_of_same_task"], forecast["past_episodes"]) == (24, 24, 12)
    assert geode(tmp_path, *SWEEP, "name=a", "repeats=9", *root).code == 0
    used = [record.usage["target"] for record in records(tmp_path / "root") if record.repetition >= 3]
    assert len(used) == 24
    # The range is one of 90 %; twice as wide, it is to hold a run that is the same every time.
    for key, value in (("calls", sum(u.calls for u in used)), ("cost_usd", sum(u.cost_usd for u in used))):
        low, median, high = (forecast[key][name] for name in ("low", "median", "high"))
        assert 2 * low - median <= value <= 2 * high - median


def test_a_cap_on_calls_stops_in_time_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """Three at a time, and 100 calls a command: no command passes that, and together they do all of it."""
    root, before = tmp_path / "root", 0
    ends: list[int] = []
    command = (*SWEEP, "name=a", "executor.concurrency=3", "budget.calls=100", "--root", str(root), "--json")
    while not ends or ends[-1] == 4:
        ran = geode(tmp_path, *command)
        ends.append(ran.code)
        spent = sum(record.usage["target"].calls for record in records(root))
        assert 0 < spent - before <= 100, ran.err
        before = spent
        if ran.code == 4:
            assert "budget.calls=100: " in str(ran.json["stopped"])
            assert "run the same command again" in str(ran.json["stopped"])
        assert len(ends) < 20
    assert ends[-1] == 0
    assert len(ends) > 1
    assert len(records(root)) == 20
    undisturbed = tmp_path / "undisturbed"
    assert geode(tmp_path, *SWEEP, "name=a", "--root", str(undisturbed)).code == 0
    assert outcomes(root) == outcomes(undisturbed)


def outcomes(root: Path) -> dict[str, str]:
    return {record.episode_key: record.outcome.kind.value for record in records(root)}


def test_a_cap_on_time_cancels_what_runs_and_keeps_what_is_done(tmp_path: Path) -> None:
    """The limit is generous against the machine, and small against the hours that the sweep would take."""
    root = tmp_path / "root"
    command = (*SWEEP, "name=a", "repeats=1000", "--root", str(root))
    began = time.monotonic()
    ran = geode(tmp_path, *command, "budget.seconds=2")
    assert ran.code == 4, ran.err
    assert time.monotonic() - began < 60
    assert "Stopped: budget.seconds=2 are over; run the same command again" in ran.out
    assert "of 4000 episodes are still to run; what is done is kept." in ran.out
    done = len(records(root))
    assert 0 < done < 4_000
    assert not list((root / "workspaces").glob("*"))
    again = geode(tmp_path, *command, "budget.calls=40", "--json")
    assert (again.code, again.json["to_run"]) == (4, 4_000 - done)


def test_a_budget_below_one_episode_is_refused_before_anything_runs(tmp_path: Path) -> None:
    refused = geode(tmp_path, *SWEEP, "name=a", "--root", str(tmp_path / "root"), "budget.calls=39")
    assert refused.code == 2
    assert "20 planned episodes are refused; nothing was run" in refused.err
    assert "Raise budget.calls to 40 or more; or lower what an episode may use: limits.rounds" in refused.err
    assert not (tmp_path / "root").exists()


def erratic(seed: int) -> Callable[[StepSnapshot], ModelResponse]:
    """A model whose calls cost up to a tenth of a dollar, and which ends when it likes."""
    chance = random.Random(seed)

    def reply(snapshot: StepSnapshot) -> ModelResponse:
        ends = chance.random() < 0.1
        arguments = json.dumps({"path": "start", "start_line": snapshot.round})
        made = says("done") if ends else calls((f"c{snapshot.round}", "read_file", arguments))
        return replace(made, usage=replace(made.usage, cost_usd=chance.choice([0.1, 0.07, 0.013])))

    return reply


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_cap_on_money_is_never_passed_by_a_model_with_prices(tmp_path: Path, concurrency: int) -> None:
    """Through the production loop: each command spends at most two dollars, and together they run everything."""
    clock, root = SystemClock(), StateRoot(tmp_path / "root")
    letters = {"base": {"csv_a": "." * 12}, "hook": {"csv_a": "." * 12}}
    experiment = make_experiment(letters, model="anthropic/priced")
    ruler = experiment.ruler.model_copy(update={"caps": Caps(cost_usd=0.75)})
    experiment = experiment.model_copy(update={"ruler": ruler})
    task = make_task(tmp_path, "csv_a", ruler.tasks[0].task_hash)
    store = EpisodeStore(root, clock, Redactor())
    spent, commands = 0.0, 0
    while (plan := make_plan(experiment, list(letters), 12, store)).to_run:
        commands += 1
        claims, manifest = Claims(root), Manifest(root.experiment(experiment.name), clock)
        bench = EpisodeBench(
            parts=EpisodeParts(
                root=root, opener=PricedSessions(root.path, PricedModel([erratic(commands)], 0.1)), clock=clock
            ),
            store=store,
            tasks={"csv_a": task},
            claims=claims,
            manifest=manifest,
        )
        runner = Runner(
            bench=bench,
            engine=LocalEngine(bench=bench, slots=concurrency),
            budget=Budget(BudgetChoice(cost_usd=2.0), clock),
            mirror=None,
            progress=Progress(Console(file=io.StringIO()), clock, reused={"base": {}, "hook": {}}, to_run=plan.to_run),
            poll_s=0.01,
        )
        with closing(claims), closing(manifest), suppress(OverBudget):
            assert runner.run(plan, ())
        now = sum(record.cost_usd for record in records(root.path))
        assert 0 < now - spent <= 2.0 + 1e-9
        spent = now
    assert commands > 2
    assert {record.stop_reason for record in records(root.path)} >= {"completed", "cost_limit"}
    assert max(record.cost_usd for record in records(root.path)) <= 0.75
