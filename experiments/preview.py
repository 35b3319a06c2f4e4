"""What `--plan` shows before anything is launched, for a person and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from experiments.budget import Amount
from experiments.detectable import TARGETS, Detectable
from experiments.forecast import Forecast, Range
from experiments.plan import Plan
from experiments.power import POWER, REPEATS_MAX
from experiments.refusals import Refusal, refused_by_variant
from experiments.report import counts_to_json
from experiments.run_spec import BudgetChoice
from experiments.stats import FAMILIES_NEEDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A plan, and what is known before it runs. `detectable` is None if nothing is compared."""

    plan: Plan
    refusals: tuple[Refusal, ...]
    budget: BudgetChoice
    forecast: Forecast
    detectable: Detectable | None


def preview_to_json(preview: Preview) -> dict[str, JsonValue]:
    """Return the preview as JSON values. Shares are in [-1, 1]; null is unknown or, for a difference, none."""
    plan, refused = preview.plan, refused_by_variant(preview.refusals)
    variants: dict[str, JsonValue] = {
        variant.variant: {
            "total": variant.total,
            "new": variant.new,
            "unfinished": variant.unfinished,
            "damaged": variant.damaged,
            "refused": refused.get(variant.variant, 0),
            "reused": counts_to_json(variant.reused),
        }
        for variant in plan.variants
    }
    return {
        "schema": "geode.plan/1",
        "experiment": plan.experiment.name,
        "ruler_id": plan.experiment.ruler.ruler_id,
        "blocks": len(plan.blocks),
        "to_run": plan.to_run,
        "variants": variants,
        "refused": [{"reason": r.reason, "episodes": len(r.episodes)} for r in preview.refusals],
        "budget": preview.budget.model_dump(mode="json"),
        "forecast": _forecast_to_json(preview.forecast),
        "detectable": detectable_to_json(preview.detectable) if preview.detectable else None,
    }


def _forecast_to_json(found: Forecast) -> dict[str, JsonValue]:
    ranges: dict[str, JsonValue] = {
        key: asdict(value) if value else None
        for key, value in (
            ("cost_usd", found.cost_usd),
            ("calls", found.calls),
            ("tokens", found.tokens),
            ("seconds", found.seconds),
        )
    }
    return {
        "episodes": found.episodes,
        "from_past_of_same_task": found.same_task,
        "from_past_of_other_tasks": found.other_tasks,
        "past_episodes": found.past,
        **ranges,
        "at_most": {"cost_usd": float(found.most.cost_usd), "calls": found.most.calls},
        "unpriced": list(found.unpriced),
        "simulated": found.simulated,
    }


def detectable_to_json(found: Detectable) -> dict[str, JsonValue]:
    """Return what can be detected as JSON values."""
    return {
        "power": POWER,
        "candidates": found.candidates,
        "pairs_per_task": found.pairs,
        "tasks": found.tasks,
        "families": found.families,
        "from": {source.name.lower(): count for source, count in found.sources.items()},
        "on_tasks": found.on_tasks,
        "largest": found.largest,
        "repeats_needed": {f"{target:g}": count for target, count in found.repeats.items()},
        "beyond": found.beyond,
        "family_spread": found.spread,
    }


