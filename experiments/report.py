"""What a command says at its end: the plan or the result, for a person and as JSON, and the exit code."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from experiments.plan import Plan
from experiments.progress import Counts, counts_table, pass_rate
from experiments.suite import OutcomeKind

_SHOWN = 10  # lines of one kind; a thousand say no more than ten


class ExitCode(IntEnum):
    """How `geode run` and `geode sweep` end."""

    DONE = 0
    INVALID = 1
    REFUSED = 2
    SINK_FAILED = 3
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How one command ended. `counts` has all outcomes of the planned cells, `ran` only what this command added."""

    experiment: str
    counts: Counts
    planned: int
    ran: int
    to_run: int
    invalid_reasons: Mapping[str, int]
    sink_problems: Sequence[str]
    interrupted: bool = False
    stopped: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """The gravest of what happened."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.sink_problems:
            return ExitCode.SINK_FAILED
        invalid = any(of_variant.get(OutcomeKind.INVALID) for of_variant in self.counts.values())
        return ExitCode.INVALID if invalid or self.stopped else ExitCode.DONE


def report_to_json(report: Report) -> dict[str, JsonValue]:
    """Return the report as JSON values."""
    return {
        "schema": "geode.run_report/1",
        "experiment": report.experiment,
        "exit_code": int(report.exit_code),
        "planned": report.planned,
        "to_run": report.to_run,
        "ran": report.ran,
        "variants": {name: _counts_to_json(counts) for name, counts in report.counts.items()},
        "invalid_reasons": dict(report.invalid_reasons),
        "sink_problems": list(report.sink_problems),
        "stopped": report.stopped,
    }


def print_report(report: Report, console: Console) -> None:
    """Show the report, and what to do next."""
    console.print(counts_table(report.counts))
    for line in _lines(report):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _lines(report: Report) -> Iterator[str]:
    reused = report.planned - report.to_run
    yield f"{report.experiment}: {report.ran} episodes run, {reused} reused, {report.planned} in all."
    for reason, times in sorted(report.invalid_reasons.items(), key=lambda pair: -pair[1])[:_SHOWN]:
        yield f"INVALID {times} x {reason}"
    if any(of_variant.get(OutcomeKind.INVALID) for of_variant in report.counts.values()):
        yield "INVALID episodes measured nothing. To run them again: the same command with invalid=rerun"
    for problem in report.sink_problems:
        yield f"sink failed: {problem}"
    if report.sink_problems:
        yield "No episode is lost. Repair the cause, then: geode archive rebuild"
    if report.interrupted:
        yield "Interrupted. What is done is kept; run the same command again to go on."
    elif report.stopped:
        yield f"Stopped: {report.stopped}"
    else:
        yield f"Next: geode compare {report.experiment}"


def plan_to_json(plan: Plan) -> dict[str, JsonValue]:
    """Return the plan as JSON values."""
    variants: dict[str, JsonValue] = {
        variant.variant: {
            "total": variant.total,
            "new": variant.new,
            "unfinished": variant.unfinished,
            "damaged": variant.damaged,
            "reused": _counts_to_json(variant.reused),
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
    }


def print_plan(plan: Plan, console: Console) -> None:
    """Show what would run, and what is reused."""
    experiment = plan.experiment
    console.print(f"{experiment.name}: {experiment.question or 'no question on record'}", markup=False, soft_wrap=True)
    tasks, families = experiment.ruler.tasks, {task.family for task in experiment.ruler.tasks}
    console.print(
        f"ruler {experiment.ruler.ruler_id}: {len(tasks)} tasks in {len(families)} families,"
        f" {len(experiment.ruler.seeds)} seeds, {experiment.repeats} repeats",
        markup=False,
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("variant", overflow="fold")
    for heading in ("new", "unfinished", "damaged", "reused", "total"):
        table.add_column(heading, justify="right")
    for variant in plan.variants:
        reused = sum(variant.reused.values())
        cells = (variant.new, variant.unfinished, variant.damaged, reused, variant.total)
        table.add_row(variant.variant, *map(str, cells))
    console.print(table)
    console.print(f"{plan.to_run} episodes in {len(plan.blocks)} blocks would run. Nothing was run.")


def damage_text(plan: Plan, folders: Sequence[str]) -> str:
    """Say which planned episodes have records that cannot be used, and what to do."""
    lines = [
        f"  {folder}: {episode.state.problem}"
        for folder, episode in list(zip(folders, plan.damaged, strict=True))[:_SHOWN]
    ]
    more = len(folders) - len(lines)
    return "\n".join(
        [
            f"{len(folders)} episodes have a damaged episode.json; nothing was run:",
            *lines,
            *([f"  and {more} more"] if more else []),
            "restore them from a copy, or add damaged=set_aside to move them away and run them afresh",
        ]
    )


def _counts_to_json(counts: Mapping[OutcomeKind, int]) -> dict[str, JsonValue]:
    return {kind.value: counts.get(kind, 0) for kind in OutcomeKind} | {"pass_rate": pass_rate(counts)}
