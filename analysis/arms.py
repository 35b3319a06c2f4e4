"""Variants of two experiments as two logs: paired by task, seed and repetition, but not run side by side."""

from dataclasses import dataclass, replace

from analysis.foreign import ForeignRun, LogsRefused, Unit
from experiments.overrides import nearest
from experiments.sinks import Cell
from experiments.store import load_cell, read_experiment
from experiments.suite import OutcomeKind
from geode.config.paths import StateRoot

_VALUES = {OutcomeKind.PASS: 1.0, OutcomeKind.FAIL: 0.0, OutcomeKind.INVALID: None}
_SEPARATOR = ":"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A variant of an experiment, as a command names it: `EXPERIMENT:VARIANT`. Without a variant, its baseline."""

    experiment: str
    variant: str | None


def parse_arm(text: str) -> Arm:
    """Read `EXPERIMENT` or `EXPERIMENT:VARIANT`."""
    experiment, _, variant = text.partition(_SEPARATOR)
    return Arm(experiment=experiment, variant=variant or None)


def names_arms(root: StateRoot, texts: list[str], experiments: tuple[str, ...]) -> bool:
    """Say whether a command's arguments name arms to compare, and not an experiment with some of its variants.

    They do if one has a colon, which no name has, or if the second is an experiment and no variant of the first.
    """
    if any(_SEPARATOR in text for text in texts):
        return True
    if len(texts) != 2 or not set(texts) <= set(experiments):
        return False
    return texts[1] not in [variant.name for variant in read_experiment(root, texts[0]).variants]


def read_arms(root: StateRoot, first: Arm, second: Arm) -> tuple[ForeignRun, ForeignRun]:
    """Read both. A task that changed between them is two tasks, and pairs with nothing.

    Raises:
        StoreError: if an experiment is not there, or a record cannot be read.
        LogsRefused: if a variant is not there, or both are of one experiment, which has a better comparison.
    """
    cells = [_cell(root, arm) for arm in (first, second)]
    if first.experiment == second.experiment:
        names = [cell.variant.name for cell in cells]
        raise LogsRefused(
            f"both are of {first.experiment!r}, where they ran side by side:"
            f" geode compare {first.experiment} {names[1]} --baseline {names[0]}"
        )
    hashes = [{task.task_id: task.task_hash for task in cell.experiment.ruler.tasks} for cell in cells]
    changed = {task for task in hashes[0].keys() & hashes[1].keys() if hashes[0][task] != hashes[1][task]}
    runs = [_run(cell, changed) for cell in cells]
    keys = [{stored.record.episode_key for stored in cell.episodes} for cell in cells]
    if shared := len(keys[0] & keys[1]):
        note = (
            f"{shared} of its {len(keys[1])} episodes are the very ones of A: their difference is zero by construction"
        )
        runs[1] = replace(runs[1], notes=(*runs[1].notes, note))
    return runs[0], runs[1]


def _cell(root: StateRoot, arm: Arm) -> Cell:
    experiment = read_experiment(root, arm.experiment)
    names = [variant.name for variant in experiment.variants]
    name = arm.variant or experiment.baseline
    if name not in names:
        raise LogsRefused(f"no variant {name!r} in {arm.experiment!r}{nearest(name, names)}")
    return load_cell(root, experiment, experiment.variant(name))


def _run(cell: Cell, changed: set[str]) -> ForeignRun:
    ruler, variant = cell.experiment.ruler, cell.variant
    values: dict[Unit, float | None] = {}
    for stored in cell.episodes:
        record = stored.record
        task = f"{record.task_id}@{record.task_hash[:8]}" if record.task_id in changed else record.task_id
        values[Unit(task, f"seed {record.seed}, repetition {record.repetition}")] = _VALUES[record.outcome.kind]
    planned = len(ruler.tasks) * len(ruler.seeds) * cell.experiment.repeats
    notes = [f"{planned - len(values)} of {planned} episodes have not run"] if len(values) < planned else []
    if simulated := sorted({stored.record.roles["target"] for stored in cell.episodes if stored.record.simulated}):
        notes.append(f"simulated: says nothing about a language model ({', '.join(simulated)})")
    return ForeignRun(
        name=f"{cell.experiment.name}{_SEPARATOR}{variant.name}",
        harness="geode",
        subject=f"scaffold {variant.scaffold_id}, {variant.roles.get('target', 'no target')}",
        ruler={
            "suite": ruler.suite,
            "caps": ruler.caps.model_dump_json(),
            "roles beside the target": ", ".join(f"{r} {m}" for r, m in sorted(variant.roles.items()) if r != "target"),
        },
        units=tuple(values),
        values={"pass": values},
        notes=tuple(notes),
    )
