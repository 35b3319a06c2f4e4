"""A plan names everything that may not run, with how many episodes and why, not the first thing only."""

from pathlib import Path

import pytest

from experiments.plan import Plan, make_plan
from experiments.refusals import Refusal, refusal_text, refusals, refused_by_variant
from experiments.run_spec import BudgetChoice
from experiments.store import EpisodeStore
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.llm.binding import ModelOptions
from geode.llm.outline import Outline, OutlineCall, OutlineStep
from geode.redaction import Redactor
from tests.doubles.cells import make_cells, make_experiment, store_cells
from tests.doubles.openers import make_task

LETTERS = {"base": {"csv_a": "PP", "log_a": "PP"}, "hook": {"csv_a": "PP", "log_a": "PP"}}
OUTLINE = Outline(
    steps=(OutlineStep(id="s", kind="inspect", call=OutlineCall(tool="read_file", arguments={})),), answer="Done."
)


@pytest.fixture
def root(tmp_path: Path) -> StateRoot:
    return StateRoot(tmp_path / "root")


def planned(root: StateRoot, model: str = "simulated/apprentice") -> Plan:
    experiment = make_experiment(LETTERS, model=model)
    return make_plan(experiment, list(LETTERS), 2, EpisodeStore(root, ManualClock(), Redactor()))


def found(
    plan: Plan,
    root: StateRoot,
    *,
    outlines: tuple[str, ...] = ("csv_a", "log_a"),
    budget: BudgetChoice | None = None,
    refuse_damaged: bool = True,
) -> tuple[Refusal, ...]:
    tasks = {name: make_task(root.path / "tasks", name, "0" * 64) for name in ("csv_a", "log_a")}
    for name in outlines:
        object.__setattr__(tasks[name], "outline", OUTLINE)
    return refusals(plan, tasks, root, budget or BudgetChoice(), refuse_damaged=refuse_damaged)


def counted(refused: tuple[Refusal, ...]) -> dict[str, int]:
    return {refusal.reason.split(";")[0]: len(refusal.episodes) for refusal in refused}


def test_a_plan_that_can_run_is_refused_nothing(root: StateRoot) -> None:
    assert found(planned(root), root) == ()


def test_a_model_of_the_past_is_refused_for_all_episodes_that_are_to_run(root: StateRoot) -> None:
    """What is on record of it stays usable: only new episodes are refused."""
    plan = planned(root, "openai-codex/gpt-5.5")
    (refusal,) = found(plan, root)
    assert len(refusal.episodes) == 8
    assert refusal.reason.startswith("role.target.model: 'openai-codex/gpt-5.5' is bound as run-2606 has it on record")
    experiment = make_experiment(LETTERS, model="openai-codex/gpt-5.5")
    store_cells(root, make_cells(LETTERS, experiment))
    assert found(planned(root, "openai-codex/gpt-5.5"), root) == ()


def test_a_task_that_a_simulated_worker_cannot_do_is_refused_for_itself_alone(root: StateRoot) -> None:
    assert counted(found(planned(root), root, outlines=("csv_a",))) == {
        "log_a: simulated/apprentice can only do a task that has an outline.yaml": 4
    }


def test_damaged_records_are_refused_unless_they_are_to_be_set_aside(root: StateRoot) -> None:
    cells = make_cells(LETTERS)
    store_cells(root, cells)
    victims = [root.episode(stored.record.episode_key) for stored in cells[0].episodes[:2]]
    for victim in victims:
        (victim / "episode.json").write_text("{", encoding="utf-8")
    plan = planned(root)
    (refusal,) = found(plan, root)
    assert (len(refusal.episodes), refused_by_variant((refusal,))) == (2, {"base": 2})
    assert all(f"{victim}: it is not the text of a record" in refusal.reason for victim in victims)
    assert found(plan, root, refuse_damaged=False) == ()


def test_a_budget_below_one_episode_refuses_every_episode(root: StateRoot) -> None:
    assert list(counted(found(planned(root), root, budget=BudgetChoice(calls=39))).values()) == [8]
    assert found(planned(root), root, budget=BudgetChoice(calls=40)) == ()


def test_an_episode_that_is_refused_twice_is_counted_once(root: StateRoot) -> None:
    """The commonest reason comes first, each with its own count."""
    refused = found(planned(root), root, outlines=("csv_a",), budget=BudgetChoice(calls=1))
    assert refused_by_variant(refused) == {"base": 4, "hook": 4}
    first, *rest = refusal_text(refused).splitlines()
    assert first == "8 planned episodes are refused; nothing was run:"
    assert [line.split(" x ")[0].strip() for line in rest] == ["8", "4"]


def test_a_moving_model_is_refused_unless_that_is_allowed(root: StateRoot) -> None:
    """PROVIDERS 26: nobody could say tomorrow what was measured today."""
    plan = planned(root, "openrouter/auto")
    (refusal,) = found(plan, root)
    assert "role.target.model: 'openrouter/auto' leads to different models" in refusal.reason
    assert refusal.reason.endswith("allow_moving_models=true")
    tasks = {name: make_task(root.path / "again", name, "0" * 64) for name in ("csv_a", "log_a")}
    assert refusals(plan, tasks, root, BudgetChoice(), refuse_damaged=True, allow_moving=True) == ()


def test_options_that_a_model_does_not_take_are_refused_before_anything_runs(root: StateRoot) -> None:
    """PROVIDERS 20: dropped silently, they would be on record as measured."""
    experiment = make_experiment(LETTERS, model="anthropic/claude-opus-5-5")
    options = {"target": ModelOptions(temperature=0.5)}
    variants = tuple(variant.model_copy(update={"options": options}) for variant in experiment.variants)
    store = EpisodeStore(root, ManualClock(), Redactor())
    plan = make_plan(experiment.model_copy(update={"variants": variants}), list(LETTERS), 2, store)
    (refusal,) = found(plan, root)
    assert "role.target: temperature is 0.5; anthropic/claude-opus-5-5 takes no sampling parameters" in refusal.reason
