"""What `--plan` and `geode gate plan` say, in words and as JSON."""

import io
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from experiments.budget import Amount
from experiments.detectable import Detectable, Source
from experiments.forecast import Forecast, Range
from experiments.gate_cli import register
from experiments.plan import Plan, make_plan
from experiments.preview import Preview, preview_to_json, print_preview
from experiments.refusals import Refusal
from experiments.run_spec import BudgetChoice
from experiments.store import EpisodeStore
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.redaction import Redactor
from tests.doubles.cells import make_experiment

NOTHING = Forecast(
    episodes=4,
    same_task=0,
    other_tasks=0,
    past=0,
    cost_usd=None,
    calls=None,
    tokens=None,
    seconds=None,
    most=Amount(cost_usd=Decimal("20.0"), calls=160),
    most_of_one=Amount(cost_usd=Decimal("5.0"), calls=40),
    unpriced=(),
    simulated=False,
)
KNOWN = replace(
    NOTHING,
    same_task=3,
    other_tasks=1,
    past=12,
    cost_usd=Range(low=1.0, median=2.0, high=3.0),
    calls=Range(low=20, median=24, high=30),
    tokens=Range(low=10_000, median=12_000, high=15_000),
    seconds=Range(low=100, median=120, high=9_000),
)
DETECTABLE = Detectable(
    candidates=1,
    pairs=2,
    tasks=2,
    families=1,
    sources={Source.PAIRS: 1, Source.ASSUMED: 1},
    on_tasks=0.178,
    largest=0.5,
    repeats={0.10: 96, 0.05: None},
    beyond=None,
    spread=None,
)


@pytest.fixture
def preview(tmp_path: Path) -> Preview:
    letters = {"base": {"csv_a": "..", "csv_b": ".."}, "hook": {"csv_a": "..", "csv_b": ".."}}
    store = EpisodeStore(StateRoot(tmp_path), ManualClock(), Redactor())
    plan: Plan = make_plan(make_experiment(letters), list(letters), 2, store)
    return Preview(plan=plan, refusals=(), budget=BudgetChoice(), forecast=KNOWN, detectable=DETECTABLE)


def text(preview: Preview) -> str:
    out = io.StringIO()
    print_preview(preview, Console(file=out, width=200))
    return out.getvalue()


def test_a_forecast_is_told_with_its_range_and_what_it_rests_on(preview: Preview) -> None:
    told = text(preview)
    assert "Forecast for 4 episodes, from 12 past ones in the same roles (3 by their own task, 1 by others)" in told
    assert "money   2.00 [1.00 to 3.00] US dollars\n" in told
    assert "calls   24 [20 to 30] of models, 12,000 [10,000 to 15,000] tokens" in told
    assert "time    2 min [2 min to 2.5 h]" in told
    assert "at most 160 model calls and 20.00 US dollars, by limits and caps" in told


def test_what_is_measured_is_counted_in_words(preview: Preview) -> None:
    """The first lines are the first that a newcomer sees of an experiment."""
    first, second, *_ = text(preview).splitlines()
    assert first == f"{preview.plan.experiment.name}: {preview.plan.experiment.question}"
    assert second.endswith(": 2 tasks in 1 family, 1 seed, 2 repeats")
    asking_nothing = preview.plan.experiment.model_copy(update={"question": ""})
    silent = text(replace(preview, plan=replace(preview.plan, experiment=asking_nothing)))
    assert silent.splitlines()[0] == preview.plan.experiment.name


def test_nominal_and_unknown_prices_are_named(preview: Preview) -> None:
    """A sum without its condition would be read as a bill."""
    assert "at nominal prices" in text(replace(preview, forecast=replace(KNOWN, simulated=True)))
    unpriced = replace(KNOWN, cost_usd=None, unpriced=("anthropic/x",))
    assert "money   unknown: no price is known for anthropic/x" in text(replace(preview, forecast=unpriced))


