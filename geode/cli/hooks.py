"""`geode hooks`: the operator's own hooks, as the file under the state root names them."""

import json
from pathlib import Path

import typer

_REFUSED = 2


def register(app: typer.Typer) -> None:
    """Add `hooks`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at your own hooks (hooks.json).")
    group.callback()(lambda: None)
    group.command("ls", epilog="Example:  geode hooks ls --file .claude/settings.json")(list_hooks)
    app.add_typer(group, name="hooks")


def list_hooks(
    file: Path = typer.Option(None, "--file", help="Look at this file in place of hooks.json under the state root."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    root: Path = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode."),
) -> None:
    """List the hooks that decide, in their order, and what of the file has no place here. Nothing is run."""
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.hooks.hook_file import HookFileError, read_hook_file

    path = file or settings_of(root).root.hooks_file
    if file is not None and not file.is_file():
        fail(f"there is no file {str(file)!r}", _REFUSED)
    try:
        found = read_hook_file(path)
    except HookFileError as error:
        fail(str(error), _REFUSED)
    if as_json:
        rows = [
            {
                "name": entry.name,
                "point": entry.point.value,
                "matcher": entry.matcher,
                "command": entry.command,
                "timeout_s": entry.time_limit_s,
                "observer": entry.observer,
                "on_error": "allow" if entry.on_error_allow else "block",
                "priority": entry.priority,
            }
            for entry in found.entries
        ]
        body = {"schema": "geode.hooks/1", "file": str(path), "hooks": rows, "not_used": list(found.not_used)}
        typer.echo(json.dumps(body, ensure_ascii=False, indent=1))
        return
    for entry in found.entries:
        kind = "observer" if entry.observer else "may fail" if entry.on_error_allow else "guard"
        matcher = f" of {entry.matcher}" if entry.matcher else ""
        typer.echo(f"{entry.name}  {kind}{matcher}  within {entry.time_limit_s:g} s  {entry.command}")
    for reason in found.not_used:
        typer.echo(f"not used: {reason}", err=True)
    if not found.entries:
        typer.echo(f"no hook in {path}; those of packages are chosen by hooks=[...] in geode sweep", err=True)
