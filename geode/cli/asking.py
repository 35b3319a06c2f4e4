"""What a command shows of others' words, and asks a person about them."""

import sys

import typer

from geode.cli.failure import fail
from geode.cli.shown import shown

_NOTE = "  note: "


def say(text: str) -> None:
    """Print what others wrote, so that a terminal cannot be steered by it and a reader not be deceived."""
    spelled = shown(text)
    typer.echo("\n".join((*spelled.lines, *(f"{_NOTE}{warning}" for warning in spelled.warnings))))


def agreed(question: str, *, yes: bool) -> bool:
    """Ask a person, who says no by default, or end the command where there is none; `yes` answers in their place."""
    if yes:
        return True
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        fail("nobody is there to be asked; look at it on a terminal, or approve it with --yes", 2)
    return typer.confirm(question, default=False)
