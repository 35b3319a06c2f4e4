"""A sweep of a calibration is a sweep of the product, and keeps what it showed."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.calibration import sweeps
from experiments.calibration.served import ServedByWeather
from experiments.calibration.study import Study
from experiments.calibration.sweeps import Arrangement, Sweep, run_sweep
from experiments.calibration.weather import Sky, Weather
from experiments.plan import make_plan
from experiments.run_episode import EpisodeParts, run_episode
from experiments.store import EpisodeStore
from experiments.suites.loader import load_suite
from geode.clock import SystemClock
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.redaction import Redactor
from geode.serve.services import SharedServices


def one_sweep(study: Study, scratch: Path, number: int = 0) -> Sweep:
    return run_sweep(list(study.jobs(set(), scratch))[number])


@pytest.mark.slow
def test_a_sweep_runs_every_episode_and_leaves_no_folder(planned: tuple[Study, ...], tmp_path: Path) -> None:
    """Two hundred sweeps of five hundred episodes would fill a disk."""
    seen = one_sweep(planned[0], tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert seen.arms == ("baseline", "expert", "breath")
    assert [task.task_id for task in seen.tasks] == ["config_port", "csv_totals"]
    assert all(len(block) == 3 and set(block) <= set("PFI") for task in seen.tasks for block in task.blocks)
    assert sorted(seen.order) == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.slow
def test_a_sweep_is_a_function_of_its_seed_and_no_two_share_one(planned: tuple[Study, ...], tmp_path: Path) -> None:
    """A resumed calibration must be the one that was stopped; independent sweeps are what the interval counts."""
    first, again, second = (one_sweep(planned[0], tmp_path, number) for number in (0, 0, 1))
    assert first == again
    assert first.order != second.order or first.tasks != second.tasks
    seeds = [job.experiment.ruler.seeds for study in planned for job in study.jobs(set(), tmp_path)]
    assert len(set(seeds)) == len(seeds)


def test_what_was_kept_is_what_the_gate_reads() -> None:
    """Letters are for the file only."""
    task = '{"task_id": "t", "family": "f", "blocks": ["PF", "IP"]}'
    sweep = Sweep.model_validate_json(
        f'{{"number": 4, "arms": ["b", "c"], "tasks": [{task}], "order": [[0, 1], [0, 0]]}}'
    )
    evidence = sweep.evidence()
    assert evidence.outcomes(1) == ["FAIL", "PASS"]
    assert Sweep.of(4, evidence, sweep.order) == sweep


def test_without_interleaving_one_variant_runs_after_the_other(planned: tuple[Study, ...], tmp_path: Path) -> None:
    """In an order by chance, so that the baseline is the first in some sweeps and the last in others."""
    experiment = planned[0].experiment
    store = EpisodeStore(StateRoot(tmp_path), SystemClock(), Redactor())
    names = [variant.name for variant in experiment.variants]
    plan = make_plan(experiment, names, experiment.repeats, store)
    blocks = [episode.variant for block in plan.blocks for episode in block.episodes]
    assert [one.variant for one in sweeps._in_order(plan, Arrangement.INTERLEAVED, 1)] == blocks
    first = set()
    for seed in range(20):
        turns = [one.variant for one in sweeps._in_order(plan, Arrangement.ONE_AFTER_ANOTHER, seed)]
        assert turns == [name for name in dict.fromkeys(turns) for _ in range(4)]
        first.add(turns[0])
    assert first == set(names)


@pytest.mark.slow
async def test_the_sky_decides_who_serves_an_episode(planned: tuple[Study, ...], tmp_path: Path) -> None:
    """Through the production loop: a faultless model passes, one that only looks around fails, nonsense is INVALID."""
    skies = [Sky.STRONG, Sky.WEAK, Sky.BROKEN] * 2
    settings = Settings(root=StateRoot(tmp_path), tracking_uri=None, environment={})
    clock = SystemClock()
    store = EpisodeStore(settings.root, clock, Redactor())
    plan = make_plan(planned[1].experiment, ["baseline", "all_three"], 2, store)
    opener = ServedByWeather(SharedServices(settings, clock), iter(skies))
    tasks = {task.task_id: task for task in load_suite("workspace").tasks}
    outcomes = []
    for episode in [episode for block in plan.blocks for episode in block.episodes][: len(skies)]:
        spec = episode.spec
        folder = store.begin(spec.episode_key, {})
        parts = EpisodeParts(root=settings.root, opener=opener, clock=clock)
        record = await run_episode(parts, spec, tasks[spec.task_id], folder)
        outcomes.append(record.outcome.kind.value)
    assert outcomes == ["PASS", "FAIL", "INVALID"] * 2


def test_another_question_has_another_name_on_record(planned: tuple[Study, ...]) -> None:
    """Sweeps on record are taken only for what they were measured for."""
    study = planned[0]
    others = [
        replace(study, weather=Weather()),
        replace(study, arrangement=Arrangement.ONE_AFTER_ANOTHER),
        replace(study, first_seed=study.first_seed + 1),
        replace(study, experiment=study.experiment.model_copy(update={"repeats": 3})),
    ]
    assert len({one.study_id for one in (study, *planned[1:], *others)}) == 7
    assert replace(study, sweeps=99).study_id == study.study_id, "it may grow"
