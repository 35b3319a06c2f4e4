"""`geode run` and `geode sweep`: they take out their own options, and hand the rest to Hydra as it came."""

from pathlib import Path
from typing import NoReturn

import typer

_PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
_OVERRIDES = typer.Argument(None, metavar="[OVERRIDES]", help="KEY=VALUE, as Hydra takes them.")
_PLAN = typer.Option(False, "--plan", help="Show what would run; run nothing.")
_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")
_JSON = typer.Option(False, "--json", help="Print the summary as JSON.")


def register(app: typer.Typer) -> None:
    """Add `run` and `sweep`. Their `--help` is Hydra's, which knows the groups and the whole configuration."""
    app.command("run", context_settings=_PASS_ON, add_help_option=False)(run)
    app.command("sweep", context_settings=_PASS_ON, add_help_option=False)(sweep)


def run(
    overrides: list[str] = _OVERRIDES, plan: bool = _PLAN, root: Path | None = _ROOT, as_json: bool = _JSON
) -> None:
    """Run one variant on one suite: geode run experiment=quickstart."""
    _launch(overrides or [], plan=plan, root=root, as_json=as_json, single=True)


def sweep(
    overrides: list[str] = _OVERRIDES, plan: bool = _PLAN, root: Path | None = _ROOT, as_json: bool = _JSON
) -> None:
    """Run several variants, interleaved: geode sweep experiment=hook_ablation. See also: geode sweep status NAME."""
    if overrides and overrides[0] == "status":
        _status(overrides[1:], root=root, as_json=as_json)
        return
    _launch(overrides or [], plan=plan, root=root, as_json=as_json, single=False)


def _launch(overrides: list[str], *, plan: bool, root: Path | None, as_json: bool, single: bool) -> None:
    from experiments.job import Job
    from experiments.spec import ConfigError, launch
    from geode.cli.state import settings_of

    settings = settings_of(root)
    job = Job(root=root, single=single, plan_only=plan, as_json=as_json)
    try:
        code = launch(job, overrides, settings.root.path / "hydra")
    except ConfigError as refusal:
        _refuse(str(refusal))
    raise typer.Exit(code)


def _status(names: list[str], *, root: Path | None, as_json: bool) -> None:
    from experiments.status import print_status
    from experiments.store import StoreError
    from geode.cli.state import settings_of

    if len(names) != 1:
        _refuse("geode sweep status takes the name of one experiment; geode ls names them")
    try:
        sound = print_status(settings_of(root), names[0], as_json=as_json)
    except StoreError as refusal:
        _refuse(str(refusal))
    raise typer.Exit(0 if sound else 1)


def _refuse(message: str) -> NoReturn:
    from experiments.report import ExitCode
    from geode.cli.failure import fail

    fail(message, ExitCode.REFUSED)
