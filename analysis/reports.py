"""What `geode archive` and `geode query --list` print for a person."""

import json
from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analysis.archives import Import
from analysis.golden import Checked, Status, passed
from analysis.rebuild import Rebuilt
from analysis.warehouse import Relation, Table

_PIPE_WIDTH = 200
_WHOLE_LIST = 4
_STYLE = {Status.MATCH: "green", Status.DIFFERS: "bold red", Status.NOT_COMPUTED: "yellow"}


def open_console() -> Console:
    """Return standard output; what is no terminal gets lines that are wide enough to search in."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def print_import(imported: Import) -> None:
    """Say what was imported, run by run, and what was irregular."""
    console = open_console()
    table = RichTable(title=f"{imported.source}: {imported.path}", title_justify="left")
    for index, heading in enumerate(imported.headings):
        numbers = any(isinstance(row[index], int) for row in imported.rows)
        table.add_column(heading, justify="right" if numbers else "left", overflow="fold")
    for row in imported.rows:
        table.add_row(*(Text(str(value)) for value in row))
    console.print(table)
    console.print(imported.told)
    if imported.issues:
        console.print(f"{sum(imported.issues.values())} irregularities, kept and explained:")
        for kind, count in imported.issues.items():
            console.print(f"  {count:>4}  {kind}")
        console.print('  geode query "SELECT kind, place, text FROM import_issues"', markup=False, soft_wrap=True)


def print_checked(checked: Sequence[Checked]) -> None:
    """Show figure by figure what is expected, what we compute, and what that says."""
    console = open_console()
    table = RichTable()
    for heading, width in (("figure", None), ("expected", 34), ("ours", 34), ("status", 12), ("reason", 48)):
        table.add_column(heading, overflow="fold", max_width=width)
    for figure in checked:
        status = Text(figure.status.value, style=_STYLE[figure.status])
        shown = (_short(figure.expected), "" if figure.ours is None else _short(figure.ours))
        table.add_row(Text(figure.name), *map(Text, shown), status, Text(figure.reason))
    console.print(table)
    counts = Counter(figure.status for figure in checked)
    told = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    verdict = "every recomputable figure matches" if passed(checked) else "not every recomputable figure matches"
    console.print(f"{len(checked)} figures: {told}; {verdict}")


def _short(value: JsonValue) -> str:
    """As JSON; in a long list, a run of equal items is written once, with its length."""
    if not isinstance(value, list) or len(value) <= _WHOLE_LIST:
        return json.dumps(value, ensure_ascii=False)
    parts: list[tuple[str, int]] = []
    for item in value:
        text = json.dumps(item, ensure_ascii=False)
        if parts and parts[-1][0] == text:
            parts[-1] = (text, parts[-1][1] + 1)
        else:
            parts.append((text, 1))
    return f"[{', '.join(text if count == 1 else f'{count} x {text}' for text, count in parts)}]"


def print_rebuilt(rebuilt: Rebuilt, imports: Table) -> None:
    """Say what was rebuilt, and what a rebuild cannot bring back."""
    console = open_console()
    console.print(
        f"rebuilt {len(rebuilt.experiments)} experiments with {rebuilt.cells} cells and {rebuilt.episodes} episodes "
        f"into {', '.join(rebuilt.sinks)}"
    )
    for source, path, attempts in imports.rows:
        console.print(f"kept: {source}, {attempts} attempts, imported from {path}", markup=False, soft_wrap=True)
    if not imports.rows:
        console.print(
            "the warehouse has no imported archive; if it had one before its file was deleted, import it again"
        )


def listing(relations: Sequence[Relation]) -> Table:
    """Return tables and views, one row a column."""
    rows = [
        (relation.name, "view" if relation.is_view else "table", column, data_type)
        for relation in relations
        for column, data_type in relation.columns
    ]
    return Table(columns=("relation", "kind", "column", "type"), types=("VARCHAR",) * 4, rows=tuple(rows))


def names(relations: Sequence[Relation]) -> str:
    """Return the names of tables and views, in two lines."""
    tables = ", ".join(relation.name for relation in relations if not relation.is_view)
    views = ", ".join(relation.name for relation in relations if relation.is_view)
    return f"tables: {tables}\nviews: {views}\n(their columns: geode query --list)"