def test_where_nothing_is_known_only_the_bound_is_told(preview: Preview) -> None:
    told = text(replace(preview, forecast=NOTHING))
    assert "nothing is known, because no episode in these roles has run here" in told
    assert "at most 160 model calls" in told
    assert "money" not in told
    assert "billed to nobody" not in told
    assert "by limits and caps; a simulated model is billed to nobody" in text(
        replace(preview, forecast=replace(NOTHING, simulated=True))
    )
    partly = replace(KNOWN, same_task=2)
    assert "Nothing is known of 1 more" in text(replace(preview, forecast=partly))


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (70, "that should be enough"),
        (69, "it may stop it before all is done"),
        (60, "it may stop it"),
        (59, "it will probably stop it"),
    ],
)
def test_a_budget_is_held_against_the_forecast_and_one_worst_case(preview: Preview, calls: int, told: str) -> None:
    """Between 20 and 30 calls are forecast, and the last episode starts only if its 40 still fit."""
    assert f"budget.calls={calls}; {told}" in text(replace(preview, budget=BudgetChoice(calls=calls)))
    unknown = replace(preview, budget=BudgetChoice(calls=calls), forecast=NOTHING)
    assert "nobody knows whether that is enough" in text(unknown)
    partly = replace(preview, budget=BudgetChoice(calls=calls), forecast=replace(KNOWN, same_task=2))
    assert "nobody knows whether that is enough" in text(partly)


def test_what_can_be_detected_is_told_with_what_less_would_need(preview: Preview) -> None:
    told = text(preview)
    assert "by 1 candidate on 2 pairs a task, judged by past pairs of its variants (1 task); the assumption" in told
    assert "on these tasks  a true difference of 17.8 points or more" in told
    assert "10.0 points need 96, 5.0 points need more than 100,000" in told
    assert "beyond them     not tested: it needs 10 families, and there are 1" in told
    nothing = replace(DETECTABLE, on_tasks=None, largest=0.04)
    assert "nothing: even 4.0 points more, which is to pass always, are too few" in text(
        replace(preview, detectable=nothing)
    )
    assert "5.0 points have no room" in text(replace(preview, detectable=nothing))
    general = replace(DETECTABLE, families=11, beyond=0.2)
    assert "20.0 points or more, if families do not differ" in text(replace(preview, detectable=general))
    spread = replace(general, spread=0.1)
    assert "spread by 10.0 points, as they did so far" in text(replace(preview, detectable=spread))


def test_one_refused_episode_keeps_all_from_running_and_the_plan_says_so(preview: Preview) -> None:
    (episode, *_) = preview.plan.blocks[0].episodes
    assert "8 episodes in 4 blocks would run. Nothing was run." in text(preview)
    refused = text(replace(preview, refusals=(Refusal(reason="why", episodes=(episode,)),)))
    assert "8 episodes in 4 blocks are to run, and 1 are refused, so that none would. Nothing was run." in refused


def test_json_has_what_the_words_say(preview: Preview) -> None:
    episodes = tuple(episode for block in preview.plan.blocks for episode in block.episodes)
    body = preview_to_json(
        replace(preview, refusals=(Refusal(reason="why", episodes=episodes[:3]),), budget=BudgetChoice(seconds=5))
    )
    body = json.loads(json.dumps(body))
    assert body["refused"] == [{"reason": "why", "episodes": 3}]
    assert sum(variant["refused"] for variant in body["variants"].values()) == 3
    assert body["forecast"]["calls"] == {"low": 20, "median": 24, "high": 30}
    assert body["forecast"]["at_most"] == {"cost_usd": 20.0, "calls": 160}
    assert body["detectable"]["on_tasks"] == 0.178
    assert body["detectable"]["repeats_needed"] == {"0.1": 96, "0.05": None}
    assert body["detectable"]["from"] == {"pairs": 1, "assumed": 1}
    assert body["budget"] == {"cost_usd": None, "calls": None, "seconds": 5.0}


def test_a_gate_is_planned_without_a_suite() -> None:
    app = typer.Typer()
    register(app)
    ran = CliRunner().invoke(app, ["gate", "plan", "--candidates", "6", "--json"])
    assert ran.exit_code == 0, ran.output
    body = json.loads(ran.stdout)
    assert (body["tasks"], body["pairs_per_task"], body["candidates"]) == (6, 30, 6)
    assert body["on_tasks"] == pytest.approx(0.176, abs=0.002)
    assert body["repeats_needed"]["0.1"] == pytest.approx(96, abs=2)
    told = CliRunner().invoke(app, ["gate", "plan", "--tasks", "22", "--families", "11", "--rate", "0.7"]).stdout
    assert "judged by the pass rate that was given" in told
    assert "if families do not differ" in told
