"""What may reach a terminal: a console of a known width, tables, and text in which nothing can act on it."""

import unicodedata

from rich import box
from rich.console import Console
from rich.table import Table

_PIPE_WIDTH = 120
_RICH_FALLBACK_WIDTH = 80
_HARMLESS = frozenset("\n\t")
_ACTING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def open_console() -> Console:
    """Return standard output. Where there is no terminal, and no COLUMNS, a line has 120 characters."""
    console = Console(highlight=False)
    if not console.is_terminal and console.width == _RICH_FALLBACK_WIDTH:
        return Console(highlight=False, width=_PIPE_WIDTH)
    return console


def open_table(name: str, *figures: str) -> Table:
    """Return a table without frame: a first column of names, which may be folded, then figures, which may not."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column(name, overflow="fold")
    for figure in figures:
        table.add_column(figure, justify="right", no_wrap=True)
    return table


def printable(text: str) -> str:
    r"""Return `text` with every character that acts instead of showing (escape, direction marks) written as `\x1b`.

    Only for what a person reads: records keep their text. Square brackets are left alone, since nothing here is ever
    parsed as markup.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character in _HARMLESS or unicodedata.category(character) not in _ACTING
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )
