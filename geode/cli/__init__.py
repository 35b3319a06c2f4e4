"""The `geode` command: it parses, calls one function elsewhere, and renders. Other packages join by entry point."""

import sys
from importlib.metadata import entry_points
from io import TextIOWrapper

import typer

from geode.cli import ask, costs, doctor, effects, hooks, mcp_servers, models, policy, sessions
from geode.cli.failure import INTERRUPTED, Commands

COMMANDS_GROUP = "geode.commands"


def build() -> typer.Typer:
    """Return the command with everything that is installed."""
    app = typer.Typer(
        name="geode",
        cls=Commands,
        help="A local agent harness, and the bench that tells whether a change to it is a real improvement.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    for own in (ask, sessions, models, costs, effects, hooks, mcp_servers, policy, doctor):
        own.register(app)
    for point in sorted(entry_points(group=COMMANDS_GROUP), key=lambda point: point.name):
        try:
            point.load()(app)
        except ImportError as error:
            # A broken extension costs its own commands, not those that would tell what is wrong.
            typer.echo(
                f"geode: the commands of {point.value!r} are missing ({error}); reinstall what offers them", err=True
            )
    return app


def main() -> None:
    """Run the command."""
    # A terminal that lacks a letter shows its escape, and bytes that are no text come in as U+FFFD: neither is a reason
    # to fail.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    try:
        command = build()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    command()


def _version(wanted: bool) -> None:
    if wanted:
        from geode import __version__

        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    del version
