"""`geode gate`: how far the rule that decides can be trusted."""

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    """Add `gate`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="How far the gate can be trusted.")
    group.callback()(lambda: None)
    group.command("calibrate", epilog="Example:  geode gate calibrate --sweeps 20 --drift 1 --heavy-tails")(calibrate)
    group.command("plan", epilog="Example:  geode gate plan --tasks 22 --families 11 --repeats 10 --rate 0.7")(plan)
    app.add_typer(group, name="gate")


def calibrate(
    *,
    sweeps: int = typer.Option(200, min=1, help="Sweeps of placebos; a fifth as many with real improvements."),
    placebos: int = typer.Option(8, min=1, max=8, help="Candidates that truly do nothing."),
    repeats: int = typer.Option(10, min=2, help="Of each task in a sweep."),
    tasks: str = typer.Option("", help="Tasks of the suite workspace, with commas; by default the demo's six."),
    drift: float = typer.Option(0.0, min=0.0, max=2.0, help="By how many sd all pass rates fall half-way."),
    heavy_tails: bool = typer.Option(False, "--heavy-tails", help="Bursts of failures and of INVALID episodes."),
    seed: int = typer.Option(0, min=0, help="Of everything that is drawn."),
    workers: int = typer.Option(0, min=0, help="Processes; by default one for each core."),
    root: Path = typer.Option(None, help="The state root; by default GEODE_HOME, or ~/.geode."),
    as_json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Measure on the simulator how often the gate keeps what does nothing, and how often what helps.

    Each sweep is run anew, by seeds of its own, through the production loop. Its outcomes are kept under the state
    root, its episodes are not. Stopped, the same command goes on. The default takes half an hour of two cores.

    Exit codes: 0 measured; 1 the gate keeps placebos more often than it promises, or something failed; 2 refused;
    130 interrupted, with the figures so far.
    """
    import json
    import os

    from experiments.calibration.calibrate import CalibrationStopped
    from experiments.calibration.calibrate import calibrate as measure
    from experiments.calibration.ledger import LedgerDamaged
    from experiments.calibration.placebos import NoPlacebo
    from experiments.calibration.report import as_json as to_json
    from experiments.calibration.report import as_text, exit_code
    from experiments.calibration.study import CalibrationSpec
    from experiments.calibration.weather import Weather
    from experiments.report import ExitCode
    from experiments.spec import ConfigError
    from experiments.suites.loader import SuiteError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.clock import SystemClock

    spec = CalibrationSpec(
        sweeps=sweeps,
        placebos=placebos,
        repeats=repeats,
        tasks=tuple(tasks.split(",")) if tasks else None,
        weather=Weather(drift_sd=drift, heavy_tails=heavy_tails),
        seed=seed,
    )
    try:
        found = measure(
            spec,
            settings_of(root).root,
            SystemClock(),
            workers=workers or os.cpu_count() or 1,
            say=lambda text: typer.echo(text, err=True),
        )
    except (ConfigError, SuiteError, NoPlacebo) as refusal:
        fail(str(refusal), ExitCode.REFUSED)
    except (CalibrationStopped, LedgerDamaged) as stop:
        fail(str(stop))
    typer.echo(json.dumps(to_json(found), ensure_ascii=False, indent=1) if as_json else as_text(found))
    raise typer.Exit(exit_code(found))


def plan(
    *,
    tasks: int = typer.Option(6, min=1, max=1_000, help="How many tasks."),
    families: int = typer.Option(0, min=0, help="In how many families; by default each task is one of its own."),
    repeats: int = typer.Option(30, min=1, max=100_000, help="Of each task with each seed."),
    seeds: int = typer.Option(1, min=1, max=1_000, help="How many seeds."),
    candidates: int = typer.Option(1, min=1, max=256, help="How many are compared with the baseline."),
    rate: float = typer.Option(0.5, min=0.0, max=1.0, help="How often the baseline passes each task."),
    confidence: float = typer.Option(0.95, min=0.5, max=0.999, help="Of the gate."),
    as_json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Compute the smallest true difference that the gate keeps with a probability of 80 %, before there is a suite.

    Outcomes are taken for independent. `geode sweep --plan` says the same of a sweep, from what is known of its tasks.
    """
    import json

    from experiments.detectable import Source, detect
    from experiments.power import Design, TaskOdds
    from experiments.preview import detectable_lines, detectable_to_json

    of_task = [number % (families or tasks) for number in range(tasks)]
    design = Design(
        tasks=tuple(TaskOdds(family=str(family), rate=rate) for family in of_task),
        pairs=seeds * repeats,
        candidates=candidates,
        confidence=confidence,
    )
    found = detect(design, {Source.GIVEN: tasks}, seeds)
    typer.echo(json.dumps(detectable_to_json(found), indent=1) if as_json else "\n".join(detectable_lines(found)))
