"""`geode suite check`: whether a suite can be measured with."""

from pathlib import Path

import typer

_JSON = typer.Option(False, "--json", help="Print everything as JSON.")


def register(app: typer.Typer) -> None:
    """Add `suite`, whose commands look at suites and run no agent."""
    suite = typer.Typer(no_args_is_help=True, help="Look at suites: geode suite check ./my_suite.")
    suite.command("check", epilog="Example:  geode suite check ./my_suite")(check)
    suite.callback()(lambda: None)
    app.add_typer(suite, name="suite")


def check(
    where: str = typer.Argument(..., metavar="PATH", help="A suite's folder, or the name of an installed suite."),
    as_json: bool = _JSON,
) -> None:
    """Prove each task in both directions: solutions pass, untouched fixtures and wrong end states fail.

    Exit codes: 0 all is well; 1 something is to be mended; 2 the suite cannot be loaded.
    """
    import json
    from dataclasses import asdict

    from experiments.report import ExitCode
    from experiments.suites.check import check_suite
    from experiments.suites.loader import SuiteError
    from geode.cli.failure import fail

    try:
        # Here a bare name means the folder of that name, because a shell completes it so.
        checks = check_suite(str(Path(where).resolve()) if Path(where).is_dir() else where)
    except SuiteError as error:
        fail(str(error), ExitCode.REFUSED)
    if as_json:
        typer.echo(json.dumps([asdict(task) for task in checks], ensure_ascii=False, indent=1))
    else:
        for task in checks:
            word = "MEND" if task.problems else "ok"
            typer.echo(f"{word:4}  {task.task_id}: {task.passing} right and {task.failing} wrong end states proved")
            for line in task.problems:
                typer.echo(f"      {line}")
            for line in task.notes:
                typer.echo(f"      note: {line}")
        broken = sum(bool(task.problems) for task in checks)
        fine = f"{len(checks)} tasks are in order" if len(checks) > 1 else "the task is in order"
        typer.echo(f"{broken} of {len(checks)} tasks to be mended" if broken else fine)
    raise typer.Exit(1 if any(task.problems for task in checks) else 0)
