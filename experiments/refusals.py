"""Episodes of a plan that may not run as things stand: all of them with their reasons, not the first one only."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments.budget import too_small
from experiments.plan import EpisodeSpec, Plan, PlannedEpisode
from experiments.run_spec import BudgetChoice
from experiments.suite import Task
from geode.config.paths import StateRoot
from geode.llm.admission import check_options, check_registered, check_role
from geode.llm.errors import ConfigurationError
from geode.llm.routes import parse_model
from geode.llm.spending import is_billed

_SHOWN = 10  # reasons, or folders of one; a thousand say no more than ten


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why episodes are refused. One episode may be refused for several reasons."""

    reason: str
    episodes: tuple[PlannedEpisode, ...]


def refusals(
    plan: Plan,
    tasks: Mapping[str, Task],
    root: StateRoot,
    budget: BudgetChoice,
    *,
    refuse_damaged: bool,
    allow_moving: bool = False,
) -> tuple[Refusal, ...]:
    """Return why episodes of `plan` that are to run may not; empty if the plan can run."""
    episodes = [episode for block in plan.blocks for episode in block.episodes]
    found: dict[str, list[PlannedEpisode]] = {}
    for episode in episodes:
        for reason in (
            *_of_roles(episode.spec, allow_moving=allow_moving),
            *_of_task(tasks[episode.spec.task_id], episode.spec.roles),
        ):
            found.setdefault(reason, []).append(episode)
    if plan.damaged and refuse_damaged:
        found[_damage(plan.damaged, root)] = list(plan.damaged)
    for episode in episodes:
        if too_costly := too_small(budget, episode.spec):
            found.setdefault(too_costly, []).append(episode)
    return tuple(Refusal(reason=reason, episodes=tuple(refused)) for reason, refused in found.items())


def refused_by_variant(refusals: Iterable[Refusal]) -> Mapping[str, int]:
    """Count the episodes of each variant that are refused, each once."""
    variants = {e.spec.episode_key: e.variant for refusal in refusals for e in refusal.episodes}
    counts: dict[str, int] = {}
    for variant in variants.values():
        counts[variant] = counts.get(variant, 0) + 1
    return counts


def refusal_text(refusals: Sequence[Refusal]) -> str:
    """Say what is refused and why, the commonest reason first."""
    ordered = sorted(refusals, key=lambda refusal: -len(refusal.episodes))
    count = sum(refused_by_variant(refusals).values())
    lines = [f"  {len(refusal.episodes)} x {refusal.reason}" for refusal in ordered[:_SHOWN]]
    if more := len(ordered) - len(lines):
        lines.append(f"  and {more} reasons more")
    return "\n".join([f"{count} planned episodes are refused; nothing was run:", *lines])


def why_unplayable(task: Task, model: str) -> str | None:
    """Say why a simulated worker would fail a task for no reason of the scaffold's; None if it can do it."""
    if not model.startswith("simulated/") or task.outline is not None:
        return None
    return (
        f"{task.task_id}: {model} can only do a task that has an outline.yaml; write one for it, or leave the task out"
        " with suite.tasks=[...]"
    )


def _of_task(task: Task, roles: Mapping[str, str]) -> Iterator[str]:
    if reason := why_unplayable(task, roles["target"]):
        yield reason


def _of_roles(spec: EpisodeSpec, *, allow_moving: bool) -> Iterator[str]:
    for role, model in spec.roles.items():
        try:
            check_role(role, model)
        except ConfigurationError as error:
            yield f"role.{role}.model: {error}"
            continue
        try:
            check_registered(model, allow_moving=allow_moving)
        except ConfigurationError as error:
            yield f"role.{role}.model: {error}: allow_moving_models=true"
        if role in spec.options and is_billed(model):
            try:
                check_options(parse_model(model), spec.options[role])
            except ConfigurationError as error:
                yield f"role.{role}: {error}"


def _damage(damaged: Sequence[PlannedEpisode], root: StateRoot) -> str:
    folders = [f"    {root.episode(e.spec.episode_key)}: {e.state.problem}" for e in damaged[:_SHOWN]]
    more = len(damaged) - len(folders)
    return "\n".join(
        [
            "damaged episode.json; restore it from a copy, or add damaged=set_aside to move it away and run it afresh:",
            *folders,
            *([f"    and {more} more"] if more else []),
        ]
    )
