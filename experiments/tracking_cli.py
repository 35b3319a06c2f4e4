"""The command `geode ui`."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_PORT = 5000


def register(app: typer.Typer) -> None:
    """Add the command to `app`; the entry point `geode.commands` names this function."""
    app.command()(ui)


def ui(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port on 127.0.0.1.")] = DEFAULT_PORT,
    root: Annotated[Path | None, typer.Option(help="State root; default GEODE_HOME, else ~/.geode.")] = None,
    *,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser on the comparison.")] = True,
) -> None:
    """Show the experiments in MLflow: runs, comparisons, and a trace of every episode.

    Example: geode ui --port 5001 --no-open
    """
    # `geode --help` must not pay for what only this command needs.
    from experiments.tracking_server import CannotShow, show
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    try:
        show(settings_of(root), port, open_browser=open_browser, say=typer.echo)
    except CannotShow as error:
        fail(str(error))
    except KeyboardInterrupt:
        typer.echo("MLflow was stopped.")
