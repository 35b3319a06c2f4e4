"""How a command fails: one message on standard error, one exit code, no traceback."""

from typing import NoReturn

import typer


def fail(message: str, code: int = 1) -> NoReturn:
    """End the command with `message` and `code`."""
    typer.echo(f"geode: {message}", err=True)
    raise typer.Exit(code)
