"""`geode doctor`: is everything there that GEODE stands on?"""

import json
from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    """Add `doctor`."""
    app.command("doctor", epilog="Example:  geode doctor --json")(doctor)


def doctor(
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    root: Path = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode."),
) -> None:
    """Look at what GEODE stands on and say what is missing. Nothing is changed; exit code 1 if something will fail."""
    from geode.cli.state import settings_of
    from geode.serve.doctor import Health, examine

    found = tuple(examine(settings_of(root)))
    if as_json:
        rows = [{"about": one.about, "health": one.health.value, "text": one.text, "todo": one.todo} for one in found]
        typer.echo(json.dumps({"schema": "geode.doctor/1", "findings": rows}, ensure_ascii=False, indent=1))
    else:
        for one in found:
            typer.echo(f"{one.health.value:8}{one.about:12}{one.text}{f'; {one.todo}' if one.todo else ''}")
    raise typer.Exit(int(any(one.health is Health.BAD for one in found)))
