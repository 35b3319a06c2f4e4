"""`geode hooks`: the operator's own hooks, and those that a project brings along and that run only if it is trusted."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from geode.hooks.command import CommandEntry
    from geode.hooks.hook_file import HookFile
    from geode.hooks.observing import ObserverEntry
    from geode.serve.project_hooks import ProjectHooks
    from geode.tools.mcp.trust import TrustStore

_REFUSED = 2
_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")


def register(app: typer.Typer) -> None:
    """Add `hooks`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at hooks, and trust a project's.")
    group.command("ls", epilog="Example:  geode hooks ls --file .claude/settings.json")(list_hooks)
    group.command("trust", epilog="Example:  geode hooks trust .claude/settings.json")(trust)
    app.add_typer(group, name="hooks")


def list_hooks(
    file: Path = typer.Option(None, "--file", help="Look at this file in place of hooks.json under the state root."),
    workspace: Path = typer.Option(
        Path(), help="The project's folder, whose hook files are named with their standing."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    root: Path = _ROOT,
) -> None:
    """List the hooks in their order, and what of the file has no place here. Nothing is run."""
    from geode.cli.asking import say
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.hooks.hook_file import HookFileError, read_hook_file
    from geode.serve.project_hooks import standings
    from geode.tools.mcp.trust import TrustStore, TrustUnreadable

    settings = settings_of(root)
    path = file or settings.root.hooks_file
    if file is not None and not file.is_file():
        fail(f"there is no file {str(file)!r}", _REFUSED)
    try:
        found = read_hook_file(path)
        of_project = {} if file else standings(settings.root, workspace, TrustStore(settings.root.mcp_trust))
    except (HookFileError, TrustUnreadable) as error:
        fail(str(error), _REFUSED)
    if as_json:
        body = {
            "schema": "geode.hooks/1",
            "file": str(path),
            "hooks": [_as_json(entry) for entry in found.entries],
            "observing": [asdict(entry) for entry in found.observing],
            "not_used": list(found.not_used),
            "project": [{"file": str(place), "standing": standing} for place, standing in of_project.items()],
        }
        typer.echo(json.dumps(body, ensure_ascii=False, indent=1))
        return
    for line in _lines(found):
        say(line)
    for reason in found.not_used:
        typer.echo(f"not used: {reason}", err=True)
    if not found.commands:
        typer.echo(f"no hook in {path}; those of packages are chosen by hooks=[...] in geode sweep", err=True)
    for place, standing in of_project.items():
        say(f"{place}  {standing}")


def trust(
    path: Path = typer.Argument(..., help="The project's .geode/hooks.json or .claude/settings.json."),
    forget: bool = typer.Option(False, "--forget", help="Trust it no longer, as if you never had."),
    yes: bool = typer.Option(False, "--yes", help="Trust what is shown without asking, as a script must."),
    root: Path = _ROOT,
) -> None:
    """Look at the hooks that a project brings along, and let them run in sessions there, as long as they stay so.

    They run as programs of yours, outside of any sandbox. When the file changes by one byte, or one of the project's
    files that its commands name, no session begins there until you have looked at it again.
    """
    from geode.cli.asking import agreed
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.hooks.hook_file import HookFileError
    from geode.serve.project_hooks import PROJECT_FILES, project_paths, read_project_file
    from geode.tools.mcp.trust import TrustStore, TrustUnreadable

    settings = settings_of(root)
    place = path.absolute().parent.parent.resolve() / path.absolute().parent.name / path.name
    if place not in project_paths(settings.root, place.parent.parent):
        names = " or ".join(str(name) for name in PROJECT_FILES)
        fail(f"{place} is no hook file of a project; those are {names} in its folder", _REFUSED)
    try:
        trusted = TrustStore(settings.root.mcp_trust)
        if forget:
            _forget(trusted, place)
            return
        found = read_project_file(place, place.parent.parent)
    except (HookFileError, TrustUnreadable) as error:
        fail(str(error), _REFUSED)
    if found is None:
        fail(f"there is no file {str(place)!r}; if it was trusted and is to be gone, add --forget", _REFUSED)
    _show(found)
    if trusted.trusted_file(place) == found.digest:
        typer.echo("it is trusted as it is")
        return
    if not agreed("Run these in sessions of this project from now on?", yes=yes):
        fail("nothing was trusted", _REFUSED)
    trusted.trust_file(place, found.digest)
    typer.echo(f"{len(found.hooks.commands)} hooks trusted")


def _forget(trusted: "TrustStore", place: Path) -> None:
    from geode.cli.failure import fail

    if trusted.trusted_file(place) is None:
        fail(f"{place} is not trusted; there is nothing to forget", _REFUSED)
    trusted.forget_file(place)
    typer.echo(f"{place} is not trusted any more; its hooks do not run")


def _show(found: "ProjectHooks") -> None:
    from geode.cli.asking import say

    say(f"{found.path} would run these, outside of any sandbox:")
    for line in _lines(found.hooks):
        say(f"  {line}")
    for program in found.programs:
        say(f"  they name {program}, which counts as a part of it: look at it, too")
    for reason in found.hooks.not_used:
        say(f"  not used: {reason}")


def _lines(hooks: "HookFile") -> "Iterator[str]":
    for entry in hooks.entries:
        kind = "observer" if entry.observer else "may fail" if entry.on_error_allow else "guard"
        yield _in_a_line(entry, kind)
    for told in hooks.observing:
        yield _in_a_line(told, "is told")


def _in_a_line(entry: "CommandEntry | ObserverEntry", kind: str) -> str:
    matcher = f" of {entry.matcher}" if entry.matcher else ""
    return f"{entry.name}  {kind}{matcher}  within {entry.time_limit_s:g} s  {entry.command}"


def _as_json(entry: "CommandEntry") -> "dict[str, JsonValue]":
    return {
        "name": entry.name,
        "point": entry.point.value,
        "matcher": entry.matcher,
        "command": entry.command,
        "timeout_s": entry.time_limit_s,
        "observer": entry.observer,
        "on_error": "allow" if entry.on_error_allow else "block",
        "priority": entry.priority,
    }
