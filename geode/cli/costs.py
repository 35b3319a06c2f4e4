"""`geode costs`: what was spent on models."""

from pathlib import Path

import typer

_EPILOG = "Example:  geode costs --by experiment --since 2026-12-01"


def register(app: typer.Typer) -> None:
    """Add `costs`."""
    app.command(epilog=_EPILOG)(costs)


def costs(
    by: str = typer.Option("model", help="Add up by model, role, experiment, session or day."),
    since: str = typer.Option("", help="Only from this day (UTC) on, as 2026-12-01."),
    as_json: bool = typer.Option(False, "--json", help="Print the sums as one JSON object."),
    root: Path = typer.Option(None, help="The state root; by default GEODE_HOME, or ~/.geode."),
) -> None:
    """Show what was spent on models that are billed, with what nobody knows beside it.

    It is read from the ledger of spending; one that is gone is made anew from the records of sessions and episodes.
    """
    import json
    from datetime import date

    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.clock import SystemClock
    from geode.records.costs import By, Costs
    from geode.records.database import RecordError
    from geode.serve.accounts import spendings

    if by not in set(By):
        fail(f"--by {by!r} is refused: name one of {', '.join(By)}", 2)
    try:
        day = date.fromisoformat(since).isoformat() if since else ""
    except ValueError:
        fail(f"--since {since!r} is no day; write it as 2026-12-01", 2)
    clock = SystemClock()
    try:
        summed = Costs.of(spendings(settings_of(root).root, clock), By(by), day, clock.now())
    except RecordError as error:
        fail(str(error))
    typer.echo(json.dumps(summed.to_json(), ensure_ascii=False) if as_json else summed.text())
