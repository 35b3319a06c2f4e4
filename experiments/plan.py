"""What is to run: a growing experiment, its episodes minus those that exist, and blocks that interleave them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from experiments.overrides import nearest
from experiments.records import Caps, ExperimentRecord, Ruler, TaskRef, Variant, episode_key
from experiments.store import EpisodeState, EpisodeStore
from experiments.suite import OutcomeKind
from geode.llm.binding import ModelOptions
from geode.scaffold import Scaffold


class ExperimentConflict(ValueError):  # noqa: N818  (named by what is wrong)
    """An experiment of this name is on record and cannot grow into the one that is asked for."""


class EpisodeSpec(BaseModel):
    """The resolved configuration of one episode, as `spec.yaml` holds it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["geode.episode_spec/1"] = Field(default="geode.episode_spec/1", alias="schema")
    episode_key: str
    scaffold_id: str
    suite: str
    task_id: str
    family: str
    task_hash: str
    seed: int
    repetition: int
    roles: dict[str, str]
    options: dict[str, ModelOptions] = {}
    caps: Caps
    scaffold: Scaffold


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one command asks of an experiment. Without a baseline it keeps the one on record, or takes the first."""

    name: str
    question: str
    baseline: str | None
    variants: tuple[Variant, ...]
    ruler: Ruler
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEpisode:
    """An episode and the variant for which it is planned. `state` says what the store holds of it."""

    variant: str
    spec: EpisodeSpec
    state: EpisodeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One task, seed and repetition with every variant whose episode is missing, in random order."""

    task_id: str
    seed: int
    repetition: int
    episodes: tuple[PlannedEpisode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPlan:
    """How many episodes of a variant run, and how many are on record. `reused` has the outcomes of the latter."""

    variant: str
    new: int
    unfinished: int
    damaged: int
    reused: Mapping[OutcomeKind, int]

    @property
    def total(self) -> int:
        """All episodes of the variant under this plan."""
        return self.new + self.unfinished + self.damaged + sum(self.reused.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one command runs. `keys` are all its episodes by variant, finished ones too."""

    experiment: ExperimentRecord
    variants: tuple[VariantPlan, ...]
    blocks: tuple[Block, ...]
    keys: Mapping[str, tuple[str, ...]]

    @property
    def to_run(self) -> int:
        """How many episodes run."""
        return sum(len(block.episodes) for block in self.blocks)

    @property
    def damaged(self) -> tuple[PlannedEpisode, ...]:
        """Planned episodes whose record in the store cannot be used."""
        return tuple(e for block in self.blocks for e in block.episodes if e.state.kind == "damaged")


def enroll(
    on_record: ExperimentRecord | None, asked: Asked, *, created_at: datetime, geode_version: str
) -> ExperimentRecord:
    """Return the experiment on record, grown by the variants and repeats that are asked for, or a new one.

    Raises:
        ExperimentConflict: if the ruler, the baseline, the question or a variant of the same name differs.
    """
    if on_record is None:
        known = [variant.name for variant in asked.variants]
        if asked.baseline is not None and asked.baseline not in known:
            raise ExperimentConflict(
                f"baseline: there is no variant {asked.baseline!r}{nearest(asked.baseline, known)}"
            )
        return ExperimentRecord(
            name=asked.name,
            question=asked.question,
            baseline=asked.baseline or known[0],
            variants=asked.variants,
            ruler=asked.ruler,
            repeats=asked.repeats,
            created_at=created_at,
            geode_version=geode_version,
        )
    if differences := list(_differences(asked, on_record)):
        raise ExperimentConflict(
            f"the experiment {on_record.name!r} is on record, and what is asked differs from it:\n  "
            + "\n  ".join(differences)
            + "\nan experiment grows by variants and repeats only; give this one another name: name=..."
        )
    known = [variant.name for variant in on_record.variants]
    added = tuple(variant for variant in asked.variants if variant.name not in known)
    repeats = max(on_record.repeats, asked.repeats)
    return on_record.model_copy(update={"variants": (*on_record.variants, *added), "repeats": repeats})


def _differences(asked: Asked, on_record: ExperimentRecord) -> Iterator[str]:
    for key in Ruler.model_fields:
        new, old = getattr(asked.ruler, key), getattr(on_record.ruler, key)
        if new != old and key == "tasks":
            yield f"ruler, tasks: {_task_changes(new, old)}"
        elif new != old:
            yield f"ruler, {key}: {old} on record, {new} asked"
    for key in ("question", "baseline"):
        new, old = getattr(asked, key), getattr(on_record, key)
        if new and new != old:
            yield f"{key}: {old!r} on record, {new!r} asked"
    for variant in asked.variants:
        known = next((old for old in on_record.variants if old.name == variant.name), None)
        if known is not None and identity(known) != identity(variant):
            yield (
                f"variant {variant.name!r}: scaffold {known.scaffold_id} with {_asked_so(known)} on record,"
                f" {variant.scaffold_id} with {_asked_so(variant)} asked"
                f"{_code_changes(variant.scaffold, known.scaffold)}"
            )


def identity(variant: Variant) -> tuple[str, dict[str, str], dict[str, ModelOptions]]:
    """Return what makes a variant another one, whatever it is called."""
    return variant.scaffold_id, variant.roles, variant.options


def _asked_so(variant: Variant) -> str:
    options = {role: each.model_dump(mode="json", exclude_defaults=True) for role, each in variant.options.items()}
    return f"{variant.roles} ({options})" if options else str(variant.roles)


def _code_changes(new: Scaffold, old: Scaffold) -> str:
    was = {hook.name: hook.code for hook in old.hooks}
    changed = sorted(hook.name for hook in new.hooks if hook.name in was and was[hook.name] != hook.code)
    return f"; the code of the hook {', '.join(changed)} has changed" if changed else ""


def _task_changes(new: Sequence[TaskRef], old: Sequence[TaskRef]) -> str:
    was = {task.task_id: task.task_hash for task in old}
    now = {task.task_id: task.task_hash for task in new}
    changed = sorted(name for name in was.keys() & now.keys() if was[name] != now[name])
    parts = {"added": sorted(now.keys() - was.keys()), "left out": sorted(was.keys() - now.keys()), "changed": changed}
    return "; ".join(f"{', '.join(names)} {what}" for what, names in parts.items() if names) or "another order"


def make_plan(
    experiment: ExperimentRecord,
    variants: Sequence[str],
    repeats: int,
    store: EpisodeStore,
    *,
    rerun_invalid: bool = False,
) -> Plan:
    """Plan the episodes of `variants`: what the store has is reused, the rest goes into blocks.

    The order of blocks, and of the variants in a block, is random, and a function of the experiment's name, its ruler
    and the block: the same command plans the same order, and a block keeps its place when the experiment grows.
    """
    wanted = [experiment.variant(name) for name in variants]
    counts = {name: dict.fromkeys(("new", "unfinished", "damaged"), 0) for name in variants}
    reused: dict[str, dict[OutcomeKind, int]] = {name: {} for name in variants}
    keys: dict[str, list[str]] = {name: [] for name in variants}
    drawn: list[tuple[float, Block]] = []
    for task in experiment.ruler.tasks:
        for seed, repetition in ((s, r) for s in experiment.ruler.seeds for r in range(repeats)):
            draw = random.Random(  # noqa: S311  (the order of work, no secret)
                f"{experiment.name}/{experiment.ruler.ruler_id}/{task.task_id}/{seed}/{repetition}"
            )
            place = draw.random()
            missing = []
            for variant in draw.sample(sorted(wanted, key=lambda v: v.name), len(wanted)):
                key = episode_key(variant, task, seed, repetition, experiment.ruler.caps)
                keys[variant.name].append(key)
                state = store.look(key)
                if state.record is not None:
                    kind = state.record.outcome.kind
                    if not (rerun_invalid and kind is OutcomeKind.INVALID):
                        reused[variant.name][kind] = reused[variant.name].get(kind, 0) + 1
                        continue
                counts[variant.name]["new" if state.kind == "done" else state.kind] += 1
                spec = _episode_spec(key, experiment, variant, task, seed=seed, repetition=repetition)
                missing.append(PlannedEpisode(variant=variant.name, spec=spec, state=state))
            if missing:
                block = Block(task_id=task.task_id, seed=seed, repetition=repetition, episodes=tuple(missing))
                drawn.append((place, block))
    drawn.sort(key=lambda pair: pair[0])
    return Plan(
        experiment=experiment,
        variants=tuple(VariantPlan(variant=name, reused=reused[name], **counts[name]) for name in variants),
        blocks=tuple(block for _, block in drawn),
        keys={name: tuple(found) for name, found in keys.items()},
    )


def _episode_spec(
    key: str, experiment: ExperimentRecord, variant: Variant, task: TaskRef, *, seed: int, repetition: int
) -> EpisodeSpec:
    return EpisodeSpec(
        episode_key=key,
        scaffold_id=variant.scaffold_id,
        suite=experiment.ruler.suite,
        task_id=task.task_id,
        family=task.family,
        task_hash=task.task_hash,
        seed=seed,
        repetition=repetition,
        roles=variant.roles,
        options=variant.options,
        caps=experiment.ruler.caps,
        scaffold=variant.scaffold,
    )
