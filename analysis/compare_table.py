"""A comparison on one screen: what was measured with what, the table, what limits it, and where to look next."""

import re
from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.compare import Comparison, TaskCell, VariantRow
from analysis.terminal import printable
from experiments.gate import Beyond, ReasonCode, VerdictKind
from experiments.pairs import MovedTask
from experiments.stats import Interval

KEY_DIGITS = 12
_SHORT_KEY_DIGITS = 8  # in a table of every cell: one in four thousand million of another episode's
VERDICT_STYLE = {
    VerdictKind.KEEP: "bold green",
    VerdictKind.REJECT: "bold red",
    VerdictKind.UNDECIDED: "yellow",
    VerdictKind.INVALID: "bold magenta",
}
_BEYOND_STYLE = {Beyond.GENERALISES: "bold", Beyond.DOES_NOT: "yellow", Beyond.NOT_TESTED: "dim"}
_NAME_WIDTH_MIN = 12
_NAME_WIDTH_FOLDED = 16
_ANY_WIDTH = 1_000
_Column = tuple[str, Callable[[VariantRow], RenderableType]]
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
    parts: list[RenderableType] = [_header(comparison), *_warnings(comparison), Text()]
    parts += _main_tables(console, comparison)
    if usage:
        parts += [Text("\nMeans over finished episodes", style="bold"), _usage_table(comparison)]
    if tasks:
        title = "\nPass rate by task (* beyond noise), and an episode behind each figure: geode show KEY"
        parts += [Text(title, style="bold"), _task_table(comparison, console.width)]
    if pairs and comparison.candidates:
        parts += [
            Text(
                "\nPairs: one task, seed and repetition with both (McNemar's p is a variant's own; it decides nothing)",
                style="bold",
            ),
            _pair_table(comparison),
        ]
        parts += [Text("\nTasks that moved, with one pair of episodes each: geode show KEY", style="bold")]
        parts += [_moved_table(comparison)]
    if comparison.candidates:
        parts += [_legend(comparison), *_findings(comparison)]
    console.print(Group(*parts))
    console.print(_commands(comparison, root, tasks=tasks), soft_wrap=True)  # a command that is folded cannot be copied


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


def _main_tables(console: Console, comparison: Comparison) -> Iterator[RenderableType]:
    """Yield one table, or, where it would be cut, two: nobody should miss a verdict."""
    figures: list[_Column] = [
        ("pass", lambda row: _percent(row.pass_rate)),
        (f"difference [{_level(comparison)}]", _difference),
        ("tasks", lambda row: "" if row.is_baseline else f"+{len(row.tasks_better)} -{len(row.tasks_worse)}"),
    ]
    verdict: list[_Column] = [("verdict", _verdict)]
    prices: list[_Column] = [
        ("INVALID", _count),
        ("false", lambda row: _percent(row.claimed_falsely)),
        ("cost", lambda row: _dollars(row.spend.cost_usd) if row.spend else "–"),
    ]
    truth: list[_Column] = [("truth", _truth)] if _has_truth(comparison) else []
    whole = _variant_table(comparison, [*figures, *prices, *verdict, *truth])
    longest = max(len(row.name) for row in comparison.rows)  # which may be folded, as figures may not
    folded = max(0, longest - _NAME_WIDTH_FOLDED)
    if console.measure(whole, options=console.options.update(max_width=_ANY_WIDTH)).maximum - folded <= console.width:
        yield whole
    else:
        yield from (_variant_table(comparison, [*figures, *verdict]), Text())
        yield _variant_table(comparison, [*prices, *truth])


def _variant_table(comparison: Comparison, columns: Sequence[_Column]) -> Table:
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header, _ in columns:
        table.add_column(header, justify="left" if header == "verdict" else "right", no_wrap=True)
    for row in comparison.rows:
        name = Text(row.name, style="bold" if row.is_baseline else "")
        table.add_row(name, *(figure(row) for _, figure in columns))
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


def _dollars(cost: float | None) -> str:
    if cost is None:
        return "unknown"
    return f"${cost:.4f}" if cost else "$0"


def _verdict(row: VariantRow) -> Text:
    return Text(row.verdict.kind, style=VERDICT_STYLE[row.verdict.kind]) if row.verdict else Text()


def _has_truth(comparison: Comparison) -> bool:
    return any(row.truth for row in comparison.rows)


