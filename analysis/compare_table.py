"""A comparison on one screen: what was measured with what, the table, what limits it, and where to look next."""

import re
from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.compare import Comparison, TaskCell, TaskRow, VariantRow
from analysis.terminal import printable
from experiments.gate import Beyond, ReasonCode, VerdictKind
from experiments.pairs import MovedTask
from experiments.stats import Interval

KEY_DIGITS = 12
_VERDICT_STYLE = {
    VerdictKind.KEEP: "bold green",
    VerdictKind.REJECT: "bold red",
    VerdictKind.UNDECIDED: "yellow",
    VerdictKind.INVALID: "bold magenta",
}
_BEYOND_STYLE = {Beyond.GENERALISES: "bold", Beyond.DOES_NOT: "yellow", Beyond.NOT_TESTED: "dim"}
_NAME_WIDTH_MIN = 12
_BREAK = re.compile(r"(?<=[_=+.])")
_PLAIN_REASONS = frozenset({ReasonCode.BETTER, ReasonCode.WORSE, ReasonCode.INTERVAL_HOLDS_ZERO})
"""What the interval beside the verdict already says."""


def print_comparison(
    console: Console,
    comparison: Comparison,
    *,
    tasks: bool = False,
    pairs: bool = False,
    usage: bool = False,
    root: str = "",
) -> None:
    """Print the screen; `tasks`, `pairs` and `usage` add tables, `root` is repeated in the commands at its end."""
    parts: list[RenderableType] = [_header(comparison), *_warnings(comparison), Text(), _main_table(comparison)]
    if usage:
        parts += [Text("\nMeans over finished episodes", style="bold"), _usage_table(comparison)]
    if tasks:
        parts += [Text("\nPass rate by task (* differs from the baseline beyond noise)", style="bold")]
        parts += [_task_table(comparison)]
    if pairs and comparison.candidates:
        parts += [
            Text(
                "\nPairs: one task, seed and repetition with both (p is a variant's own; it decides nothing)",
                style="bold",
            ),
            _pair_table(comparison),
        ]
        parts += [Text("\nTasks that moved, with one pair of episodes each: geode show KEY", style="bold")]
        parts += [_moved_table(comparison)]
    if comparison.candidates:
        parts += [_legend(comparison), *_findings(comparison)]
    console.print(Group(*parts))
    console.print(_commands(comparison, root), soft_wrap=True)  # a command that is folded cannot be copied


def _header(comparison: Comparison) -> Text:
    seeds = ", ".join(map(str, comparison.seeds))
    return Text.assemble(
        (comparison.experiment, "bold"),
        f"  {printable(comparison.question)}\n",
        (
            f"ruler {comparison.ruler_id}: suite {comparison.suite}, {len(comparison.tasks)} tasks in"
            f" {len(comparison.families)} families, {comparison.repeats} repeats, seed {seeds};"
            f" rule {comparison.rule} at {_level(comparison)}",
            "dim",
        ),
    )


def _warnings(comparison: Comparison) -> Iterator[Text]:
    for warning in comparison.warnings:
        yield Text(warning, style="yellow")


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)


