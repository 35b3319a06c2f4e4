"""How far an experiment has come: decided by the episode folders, explained by the manifest."""

import json
from collections import Counter

from rich.console import Console
from rich.table import Table

from experiments.manifest import EpisodeStatus, read_manifest
from experiments.plan import VariantPlan, make_plan
from experiments.store import EpisodeStore, count_set_aside, read_experiment
from geode.clock import SystemClock
from geode.config.settings import Settings
from geode.redaction import Redactor


def print_status(settings: Settings, name: str, *, as_json: bool) -> bool:
    """Show, by variant, what is done, not done, damaged and set aside; return whether every record can be read.

    Raises:
        UnknownExperiment: if there is no experiment `name`.
        RecordDamaged: if it cannot be read.
    """
    experiment = read_experiment(settings.root, name)
    store = EpisodeStore(settings.root, SystemClock(), Redactor())
    plan = make_plan(experiment, [variant.name for variant in experiment.variants], experiment.repeats, store)
    said = read_manifest(settings.root.experiment(name))
    rows = {variant.variant: _row(variant, plan.keys[variant.variant], said, settings) for variant in plan.variants}
    console = Console()
    if as_json:
        body = {"schema": "geode.sweep_status/1", "experiment": name, "repeats": experiment.repeats, "variants": rows}
        console.out(json.dumps(body, ensure_ascii=False, indent=1), highlight=False)
    else:
        console.print(_table(rows))
    return not any(row["damaged"] for row in rows.values())


def _table(rows: dict[str, dict[str, int]]) -> Table:
    headings = ("planned", "done", "invalid", "unfinished", "lost", "damaged", "set aside")
    table = Table(box=None, pad_edge=False)
    table.add_column("variant", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right")
    for variant, row in rows.items():
        table.add_row(variant, *(str(row[heading.replace(" ", "_")]) for heading in headings))
    return table


def _row(
    variant: VariantPlan, keys: tuple[str, ...], said: dict[str, EpisodeStatus], settings: Settings
) -> dict[str, int]:
    statuses = Counter(said.get(key) for key in keys)
    return {
        "planned": variant.total,
        "done": sum(variant.reused.values()),
        "invalid": sum(count for kind, count in variant.reused.items() if kind.value == "INVALID"),
        "unfinished": variant.unfinished,
        "lost": statuses[EpisodeStatus.LOST],
        "damaged": variant.damaged,
        "set_aside": count_set_aside(settings.root, frozenset(keys)),
    }
