"""What is to run: the missing episodes of a growing experiment, interleaved in a fixed random order."""

from pathlib import Path

import pytest

from experiments.plan import Asked, ExperimentConflict, enroll, make_plan
from experiments.records import ExperimentRecord, episode_key
from experiments.store import EpisodeStore
from experiments.suite import OutcomeKind
from geode.canonical import content_hash
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.llm.binding import Effort, ModelOptions
from geode.redaction import Redactor
from tests.doubles.cells import AT, make_cells, make_experiment, store_cells

LETTERS = {
    "base": {"csv_a": "PFPF", "fix_a": "FFFF"},
    "hook": {"csv_a": "PPPP", "fix_a": "PF.."},
    "other": {"csv_a": "....", "fix_a": "...."},
}
NAMES = ["base", "hook", "other"]


def store_at(path: Path) -> EpisodeStore:
    return EpisodeStore(StateRoot(path), ManualClock(), Redactor())


def asked_of(record: ExperimentRecord, **changes: object) -> Asked:
    values: dict[str, object] = {key: getattr(record, key) for key in Asked.__dataclass_fields__}
    return Asked(**(values | changes))  # type: ignore[arg-type]


def test_only_what_the_store_lacks_is_planned(tmp_path: Path) -> None:
    """An episode is paid for once."""
    store, experiment = store_at(tmp_path), make_experiment(LETTERS)
    store_cells(store.root, make_cells(LETTERS, experiment))
    plan = make_plan(experiment, NAMES, 4, store)
    assert {variant.variant: variant.new for variant in plan.variants} == {"base": 0, "hook": 2, "other": 8}
    assert plan.variants[0].reused == {OutcomeKind.PASS: 2, OutcomeKind.FAIL: 6}
    assert plan.to_run == 10
    missing = {
        (block.task_id, block.repetition, episode.variant) for block in plan.blocks for episode in block.episodes
    }
    assert {row for row in missing if row[2] == "hook"} == {("fix_a", 2, "hook"), ("fix_a", 3, "hook")}


def test_more_repeats_run_only_the_new_ones_and_other_tasks_too(tmp_path: Path) -> None:
    """Raising the repeats from 4 to 6 plans two repetitions of each task and variant."""
    letters = {"base": {"csv_a": "PFPF"}, "hook": {"csv_a": "PPPP"}}
    store, experiment = store_at(tmp_path), make_experiment(letters)
    store_cells(store.root, make_cells(letters, experiment))
    plan = make_plan(experiment.model_copy(update={"repeats": 6}), ["base", "hook"], 6, store)
    assert sorted(block.repetition for block in plan.blocks) == [4, 5]
    assert plan.to_run == 4


def test_a_block_holds_every_variant_side_by_side_and_orders_differ(tmp_path: Path) -> None:
    """Drift hits all variants alike only if they run together, and none is always the first."""
    experiment = make_experiment({name: {"csv_a": "." * 40, "fix_a": "." * 40} for name in NAMES})
    plan = make_plan(experiment, NAMES, 40, store_at(tmp_path))
    assert len(plan.blocks) == 80
    assert all(sorted(episode.variant for episode in block.episodes) == NAMES for block in plan.blocks)
    first = [block.episodes[0].variant for block in plan.blocks]
    assert all(first.count(name) >= 14 for name in NAMES), "each variant comes first about 27 times in 80"
    assert [block.repetition for block in plan.blocks] != sorted(block.repetition for block in plan.blocks)
    assert len({block.task_id for block in plan.blocks[:8]}) == 2


def test_the_same_command_plans_the_same_order_and_another_name_another(tmp_path: Path) -> None:
    """A run that was killed goes on in the order that was drawn before, and no two experiments share their luck."""
    experiment = make_experiment({name: {"csv_a": "." * 20} for name in NAMES})
    plans = [make_plan(experiment, NAMES, 20, store_at(tmp_path)) for _ in range(2)]
    assert plans[0].blocks == plans[1].blocks
    renamed = make_plan(experiment.model_copy(update={"name": "other"}), NAMES, 20, store_at(tmp_path))
    assert [b.repetition for b in renamed.blocks] != [b.repetition for b in plans[0].blocks]
    assert renamed.keys == plans[0].keys, "the name is no part of an episode's key, so its episodes are shared"


def test_invalid_episodes_are_kept_unless_they_are_asked_for_again(tmp_path: Path) -> None:
    """A provider's bad day is on record, and can be made good without touching a measurement."""
    letters = {"base": {"csv_a": "PI"}}
    store, experiment = store_at(tmp_path), make_experiment(letters)
    store_cells(store.root, make_cells(letters, experiment))
    assert make_plan(experiment, ["base"], 2, store).to_run == 0
    (block,) = make_plan(experiment, ["base"], 2, store, rerun_invalid=True).blocks
    assert block.repetition == 1


