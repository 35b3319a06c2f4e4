"""`geode judge agreement`, `calibration` and `compare`: what judgments on record say of judges, and of variants."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from judges.rubric import Dimension, Rubric

_JUDGE_HELP = "An engine that has judged, by its name; ENGINE@ID, or ENGINE@ID/QUESTIONS, where there are several."
_ON_HELP = "An experiment, EXPERIMENT:VARIANT, an episode, .eval logs or a folder of them; all experiments by default."
_RUBRIC_HELP = "A file of configs/rubric by name, or a path."
_ROOT_HELP = "The state root; by default GEODE_HOME, or ~/.geode."


def add_commands(judge: typer.Typer) -> None:
    """Add `agreement`, `calibration` and `compare` to the group `judge`."""
    judge.command("agreement", epilog="Example:  geode judge agreement llm jev rules --on jev_study")(agreement)
    judge.command("calibration", epilog="Example:  geode judge calibration jev -d goal_met -o jev.png")(calibration)
    judge.command("compare", epilog="Example:  geode judge compare jev hook_ablation --rubric task_quality")(compare)


def agreement(
    names: list[str] = typer.Argument(..., metavar="JUDGE...", help=_JUDGE_HELP),
    *,
    on: list[str] = typer.Option([], "--on", help=_ON_HELP),
    rubric: str = typer.Option("task_quality", "--rubric", "-r", help=_RUBRIC_HELP),
    dimension: list[str] = typer.Option([], "--dimension", "-d", help="Only this one, with its table of confusion."),
    confidence: float = typer.Option(0.95, min=0.5, max=0.999, help="Of the intervals."),
    draws: int = typer.Option(1_000, min=100, max=100_000, help="Draws of families behind each interval."),
    root: Path = typer.Option(None, help=_ROOT_HELP),
    as_json: bool = typer.Option(False, "--json", help="Print every figure as JSON."),
) -> None:
    """Say how far judges agree on the same transcripts, what each took, and how far each agrees with itself.

    Where a judge was asked several times (geode judge X --repeat 3), its noise is told apart from that of runs and
    scenarios; with a single JUDGE that is all there is to say. Exit codes: 0 computed; 2 refused.
    """
    from rich.console import Console

    from analysis.agreement_screen import agreement_to_json, print_agreement, print_expenses, print_noise
    from analysis.importers.files import ArchiveError
    from analysis.judged import NothingToJudge
    from analysis.on_record import NoJudgments, find_all_subjects, on_record
    from analysis.show import EpisodeNotFound
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.config.config_dir import config_dir
    from judges.agreement import agreement as compare
    from judges.expense import expenses
    from judges.resampling import Resampling
    from judges.rubric import find_rubric
    from judges.variance import Variance, variance_components

    how = Resampling(confidence=confidence, draws=draws)
    settings = settings_of(root)
    try:
        asked = find_rubric(config_dir() / "rubric", rubric)
        chosen = _chosen(asked, dimension)
        record = on_record(find_all_subjects(settings.root, on), names, asked)
        found = None
        if len(names) > 1:
            with Console(stderr=True).status("drawing families"):  # a minute for many episodes and dimensions
                found = compare(record.judges, asked, record.families, how, only=dimension)
    except (NothingToJudge, EpisodeNotFound, ArchiveError, StoreError, NoJudgments) as error:
        fail(str(error), 2)
    except ValueError as error:  # a rubric or a ledger that cannot be read, judges that cannot stand side by side
        fail(str(error), 2)
    noise = [
        of
        for judge in record.judges
        if found is None or any(judgment.repetition for judgment in judge.judgments)
        for each in chosen
        if isinstance(of := variance_components(judge, each.name, record.origins, how), Variance)
    ]
    if as_json:
        typer.echo(agreement_to_json(found, noise, expenses(record.judges), record.problems))
        return
    console = open_console()
    if found is not None:
        print_agreement(console, found, confusion=bool(dimension))
        print_expenses(console, expenses(record.judges))
    if noise:
        print_noise(console, noise, confidence)
    elif found is None:
        fail(f"{names[0]} scored too little to say anything of its noise: two scenarios are needed", 2)
    for problem in record.problems:
        typer.echo(f"geode: {problem}", err=True)


def calibration(
    name: str = typer.Argument(..., metavar="JUDGE", help=_JUDGE_HELP),
    *,
    against: str = typer.Option(
        "outcomes", help="What is true: outcomes (the verifiers'), or a file of labels (episode, dimension, label)."
    ),
    on: list[str] = typer.Option([], "--on", help=_ON_HELP),
    rubric: str = typer.Option("task_quality", "--rubric", "-r", help=_RUBRIC_HELP),
    dimension: list[str] = typer.Option([], "--dimension", "-d", help="Only this one; needed for a picture."),
    picture: Path = typer.Option(None, "-o", "--picture", help="Draw the reliability diagram: a .png or .svg."),
    fit: bool = typer.Option(
        False, "--fit", help="Fit thresholds and store them, bound to served model and questions."
    ),
    good_from: float = typer.Option(0.5, min=0.0, max=1.0, help="The normalised value from which on a value is good."),
    confidence: float = typer.Option(0.95, min=0.5, max=0.999, help="Of the intervals."),
    draws: int = typer.Option(1_000, min=100, max=100_000, help="Draws of families behind each interval."),
    root: Path = typer.Option(None, help=_ROOT_HELP),
    as_json: bool = typer.Option(False, "--json", help="Print every figure as JSON."),
) -> None:
    """Say whether a judge's probabilities can be believed, and fit thresholds on what is known.

    A stored threshold is shown with what it was fitted for, and refused where the served model or the questions are
    others. Without one there are only numbers. Exit codes: 0 computed; 1 a threshold could not be fitted or does not
    hold; 2 refused.
    """
    from analysis.calibration_screen import calibration_to_json, print_calibration
    from analysis.calibrations import draw, measure
    from analysis.importers.files import ArchiveError
    from analysis.judged import NothingToJudge
    from analysis.on_record import NoJudgments, find_all_subjects, on_record
    from analysis.show import EpisodeNotFound
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.clock import SystemClock
    from geode.config.config_dir import config_dir
    from judges.resampling import Resampling
    from judges.rubric import find_rubric

    settings = settings_of(root)
    try:
        asked = find_rubric(config_dir() / "rubric", rubric)
        record = on_record(find_all_subjects(settings.root, on), [name], asked)
        measured = measure(
            record,
            asked,
            _chosen(asked, dimension),
            against=against,
            good_from=good_from,
            how=Resampling(confidence=confidence, draws=draws),
            thresholds=settings.root.judgments / "thresholds",
            fitted_at=SystemClock() if fit else None,
        )
        if picture is not None:
            draw(measured, picture)
    except (NothingToJudge, EpisodeNotFound, ArchiveError, StoreError, NoJudgments) as error:
        fail(str(error), 2)
    except ValueError as error:  # a rubric, a ledger or labels that cannot be read, a judge without probabilities
        fail(str(error), 2)
    if as_json:
        typer.echo(calibration_to_json(measured, record.problems))
    else:
        print_calibration(open_console(), measured)
        for problem in record.problems:
            typer.echo(f"geode: {problem}", err=True)
    if any(of.no_threshold and (fit or of.refused) for of in measured):
        raise typer.Exit(1)


def compare(
    name: str = typer.Argument(..., metavar="JUDGE", help=_JUDGE_HELP),
    experiment: str = typer.Argument(..., metavar="EXPERIMENT", help="The experiment whose variants are compared."),
    *,
    rubric: str = typer.Option("task_quality", "--rubric", "-r", help=_RUBRIC_HELP),
    dimension: list[str] = typer.Option([], "--dimension", "-d", help="Only this one."),
    root: Path = typer.Option(None, help=_ROOT_HELP),
    as_json: bool = typer.Option(False, "--json", help="Print every figure as JSON."),
) -> None:
    """Compare the variants of an experiment by what a judge says of their episodes, under the rule of the gate.

    What is unscored is in no mean, is counted beside it, and makes a verdict UNDECIDED if it could change it. Exit
    codes: 0 computed; 2 refused.
    """
    from analysis.judged import NothingToJudge
    from analysis.judged_screen import judged_to_json, print_judged
    from analysis.on_record import NoJudgments, find_all_subjects, on_record
    from analysis.show import EpisodeNotFound
    from analysis.terminal import open_console
    from experiments.gate import gate_spec
    from experiments.judged import judged_evidence, judged_fixed
    from experiments.store import StoreError, load_cells
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.config.config_dir import config_dir
    from judges.rubric import find_rubric

    settings = settings_of(root)
    try:
        asked = find_rubric(config_dir() / "rubric", rubric)
        cells = load_cells(settings.root, experiment)
        record = on_record(find_all_subjects(settings.root, [experiment]), [name], asked)
        spec, baseline = gate_spec(cells[0].experiment.ruler), cells[0].experiment.baseline
        found = [judged_evidence(cells, baseline, record.judges[0], of.name) for of in _chosen(asked, dimension)]
    except (NothingToJudge, EpisodeNotFound, StoreError, NoJudgments) as error:
        fail(str(error), 2)
    except ValueError as error:  # a rubric or a ledger that cannot be read, evidence that cannot be compared
        fail(str(error), 2)
    decided = [(evidence, judged_fixed(evidence, spec)) for evidence in found]
    if as_json:
        typer.echo(judged_to_json(name, asked, decided, record.problems))
        return
    print_judged(open_console(), name, asked, decided, spec.confidence)
    for problem in record.problems:
        typer.echo(f"geode: {problem}", err=True)


def _chosen(rubric: "Rubric", names: list[str]) -> "tuple[Dimension, ...]":
    """Return the named dimensions of a rubric; all of them without a name."""
    from judges.rubric import RubricError

    try:
        return tuple(rubric.dimension(name) for name in names) or rubric.dimensions
    except KeyError as error:
        raise RubricError(error.args[0]) from error
