"""A foreign attempt to read from top to bottom: what it is, what came of it, and the conversation."""

from typing import assert_never

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from analysis.show_foreign import ForeignView, LineKind, TranscriptLine
from analysis.show_text import cut, over
from analysis.terminal import printable

_HEAD_CHARS = 160


def print_foreign_view(console: Console, view: ForeignView, *, full: bool = False) -> None:
    """Print the attempt; `full` cuts nothing that its log holds."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for facts, whole in ((view.facts, True), (view.scores, full)):
        for fact in facts:
            table.add_row(printable(fact.name), Text(cut(fact.text, full=whole)))
    problems = [Text(printable(problem), style="bold yellow") for problem in view.problems]
    console.print(Group(table, *problems, Text()))
    for line in view.lines:
        console.print(_line(line, full=full))


def _line(line: TranscriptLine, *, full: bool) -> Group:
    who = printable(line.who)
    match line.kind:
        case LineKind.CALL:
            arguments = printable(line.text)
            if not full and len(arguments) > _HEAD_CHARS:
                rest = f"… [{len(arguments) - _HEAD_CHARS} more characters: --full]"
                arguments = arguments[:_HEAD_CHARS] + rest
            return Group(Text.assemble((who, "cyan"), f" {arguments}"))
        case LineKind.MESSAGE:
            return Group(over(Text(who, style="bold blue"), line.text, full=full))
        case LineKind.REASONING:
            return Group(over(Text(f"{who}, reasoning", style="dim"), line.text, full=full))
        case LineKind.RESULT:
            return Group(over(Text(f"{who} answers", style="dim"), line.text, full=full))
        case LineKind.ERROR:
            return Group(over(Text(f"{who} failed", style="bold red"), line.text, full=full))
    assert_never(line.kind)