def test_unfinished_and_damaged_episodes_are_told_from_new_ones(tmp_path: Path) -> None:
    """The one is run afresh without a word, the other only if the user says so."""
    letters = {"base": {"csv_a": "PPP"}}
    store, experiment = store_at(tmp_path), make_experiment(letters)
    store_cells(store.root, make_cells(letters, experiment))
    keys = make_plan(experiment, ["base"], 3, store).keys["base"]
    (store.root.episode(keys[0]) / "episode.json").unlink()
    (store.root.episode(keys[1]) / "episode.json").write_text("{}", encoding="utf-8")
    plan = make_plan(experiment, ["base"], 3, store)
    assert (plan.variants[0].unfinished, plan.variants[0].damaged, plan.variants[0].new) == (1, 1, 0)
    assert [episode.spec.episode_key for episode in plan.damaged] == [keys[1]]


def test_an_experiment_grows_by_variants_and_repeats() -> None:
    """What is on record stays; what is added comes after it."""
    small, large = make_experiment({"base": {"csv_a": "PP"}}), make_experiment({"hook": {"csv_a": "PPPP"}})
    grown = enroll(small, asked_of(large, baseline=None), created_at=AT, geode_version="9")
    assert [variant.name for variant in grown.variants] == ["base", "hook"]
    assert (grown.repeats, grown.baseline, grown.geode_version) == (4, "base", small.geode_version)
    shrunk = enroll(grown, asked_of(small, repeats=1), created_at=AT, geode_version="9")
    assert shrunk == grown, "asking for less takes nothing off the record"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"question": "Another?"}, "question: 'Which hook helps?' on record, 'Another?' asked"),
        ({"baseline": "hook"}, "baseline: 'base' on record, 'hook' asked"),
        ({"ruler": make_experiment({"base": {"csv_b": "P"}}).ruler}, "ruler, tasks: csv_b added; csv_a left out"),
        ({"ruler": make_experiment({"base": {"csv_a": "P"}}, confidence=0.9).ruler}, "confidence: 0.95 on record, 0.9"),
        ({"variants": make_experiment({"base": {"csv_a": "P"}}, model="a/b").variants}, "variant 'base'"),
    ],
)
def test_another_ruler_or_meaning_under_the_same_name_is_refused(changes: dict[str, object], named: str) -> None:
    """Two results may be compared only under one ruler, so a name stands for one."""
    record = make_experiment({"base": {"csv_a": "P"}})
    with pytest.raises(ExperimentConflict) as refusal:
        enroll(record, asked_of(record, **changes), created_at=AT, geode_version="9")
    assert named in str(refusal.value)
    assert "name=..." in str(refusal.value)


def test_a_baseline_that_is_no_variant_is_refused_with_the_nearest() -> None:
    """Found before the first episode, not in the comparison."""
    record = make_experiment({"base": {"csv_a": "P"}})
    with pytest.raises(ExperimentConflict, match="did you mean 'base'"):
        enroll(None, asked_of(record, baseline="basse"), created_at=AT, geode_version="9")


def test_how_a_model_is_asked_is_part_of_the_key_only_if_it_is_said() -> None:
    """Episodes on record keep their names; another effort is another episode."""
    experiment = make_experiment({"base": {"csv_a": "."}})
    variant, task = experiment.variants[0], experiment.ruler.tasks[0]

    def key(options: dict[str, ModelOptions]) -> str:
        return episode_key(variant.model_copy(update={"options": options}), task, 0, 0, experiment.ruler.caps)

    plain = {
        "scaffold": variant.scaffold_id,
        "task": task.task_hash,
        "roles": variant.roles,
        "seed": 0,
        "repetition": 0,
        "caps": experiment.ruler.caps.caps_hash,
    }
    assert key({}) == content_hash(plain)
    low, high = ({"target": ModelOptions(effort=effort)} for effort in (Effort.LOW, Effort.HIGH))
    assert len({key({}), key(low), key(high)}) == 3


def test_a_variant_whose_model_is_asked_otherwise_is_another_one() -> None:
    """Under the same name it would mix two things that were measured."""
    record = make_experiment({"base": {"csv_a": "."}})
    other = record.variants[0].model_copy(update={"options": {"target": ModelOptions(max_output_tokens=9)}})
    asked = Asked(
        name=record.name, question="", baseline=None, variants=(other,), ruler=record.ruler, repeats=record.repeats
    )
    with pytest.raises(ExperimentConflict, match=r"variant 'base': .*max_output_tokens': 9"):
        enroll(record, asked, created_at=record.created_at, geode_version="1")
