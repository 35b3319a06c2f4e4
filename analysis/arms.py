"""Variants of several experiments as logs: paired by task, seed and repetition, but not run side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.compare import SIMULATED_NOTE
from analysis.foreign import OWN_HARNESS, AttemptFacts, ForeignRun, LogsRefused, Unit, told, total
from experiments.episode import EpisodeRecord, RoleUsage
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

    They do if one has a colon, which no name has, or if all are experiments and a later one is no variant of the first.
    """
    if any(_SEPARATOR in text for text in texts):
        return True
    if len(texts) < 2 or not set(texts) <= set(experiments):
        return False
    return not set(texts[1:]) <= {variant.name for variant in read_experiment(root, texts[0]).variants}


def read_arms(root: StateRoot, arms: Sequence[Arm]) -> tuple[ForeignRun, ...]:
    """Read all, the first being the baseline. A task that changed since then is another task, and pairs with nothing.

    Raises:
        StoreError: if an experiment is not there, or a record cannot be read.
        LogsRefused: if a variant is not there, or is of the first one's experiment, which has a better comparison.
    """
    cells = [_cell(root, arm) for arm in arms]
    for arm, cell in zip(arms[1:], cells[1:], strict=True):
        if arm.experiment == arms[0].experiment:
            raise LogsRefused(
                f"both are of {arm.experiment!r}, where they ran side by side:"
                f" geode compare {arm.experiment} {cell.variant.name} --baseline {cells[0].variant.name}"
            )
    hashes = [{task.task_id: task.task_hash for task in cell.experiment.ruler.tasks} for cell in cells]
    changed = {task for later in hashes[1:] for task, found in later.items() if hashes[0].get(task, found) != found}
    return tuple(_run(cell, changed) for cell in cells)


def _cell(root: StateRoot, arm: Arm) -> Cell:
    experiment = read_experiment(root, arm.experiment)
    names = [variant.name for variant in experiment.variants]
    name = arm.variant or experiment.baseline
    if name not in names:
        raise LogsRefused(f"no variant {name!r} in {arm.experiment!r}{nearest(name, names)}")
    return load_cell(root, experiment, experiment.variant(name))


def _run(cell: Cell, changed: set[str]) -> ForeignRun:
    ruler, variant = cell.experiment.ruler, cell.variant
    records = {_unit(stored.record, changed): stored.record for stored in cell.episodes}
    planned = len(ruler.tasks) * len(ruler.seeds) * cell.experiment.repeats
    notes = [f"{planned - len(records)} of {planned} episodes have not run"] if len(records) < planned else []
    if simulated := sorted({record.roles["target"] for record in records.values() if record.simulated}):
        notes.append(f"{SIMULATED_NOTE} ({', '.join(simulated)})")
    return ForeignRun(
        name=f"{cell.experiment.name}{_SEPARATOR}{variant.name}",
        harness=OWN_HARNESS,
        subject=f"scaffold {variant.scaffold_id}, {variant.roles.get('target', 'no target')}",
        ruler={
            "suite": ruler.suite,
            "caps": ruler.caps.model_dump_json(),
            "roles beside the target": ", ".join(f"{r} {m}" for r, m in sorted(variant.roles.items()) if r != "target"),
        },
        surroundings={"version of GEODE": told(record.geode_version for record in records.values())},
        attempts={unit: _facts(record) for unit, record in records.items()},
        values={"pass": {unit: _VALUES[record.outcome.kind] for unit, record in records.items()}},
        passes_and_failures=True,
        families={unit.task: record.family for unit, record in records.items()},
        notes=tuple(notes),
    )


def _unit(record: EpisodeRecord, changed: set[str]) -> Unit:
    task = f"{record.task_id}@{record.task_hash[:8]}" if record.task_id in changed else record.task_id
    return Unit(task, f"seed {record.seed}, repetition {record.repetition}")


def _facts(record: EpisodeRecord) -> AttemptFacts:
    target = record.usage.get("target")
    return AttemptFacts(
        identity=record.episode_key,
        shown_as=record.episode_key,
        invalid="; ".join(record.outcome.reasons) if record.outcome.kind is OutcomeKind.INVALID else None,
        started_at=record.started_at,
        wall_s=record.wall_s,
        tokens=None if target is None else _tokens(target),
        other_tokens=total(_tokens(usage) for role, usage in record.usage.items() if role != "target"),
        cost_usd=None if target is None else target.cost_usd,
        turns=record.rounds,
        tool_calls=record.tool_calls,
        tool_errors=record.tool_errors,
        repairs=record.repairs_used,
    )


def _tokens(usage: RoleUsage) -> int:
    kinds = (usage.uncached_input_tokens, usage.cache_write_tokens, usage.cache_read_tokens, usage.output_tokens)
    return sum(kinds)