def _main_table(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header in ("pass", f"difference [{_level(comparison)}]", "tasks", "INVALID", "false", "cost"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    if comparison.simulated_models:
        table.add_column("truth", justify="right")
    for row in comparison.rows:
        cells: list[RenderableType] = [
            Text(row.name, style="bold" if row.is_baseline else ""),
            _percent(row.pass_rate),
            _difference(row),
            "" if row.is_baseline else f"+{len(row.tasks_better)} -{len(row.tasks_worse)}",
            _count(row),
            _percent(row.claimed_falsely),
            _dollars(row.spend.cost_usd) if row.spend else "–",
            _verdict(row),
        ]
        if comparison.simulated_models:
            cells.append(_truth(row))
        table.add_row(*cells)
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _difference(row: VariantRow) -> Text:
    if row.is_baseline:
        return Text("baseline", style="dim")
    interval = row.verdict.difference if row.verdict else None
    return _interval(interval)


def _interval(interval: Interval | None) -> Text:
    if interval is None:
        return Text("no interval", style="dim")
    low, high = _points(interval.low), _points(interval.high)
    return Text.assemble((_points(interval.estimate), "bold"), f" [{low:>5}, {high:>5}]")


def _count(row: VariantRow) -> Text:
    missing = f", {row.missing} missing" if row.missing else ""
    return Text(f"{row.invalid}{missing}", style="magenta" if row.invalid or row.missing else "")


def _dollars(cost: float) -> str:
    return f"${cost:.4f}" if cost else "$0"


def _verdict(row: VariantRow) -> Text:
    return Text(row.verdict.kind, style=_VERDICT_STYLE[row.verdict.kind]) if row.verdict else Text()


def _truth(row: VariantRow) -> Text:
    if row.is_baseline:
        return Text()
    if row.truth is None:
        return Text("not measured", style="dim")
    return Text(f"{_points(row.truth.estimate)} ±{100 * row.truth.standard_error:.1f}", style="cyan")


def _usage_table(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header in ("episodes", "tokens", "model time", "host time", "rounds", "repairs", "refused calls"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in comparison.rows:
        spend = row.spend
        figures = ["–"] * 6
        if spend is not None:
            figures = [
                f"{spend.tokens:,.0f}",
                f"{spend.model_latency_ms / 1_000:.1f} s",
                f"{1_000 * spend.wall_s:.0f} ms",
                f"{spend.rounds:.1f}",
                f"{spend.repairs_used:.2f}",
                f"{spend.refused_calls:.2f}",
            ]
        table.add_row(row.name, f"{row.finished}/{row.planned}", *figures)
    return table


def _task_table(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("task", overflow="fold", min_width=_NAME_WIDTH_MIN, vertical="bottom")
    table.add_column("family", overflow="fold", style="dim")
    for row in comparison.rows:
        table.add_column(_BREAK.sub("\n", row.name), justify="right", overflow="fold")
    table.add_column("look at", no_wrap=True)
    for task in comparison.tasks:
        table.add_row(task.task_id, task.family, *map(_rate, task.cells), (_episode_of_worst(task) or "–")[:KEY_DIGITS])
    return table


def _rate(cell: TaskCell) -> Text:
    if not cell.measured:
        return Text("–")
    style = "" if not cell.beyond_noise else "green" if (cell.difference or 0.0) > 0 else "red"
    return Text(f"{100 * cell.passes / cell.measured:.0f}{'*' if cell.beyond_noise else ' '}", style=style)


def _episode_of_worst(task: TaskRow) -> str | None:
    cells = sorted(task.cells, key=lambda cell: cell.passes / cell.measured if cell.measured else 1.0)
    return next((cell.look_at for cell in cells if cell.look_at), None)


def _pair_table(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header in ("both pass", "only baseline", "only variant", "neither", "unmeasured", "p (McNemar, exact)"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in comparison.rows:
        if (found := row.pairs) is not None:
            counts = (found.both, found.only_baseline, found.only_candidate, found.neither, found.unmeasured)
            table.add_row(row.name, *map(str, counts), _p(found.p))
    return table


def _moved_table(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    table.add_column("task", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header in ("won", "lost", "its episode", "the baseline's"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in comparison.rows:
        if row.pairs is not None:
            name = row.name
            for task in (*row.pairs.better, *row.pairs.worse):
                keys = (task.candidate_key[:KEY_DIGITS], task.baseline_key[:KEY_DIGITS])
                table.add_row(name, task.task_id, *_won_and_lost(task), *keys)
                name = ""  # told once
    return table


def _won_and_lost(task: MovedTask) -> tuple[Text, Text]:
    styles = ("green", "dim") if task.won > task.lost else ("dim", "red")
    return Text(str(task.won), style=styles[0]), Text(str(task.lost), style=styles[1])


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _level(comparison: Comparison) -> str:
    return f"{100 * comparison.confidence:g} %"


def _legend(comparison: Comparison) -> Text:
    text = (
        f"\npass, false: in % of measured episodes.  difference: points to {comparison.baseline}, tasks weighing"
        f" equally; the intervals hold for all {comparison.candidates} candidates together.  tasks: how many have a"
        " mean difference above and below zero.  false: accepted by the completion check, failed by the verifier."
    )
    if comparison.simulated_models:
        text += "  truth: the same difference in a long run of the simulated worker, ± its standard error."
    return Text(text, style="dim")


def _findings(comparison: Comparison) -> Iterator[RenderableType]:
    kept = [row.name for row in comparison.rows if row.verdict and row.verdict.kind is VerdictKind.KEEP]
    shown = {row.name for row in comparison.rows}
    naive = [name for name in comparison.promoted_by_point_estimate if name in shown]
    yield Text.assemble(
        "\nA comparison by point estimate would have promoted: ",
        (", ".join(naive) or "nothing", "bold"),
        ".  The gate keeps: ",
        (", ".join(kept) or "nothing", "bold"),
        ".",
    )
    yield from _beyond(comparison)
    told: dict[str, list[str]] = {}
    for row in comparison.rows:
        for reason in row.verdict.reasons if row.verdict else ():
            if reason.code not in _PLAIN_REASONS:
                told.setdefault(reason.text, []).append(row.name)
    judged = sum(row.verdict is not None for row in comparison.rows)
    for text, names in told.items():
        who = "every variant" if len(names) == judged > 1 else ", ".join(names)
        yield Text(printable(f"{who}: {text}."), style="yellow")


def _beyond(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the table at family level, or the one reason why nobody is in it."""
    found = [row.generalises for row in comparison.rows if row.generalises]
    if not found:
        return
    if len(reasons := {row.reason for row in found}) == 1 and all(row.kind is Beyond.NOT_TESTED for row in found):
        yield Text(f"Beyond these tasks: {Beyond.NOT_TESTED}: {reasons.pop()}.")
        return
    yield Text(f"\nBeyond these tasks: means over {found[0].families} families, each one observation", style="bold")
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    table.add_column(f"difference [{_level(comparison)}]", justify="right", no_wrap=True)
    table.add_column("families", justify="right", no_wrap=True)
    table.add_column("to other tasks", no_wrap=True)
    table.add_column("because", overflow="fold", style="dim")
    for row in found:
        counts = f"+{row.families_better} -{row.families_worse}"
        kind = Text(row.kind, style=_BEYOND_STYLE[row.kind])
        table.add_row(row.candidate, _interval(row.difference), counts, kind, Text(printable(row.reason)))
    yield table


def _commands(comparison: Comparison, root: str) -> Text:
    option = f" --root {root}" if root else ""
    worst = min(comparison.rows, key=lambda row: -1.0 if row.pass_rate is None else row.pass_rate).name
    look_at = next((c.look_at for t in comparison.tasks for c in t.cells if c.variant == worst and c.look_at), None)
    lines = [
        (
            f"geode compare {comparison.experiment} --tasks --pairs --usage{option}",
            "each task, each pair, and what it took",
        ),
        (f"geode ls {comparison.experiment}{option}", "its cells and episodes"),
        (f'geode query "SELECT * FROM cell_totals"{option}', "anything, by SQL"),  # noqa: S608  (to be read)
        (f"geode ui{option}", "the same cells in MLflow"),
    ]
    if look_at:
        lines.insert(0, (f"geode show {look_at[:KEY_DIGITS]}{option}", f"an episode of {worst}"))
    width = max(len(command) for command, _ in lines)
    return Text("\n").join(
        [Text(""), *(Text.assemble((f"  {command:{width}}", "cyan"), (f"  {why}", "dim")) for command, why in lines)]
    )


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # adding zero turns the -0.0 of floating-point noise into +0.0