def _truth(row: VariantRow) -> Text:
    if row.is_baseline:
        return Text()
    if row.truth is None:
        return Text("not measured", style="dim")
    return Text(f"{_points(row.truth.estimate)} ±{100 * row.truth.standard_error:.1f}", style="cyan")


def _usage_table(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header in ("episodes", "tokens", "model time", "host time", "rounds", "repairs", "refused"):
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


def _task_table(comparison: Comparison, width: int) -> Table:
    """Return a row a task, or, where that is too wide to copy a key from, a row a task and variant."""
    names = [Text.assemble(task.task_id, (f"\n{task.family}", "dim")) for task in comparison.tasks]
    columns = [
        [Text(_BREAK.sub("\n", row.name)), *(_figure(task.cells[place]) for task in comparison.tasks)]
        for place, row in enumerate(comparison.rows)
    ]
    widths = [max(len(line) for text in texts for line in text.plain.split("\n")) for texts in (names, *columns)]
    if max(widths[0], _NAME_WIDTH_MIN) + sum(column + 2 for column in widths[1:]) > width:
        return _task_list(comparison)
    table = _table()
    table.add_column("task", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header, *_ in columns:
        table.add_column(header, justify="right", no_wrap=True)
    for place, name in enumerate(names, start=1):
        table.add_row(name, *(column[place] for column in columns))
    return table


def _task_list(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("task", overflow="fold", min_width=_NAME_WIDTH_MIN)
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header in ("pass", "difference", "episode"):
        table.add_column(header, justify="right", no_wrap=True)
    for task in comparison.tasks:
        name = task.task_id
        for row, cell in zip(comparison.rows, task.cells, strict=True):
            difference = "" if cell.difference is None else _points(cell.difference)
            rate = Text.assemble(_rate(cell), _unmeasured(cell))
            table.add_row(name, row.name, rate, difference, (cell.look_at or "–")[:KEY_DIGITS])
            name = ""  # told once
    return table


def _figure(cell: TaskCell) -> Text:
    """Return a rate, below it the beginning of an episode's key, and below that what was not measured."""
    key = Text(f"\n{(cell.look_at or '–')[:_SHORT_KEY_DIGITS]}", style="dim")
    return Text.assemble(_rate(cell), key, _unmeasured(cell))


def _rate(cell: TaskCell) -> Text:
    if not cell.measured:
        return Text("– ")
    style = "" if not cell.beyond_noise else "green" if (cell.difference or 0.0) > 0 else "red"
    return Text(f"{100 * cell.passes / cell.measured:.0f}{'*' if cell.beyond_noise else ' '}", style=style)


def _unmeasured(cell: TaskCell) -> Text:
    told = "".join(
        f"\n{count} {word}" for count, word in ((cell.invalid, "INVALID"), (cell.missing, "missing")) if count
    )
    return Text(told, style="magenta")


def _pair_table(comparison: Comparison) -> Table:
    table = _table()
    table.add_column("variant", overflow="fold", min_width=_NAME_WIDTH_MIN)
    for header in ("both pass", "only base", "only this", "neither", "unmeasured", "p (exact)"):
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
    together = f"; the intervals hold for all {comparison.candidates} candidates together"
    text = (
        f"\npass, false: in % of measured episodes.  difference: points to {comparison.baseline}, tasks weighing"
        f" equally{together if comparison.candidates > 1 else ''}.  tasks: how many have a mean difference above and"
        " below zero.  false: accepted by the completion check, failed by the verifier.  cost: mean of an episode."
    )
    if _has_truth(comparison):
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


def _commands(comparison: Comparison, root: str, *, tasks: bool) -> Text:
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
    if tasks:
        example = f"geode ls {comparison.experiment} {worst} --task {comparison.tasks[0].task_id}{option}"
        lines.insert(0, (example, "every episode behind one figure"))
    if look_at:
        lines.insert(0, (f"geode show {look_at[:KEY_DIGITS]}{option}", f"an episode of {worst}"))
    width = max(len(command) for command, _ in lines)
    return Text("\n").join(
        [Text(""), *(Text.assemble((f"  {command:{width}}", "cyan"), (f"  {why}", "dim")) for command, why in lines)]
    )


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # adding zero turns the -0.0 of floating-point noise into +0.0
