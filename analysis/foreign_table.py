"""Two foreign logs on one screen: what could be paired, the difference of each dimension, and what limits it."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.foreign import Unit
from analysis.foreign_compare import DimensionRow, LogComparison
from analysis.terminal import printable

_TASKS_SHOWN = 5


def print_log_comparison(console: Console, comparison: LogComparison, *, tasks: bool = False) -> None:
    """Print the screen; `tasks` names every task that moved and every one that could not be paired."""
    limit = None if tasks else _TASKS_SHOWN
    parts: list[RenderableType] = [_header(comparison)]
    parts += [Text(printable(warning), style="yellow") for warning in comparison.warnings]
    parts += [Text(), _main_table(comparison), _legend(comparison)]
    if any(row.mcnemar for row in comparison.rows):
        parts += [Text("\nPairs", style="bold"), _pair_table(comparison)]
    console.print(Group(*parts, *_moved(comparison, limit), *_unpaired(comparison, limit)))


def _header(comparison: LogComparison) -> Text:
    return Text.assemble(
        ("A ", "bold"),
        f"{printable(comparison.first)}  ({printable(comparison.first_subject)})\n",
        ("B ", "bold"),
        f"{printable(comparison.second)}  ({printable(comparison.second_subject)})\n",
        (
            f"{comparison.harness}: {comparison.paired} paired by task and attempt;"
            f" {len(comparison.only_first)} only in A, {len(comparison.only_second)} only in B, and in no figure",
            "dim",
        ),
    )


def _table(*headers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column(headers[0], overflow="fold")
    for header in headers[1:]:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _main_table(comparison: LogComparison) -> Table:
    level = f"B - A [{100 * comparison.confidence:g} %]"
    table = _table("score", "pairs", "unscored A, B", "A", "B", level, "tasks", "interval")
    for row in comparison.rows:
        cells = [
            printable(row.dimension),
            str(row.pairs),
            f"{row.unscored_first}, {row.unscored_second}",
            _figure(row.first),
            _figure(row.second),
            _difference(row),
            f"+{len(row.better)} -{len(row.worse)}",
        ]
        table.add_row(*map(Text, cells), _side_of_zero(row))
    return table


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _difference(row: DimensionRow) -> str:
    if row.difference is None:
        return "no pair"
    shown = f"{row.difference + 0.0:+.2f}"
    return f"{shown} [{row.interval.low:+.2f}, {row.interval.high:+.2f}]" if row.interval else f"{shown} no interval"


def _side_of_zero(row: DimensionRow) -> Text:
    if row.interval is None:
        return Text("none", style="dim")
    if row.interval.low > 0:
        return Text("above zero", style="bold")
    return Text("below zero", style="bold") if row.interval.high < 0 else Text("holds zero", style="yellow")


def _legend(comparison: LogComparison) -> Text:
    return Text(
        "\nA, B: means over tasks, which weigh equally, of the pairs with a value in both.  The intervals tell what"
        f" holds {comparison.level}, all {len(comparison.rows)} together; where no difference varies there is none.  "
        "Whether more is better depends on the score.",
        style="dim",
    )


def _pair_table(comparison: LogComparison) -> Table:
    table = _table("score", "both pass", "only A", "only B", "neither", "p (McNemar, exact)")
    for row in comparison.rows:
        if (found := row.mcnemar) is not None:
            counts = (found.both, found.only_first, found.only_second, found.neither)
            table.add_row(Text(printable(row.dimension)), *map(str, counts), f"{found.p:.4f}")
    return table


def _moved(comparison: LogComparison, limit: int | None) -> Iterator[Text]:
    for row in comparison.rows:
        for word, tasks in (("higher", row.better), ("lower", row.worse)):
            if tasks and (limit is None or len(comparison.rows) == 1):
                named = [f"{printable(task.task)} {task.first:g} -> {task.second:g}" for task in tasks[:limit]]
                yield Text(f"{printable(row.dimension)} {word} in B: {'; '.join(named)}{_rest(len(tasks), limit)}")


def _unpaired(comparison: LogComparison, limit: int | None) -> Iterator[Text]:
    for letter, units in (("A", comparison.only_first), ("B", comparison.only_second)):
        if units:
            named = ", ".join(map(_name, units[:limit]))
            yield Text(f"only in {letter}: {named}{_rest(len(units), limit)}", style="dim")
    for letter, names in (("A", comparison.only_first_dimensions), ("B", comparison.only_second_dimensions)):
        if names:
            yield Text(f"scores only in {letter}: {', '.join(map(printable, names))}", style="yellow")


def _name(unit: Unit) -> str:
    return f"{printable(unit.task)} ({unit.attempt})"


def _rest(count: int, limit: int | None) -> str:
    return f" and {count - limit} more: --tasks" if limit is not None and count > limit else ""