def print_preview(preview: Preview, console: Console) -> None:
    """Show what would run, what is reused, what is refused, and what can be known before."""
    plan, refused = preview.plan, refused_by_variant(preview.refusals)
    ruler = plan.experiment.ruler
    families = {task.family for task in ruler.tasks}
    _say(console, ": ".join(filter(None, (plan.experiment.name, plan.experiment.question))))
    _say(
        console,
        f"ruler {ruler.ruler_id}: {_many(len(ruler.tasks), 'task')} in {len(families)}"
        f" {'family' if len(families) == 1 else 'families'}, {_many(len(ruler.seeds), 'seed')},"
        f" {_many(plan.experiment.repeats, 'repeat')}",
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("variant", overflow="fold")
    for heading in ("new", "unfinished", "damaged", "refused", "reused", "total"):
        table.add_column(heading, justify="right")
    for variant in plan.variants:
        counts = (variant.new, variant.unfinished, variant.damaged, refused.get(variant.variant, 0))
        table.add_row(variant.variant, *map(str, (*counts, sum(variant.reused.values()), variant.total)))
    console.print(table)
    for line in (*_forecast_lines(preview.forecast), *_budget_lines(preview)):
        _say(console, line)
    for line in detectable_lines(preview.detectable) if preview.detectable else ():
        _say(console, line)
    ending = "would run" if not refused else f"are to run, and {sum(refused.values())} are refused, so that none would"
    _say(console, f"{plan.to_run} episodes in {len(plan.blocks)} blocks {ending}. Nothing was run.")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _forecast_lines(found: Forecast) -> Iterator[str]:
    if not found.episodes:
        return
    if found.unknown == found.episodes:
        yield "Forecast: nothing is known, because no episode in these roles has run here."
    else:
        yield (
            f"Forecast for {found.episodes - found.unknown} episodes, from {found.past} past ones in the same roles"
            f" ({found.same_task} by their own task, {found.other_tasks} by others); [90 % lie within]:"
        )
        yield f"  money   {_money(found)}"
        yield f"  calls   {_shown(found.calls, '{:,.0f}')} of models, {_shown(found.tokens, '{:,.0f}')} tokens"
        yield f"  time    {_time(found.seconds)} for the episodes"
        if found.unknown:
            yield f"  Nothing is known of {found.unknown} more: no episode in their roles has run here."
    nobody = "; a simulated model is billed to nobody" if found.simulated and found.cost_usd is None else ""
    yield f"  at most {_amount(found.most)}, by limits and caps{nobody}"


def _money(found: Forecast) -> str:
    if found.cost_usd is None:
        return f"unknown: no price is known for {', '.join(found.unpriced)}"
    nominal = " at nominal prices: a simulated model is billed to nobody" if found.simulated else ""
    return f"{_shown(found.cost_usd, '{:,.2f}' if found.cost_usd.median >= 1 else '{:.4f}')} US dollars{nominal}"


def _budget_lines(preview: Preview) -> Iterator[str]:
    budget, found = preview.budget, preview.forecast
    # The last episode starts only if its worst case still fits.
    caps = {
        "cost_usd": (budget.cost_usd, found.cost_usd, float(found.most_of_one.cost_usd)),
        "calls": (budget.calls, found.calls, found.most_of_one.calls),
        "seconds": (budget.seconds, found.seconds, 0.0),
    }
    for key, (cap, range_, held) in caps.items():
        if cap is not None and found.episodes:
            enough = _whether_enough(cap, None if found.unknown else range_, held)
            yield f"Budget of this command: budget.{key}={cap:g}; {enough}."


def _whether_enough(cap: float, needed: Range | None, held: float) -> str:
    if needed is None:
        return "nobody knows whether that is enough"
    if needed.high + held <= cap:
        return "that should be enough"
    return f"it {'will probably' if needed.low + held > cap else 'may'} stop it before all is done"


def detectable_lines(found: Detectable) -> Iterator[str]:
    """Say what can be detected, and what it would take to detect less."""
    rests_on = "; ".join(f"{source.value} ({_many(count, 'task')})" for source, count in found.sources.items())
    yield (
        f"Detectable with a probability of {POWER:.0%} by {_many(found.candidates, 'candidate')} on {found.pairs} pairs"
        f" a task, judged by {rests_on}:"
    )
    if found.on_tasks is None:
        yield f"  on these tasks  nothing: even {_points(found.largest)} more, which is to pass always, are too few"
    else:
        yield f"  on these tasks  a true difference of {_points(found.on_tasks)} or more"
    needed = ", ".join(f"{_points(target)} {_repeats(found.repeats[target], target, found)}" for target in TARGETS)
    yield f"  repeats for     {needed}"
    if found.families < FAMILIES_NEEDED:
        yield f"  beyond them     not tested: it needs {FAMILIES_NEEDED} families, and there are {found.families}"
    else:
        known = "if families do not differ, the best case; nothing is known of their spread"
        if found.spread is not None:
            known = f"if the true differences of families spread by {_points(found.spread)}, as they did so far"
        least = "nothing" if found.beyond is None else f"a true difference of {_points(found.beyond)} or more"
        yield f"  beyond them     {least}, {known}"


def _repeats(count: int | None, target: float, found: Detectable) -> str:
    if count is not None:
        return f"need {count:,}"
    return "have no room" if target > found.largest else f"need more than {REPEATS_MAX:,}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _shown(found: Range | None, form: str) -> str:
    if found is None:
        return "unknown"
    return f"{form.format(found.median)} [{form.format(found.low)} to {form.format(found.high)}]"


def _time(found: Range | None) -> str:
    if found is None:
        return "unknown"
    return f"{_duration(found.median)} [{_duration(found.low)} to {_duration(found.high)}]"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


def _amount(most: Amount) -> str:
    return f"{most.calls:,} model calls and {most.cost_usd:,.2f} US dollars"
