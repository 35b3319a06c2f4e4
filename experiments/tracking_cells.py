"""What a cell says of itself in MLflow: the same figures in every cell, and only what can differ as params."""

import json
from collections.abc import Sequence

from experiments.episode import EpisodeRecord
from experiments.records import ExperimentRecord, Variant
from experiments.sinks import StoredEpisode
from experiments.suite import OutcomeKind
from geode.llm.binding import ModelOptions
from geode.scaffold import HookChoice, PromptSource

SIZE_TAGS = ("geode.repeats", "geode.variants")
"""Those of the experiment's tags that change when it grows."""


def cell_key(experiment: ExperimentRecord, variant: Variant) -> str:
    """Name a cell, as the tag that its run is found by."""
    return f"{experiment.name}/{variant.name}/{variant.scaffold_id}"


def headline_metrics(episodes: Sequence[StoredEpisode]) -> dict[str, float]:
    """Return the figures that every cell has under the same names, those that decide first.

    `pass_rate` is over the episodes that measured something, and missing if none did; `..._per_episode` is over all.
    """
    records = [episode.record for episode in episodes]
    counts = {kind: sum(record.outcome.kind is kind for record in records) for kind in OutcomeKind}
    passes, failures = counts[OutcomeKind.PASS], counts[OutcomeKind.FAIL]
    metrics: dict[str, float] = {"pass_rate": passes / (passes + failures)} if passes + failures else {}
    metrics |= {
        "passes": passes,
        "failures": failures,
        "invalid": counts[OutcomeKind.INVALID],
        "episodes": len(records),
    }
    usages = [usage for record in records for usage in record.usage.values()]
    totals = {
        "tokens_in": sum(
            usage.uncached_input_tokens + usage.cache_write_tokens + usage.cache_read_tokens for usage in usages
        ),
        "tokens_out": sum(usage.output_tokens for usage in usages),
        "latency_s": sum(usage.latency_ms for usage in usages) / 1000,
        "rounds": sum(record.rounds for record in records),
        "tool_calls": sum(record.tool_calls for record in records),
        "tool_errors": sum(record.tool_errors for record in records),
        "refused_calls": sum(record.refused_calls for record in records),
        "repairs": sum(record.repairs_used for record in records),
        "verified": sum(record.verified for record in records),
        "wall_s": sum(record.wall_s for record in records),
    }
    costs = [record.known_cost_usd for record in records]
    if None not in costs:
        totals["cost_usd"] = sum(cost for cost in costs if cost is not None)
    metrics |= _role_metrics(records)
    return metrics | {f"{name}_per_episode": total / len(records) for name, total in totals.items() if records}


def _role_metrics(records: Sequence[EpisodeRecord]) -> dict[str, float]:
    """Return what each role used in all episodes. A cost of which a part is not known is none, and never 0."""
    metrics: dict[str, float] = {}
    for role in sorted({role for record in records for role in record.usage}):
        usages = [record.usage[role] for record in records if role in record.usage]
        cost, unpriced = sum(usage.cost_usd for usage in usages), sum(usage.unpriced_calls for usage in usages)
        if unpriced:
            metrics |= {f"unpriced_calls.{role}": unpriced, f"cost_usd_known.{role}": cost}
        else:
            metrics[f"cost_usd.{role}"] = cost
        read = sum(usage.cache_read_tokens for usage in usages)
        metrics |= {
            f"tokens.{role}.input": read + sum(u.uncached_input_tokens + u.cache_write_tokens for u in usages),
            f"tokens.{role}.cached": read,
            f"tokens.{role}.output": sum(usage.output_tokens for usage in usages),
            f"tokens.{role}.reasoning": sum(usage.reasoning_tokens for usage in usages),
        }
    return metrics


def cell_params(experiment: ExperimentRecord, variant: Variant) -> dict[str, str]:
    """Return what may differ between the cells of an experiment and cannot change for one of them."""
    scaffold = variant.scaffold
    return {
        "variant": variant.name,
        "scaffold_id": variant.scaffold_id,
        "suite": experiment.ruler.suite,
        "hooks": ", ".join(map(_hook, scaffold.hooks)) or "none",
        "prompt": ", ".join(map(_source, scaffold.prompt)) or "none",
        "tools": ", ".join(tool.name for tool in scaffold.tools.tools) or "none",
        "repair_budget": str(scaffold.repair.per_prompt),
        **{f"model.{role}": model for role, model in sorted(variant.roles.items())},
        **{f"options.{role}": _options(options) for role, options in sorted(variant.options.items())},
    }


def cell_tags(experiment: ExperimentRecord, variant: Variant) -> dict[str, str]:
    """Return what describes a cell and may change as its experiment grows."""
    return {
        "geode.overrides": " ".join(variant.overrides) or "none",
        "geode.repeats": str(experiment.repeats),
        "geode.ruler": experiment.ruler.ruler_id,
        "geode.simulated": "yes" if any(model.startswith("simulated/") for model in variant.roles.values()) else "no",
    }


def experiment_tags(experiment: ExperimentRecord) -> dict[str, str]:
    """Return what describes the experiment's own run. More tasks or repeats make it another ruler."""
    ruler = experiment.ruler
    return {
        "geode.question": experiment.question,
        "geode.baseline": experiment.baseline,
        "geode.ruler": ruler.ruler_id,
        "geode.rule": ruler.rule,
        "geode.suite": ruler.suite,
        "geode.tasks": str(len(ruler.tasks)),
        "geode.families": str(len({task.family for task in ruler.tasks})),
        "geode.seeds": ", ".join(map(str, ruler.seeds)),
        "geode.repeats": str(experiment.repeats),
        "geode.variants": str(len(experiment.variants)),
        "geode.version": experiment.geode_version,
    }


def _options(options: ModelOptions) -> str:
    return json.dumps(options.model_dump(mode="json", exclude_defaults=True), sort_keys=True)


def _source(source: PromptSource) -> str:
    # Inline sources share one origin; the length tells most of them apart, and `scaffold_id` all of them.
    return f"{source.origin} ({len(source.text)} characters)"


def _hook(hook: HookChoice) -> str:
    return f"{hook.name} {json.dumps(hook.options, sort_keys=True)}" if hook.options else hook.name
