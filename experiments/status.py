"""How far an experiment has come: decided by the episode folders, explained by the manifest and the claims."""

import json
from collections import Counter
from contextlib import closing

from rich.console import Console
from rich.table import Table

from experiments.claims import Claims, episode_name
from experiments.manifest import EpisodeStatus, read_manifest
from experiments.plan import Plan, VariantPlan, make_plan
from experiments.store import EpisodeStore, count_set_aside, read_experiment
from geode.clock import SystemClock
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.redaction import Redactor


def print_status(settings: Settings, name: str, *, as_json: bool) -> bool:
    """Show, by variant, what is done, running, not done, damaged and set aside; return whether all records can be read.

    Raises:
        UnknownExperiment: if there is no experiment `name`.
        RecordDamaged: if it cannot be read.
    """
    experiment = read_experiment(settings.root, name)
    store = EpisodeStore(settings.root, SystemClock(), Redactor())
    plan = make_plan(experiment, [variant.name for variant in experiment.variants], experiment.repeats, store)
    said = read_manifest(settings.root.experiment(name))
    running = _running(plan, settings.root)
    rows = {
        variant.variant: _row(variant, plan.keys[variant.variant], said, settings, running[variant.variant])
        for variant in plan.variants
    }
    console = Console()
    if as_json:
        body = {"schema": "geode.sweep_status/1", "experiment": name, "repeats": experiment.repeats, "variants": rows}
        console.out(json.dumps(body, ensure_ascii=False, indent=1), highlight=False)
    else:
        console.print(_table(rows))
    return not any(row["damaged"] for row in rows.values())


def _table(rows: dict[str, dict[str, int]]) -> Table:
    headings = ("planned", "done", "invalid", "running", "unfinished", "lost", "damaged", "set aside")
    table = Table(box=None, pad_edge=False)
    table.add_column("variant", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right")
    for variant, row in rows.items():
        table.add_row(variant, *(str(row[heading.replace(" ", "_")]) for heading in headings))
    return table


def _running(plan: Plan, root: StateRoot) -> Counter[str]:
    """Count, by variant, the episodes that some process is running: their folders are begun, and claimed."""
    begun = [e for block in plan.blocks for e in block.episodes if e.state.kind == "unfinished"]
    if not begun:
        return Counter()
    with closing(Claims(root)) as claims:
        return Counter(e.variant for e in begun if not claims.is_free(episode_name(e.spec.episode_key)))


def _row(
    variant: VariantPlan, keys: tuple[str, ...], said: dict[str, EpisodeStatus], settings: Settings, running: int
) -> dict[str, int]:
    statuses = Counter(said.get(key) for key in keys)
    return {
        "planned": variant.total,
        "done": sum(variant.reused.values()),
        "invalid": sum(count for kind, count in variant.reused.items() if kind.value == "INVALID"),
        "running": running,
        "unfinished": variant.unfinished - running,
        "lost": statuses[EpisodeStatus.LOST],
        "damaged": variant.damaged,
        "set_aside": count_set_aside(settings.root, frozenset(keys)),
    }
