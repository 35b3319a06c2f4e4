"""`geode ls`, `geode show` and `geode compare`: looking at results in the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from analysis.foreign_table import LogScreen

_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")
_JSON = typer.Option(False, "--json", help="Print everything as JSON.")


def register(app: typer.Typer) -> None:
    """Add `ls`, `show`, `compare`, and, for those who change the simulated worker, `truth`."""
    app.command("ls", epilog="Example:  geode ls hook_ablation baseline")(ls)
    app.command("show", epilog="Example:  geode show 3fa2c1d9")(show)
    app.command("compare", epilog="Example:  geode compare hook_ablation --tasks")(compare)
    app.command("truth", hidden=True, epilog="Example:  geode truth long_run -o simulator_truth.json")(truth)


def ls(
    experiment: str = typer.Argument(None, help="An experiment, to list its cells; or a foreign log, its attempts."),
    variant: str = typer.Argument(None, help="One of its variants, to list its episodes."),
    task: str = typer.Option(None, "--task", help="List the episodes of this task alone, of all variants or of one."),
    as_json: bool = _JSON,
    root: Path | None = _ROOT,
) -> None:
    """List experiments, the cells of one, the episodes of a cell or a task, or the attempts of a foreign log.

    Exit code 1 if a record in them is damaged.
    """
    import json

    from analysis.foreign import LogsRefused
    from analysis.foreign_logs import is_log_path, read_log
    from analysis.importers.files import ArchiveError
    from analysis.ls import UnknownVariant, is_damaged, lines_to_json, list_what, print_lines
    from analysis.ls_foreign import attempt_lines, attempts_to_json, print_attempts
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    try:
        if experiment and is_log_path(experiment):
            attempts = attempt_lines(read_log(Path(experiment).expanduser()), task)
            if as_json:
                typer.echo(json.dumps(attempts_to_json(attempts), ensure_ascii=False, allow_nan=False, indent=1))
            else:
                print_attempts(open_console(), attempts)
            return
        state = settings_of(root).root
        lines = list_what(state, experiment, variant, task)
    except (ArchiveError, LogsRefused, StoreError, UnknownVariant, ValueError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(lines_to_json(lines), ensure_ascii=False, indent=1))
    elif lines:
        print_lines(open_console(), lines, str(root) if root else "")
    else:
        typer.echo(f"no experiments under {state.path}; try: geode sweep experiment=hook_ablation")
    if any(map(is_damaged, lines)):
        raise typer.Exit(1)


def show(
    episode: str = typer.Argument(
        ...,
        help="An episode's key, its first 6 digits or more, or a folder. Of foreign logs LOG.eval#SAMPLE/EPOCH, or"
        " the folder of an MCPMark task.",
    ),
    full: bool = typer.Option(False, "--full", help="Cut nothing that the record holds."),
    as_json: bool = _JSON,
    root: Path | None = _ROOT,
) -> None:
    """Show what an episode is, what came of it, and everything that happened in it."""
    import json

    from analysis.foreign import LogsRefused
    from analysis.importers.files import ArchiveError
    from analysis.show import EpisodeNotFound, find_folder, view_folder, view_to_json
    from analysis.show_foreign import foreign_view_to_json, is_foreign, view_foreign
    from analysis.show_foreign_text import print_foreign_view
    from analysis.show_text import print_view
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.records.timeline import TimelineNewer

    try:
        if is_foreign(episode):
            foreign = view_foreign(episode)
            if as_json:
                typer.echo(json.dumps(foreign_view_to_json(foreign), ensure_ascii=False, indent=1))
            else:
                print_foreign_view(open_console(), foreign, full=full)
            return
        state = settings_of(root).root
        view = view_folder(state, find_folder(state, episode))
    except (ArchiveError, EpisodeNotFound, LogsRefused, StoreError, TimelineNewer, ValueError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(view_to_json(view), ensure_ascii=False, indent=1))
    else:
        print_view(open_console(), view, full=full)
    if view.damaged:
        raise typer.Exit(1)


def compare(
    experiment: str = typer.Argument(..., help="An experiment; geode ls names them. Or the first of several logs."),
    variants: list[str] = typer.Argument(
        None, help="Show only these; intervals stay those of all candidates. Or the other logs."
    ),
    *,
    baseline: str = typer.Option(None, help="Another baseline than the one the experiment was planned with."),
    tasks: bool = typer.Option(False, "--tasks", help="Add every task, with an episode or a command to look at."),
    pairs: bool = typer.Option(
        False, "--pairs", help="Add McNemar's table, and a pair of episodes for each moved task."
    ),
    usage: bool = typer.Option(False, "--usage", help="Add tokens, times, rounds, repairs and refused calls."),
    score: list[str] = typer.Option(None, "--score", help="Of logs: show this score alone. May be given again."),
    with_exit_code: bool = typer.Option(
        False,
        "--exit-code",
        help="End with the verdict on the one candidate: 0 KEEP, 3 REJECT, 4 UNDECIDED, 5 INVALID; on a log 4 or 5.",
    ),
    as_json: bool = _JSON,
    root: Path | None = _ROOT,
) -> None:
    """Compare the variants of an experiment with its baseline, paired by task, with a verdict for each.

    Several paths compare foreign logs instead, each with the first, paired by task and attempt: MCPMark result
    directories, or .eval files. A name with a slash is a path: ./results. So do several experiments, or
    EXPERIMENT:VARIANT several times; without a variant, its baseline is meant. Logs did not run side by side, so
    none is kept: their verdict is UNDECIDED, or INVALID where rulers differ or too little was measured.

    Ends with 0 whatever the verdicts are, unless --exit-code asks for one; with 1 if it could not compare.
    """
    from analysis.arms import names_arms
    from analysis.foreign_logs import is_log_path
    from analysis.foreign_table import LogScreen
    from experiments.store import StoreError, list_experiments
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    names = [experiment, *(variants or ())]
    try:
        state = settings_of(root).root
        logs = any(map(is_log_path, names)) or names_arms(state, names, list_experiments(state))
    except (StoreError, ValueError) as error:
        fail(str(error))
    if logs and baseline:
        fail(f"the first log is the baseline: put {baseline!r} first instead of --baseline")
    if score and not logs:
        fail("an experiment has no scores to choose from; --score is for logs")
    if logs:
        screen = LogScreen(tasks=tasks, scores=tuple(score or ()), root=str(root or ""))
        _compare_logs(root, names, screen, as_json=as_json, with_exit_code=with_exit_code)
    else:
        shown = {"tasks": tasks, "pairs": pairs, "usage": usage}
        _compare_variants(root, names, baseline, shown, as_json=as_json, with_exit_code=with_exit_code)


def _compare_variants(
    root: Path | None,
    names: list[str],
    baseline: str | None,
    shown: dict[str, bool],
    *,
    as_json: bool,
    with_exit_code: bool,
) -> None:
    import json

    from analysis.compare import compare, comparison_to_json, exit_code
    from analysis.compare_table import print_comparison
    from analysis.terminal import open_console
    from analysis.truth import TruthRefused, load_truth
    from experiments.gate import EvidenceRefused
    from experiments.store import StoreError, load_cells
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.llm.simulated import fault_table_hash

    try:
        cells = load_cells(settings_of(root).root, names[0])
        known = load_truth(fault_table_hash())
        comparison = compare(cells, baseline or cells[0].experiment.baseline, truth=known, only=names[1:])
        code = exit_code(comparison) if with_exit_code else 0
    except (StoreError, EvidenceRefused, TruthRefused, ValueError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(comparison_to_json(comparison), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        print_comparison(open_console(), comparison, root=str(root or ""), **shown)
    raise typer.Exit(code)


def _compare_logs(
    root: Path | None, names: list[str], screen: "LogScreen", *, as_json: bool, with_exit_code: bool
) -> None:
    import json

    from analysis.arms import parse_arm, read_arms
    from analysis.foreign import LogsRefused
    from analysis.foreign_compare import compare_runs, log_comparison_to_json, logs_exit_code
    from analysis.foreign_logs import is_log_path, read_logs
    from analysis.foreign_table import print_log_comparison
    from analysis.importers.files import ArchiveError
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    try:
        if any(map(is_log_path, names)):
            runs = read_logs(names)
        else:
            runs = read_arms(settings_of(root).root, [parse_arm(name) for name in names])
        comparison = compare_runs(runs)
        code = logs_exit_code(comparison) if with_exit_code else 0
        if as_json:
            typer.echo(json.dumps(log_comparison_to_json(comparison), ensure_ascii=False, allow_nan=False, indent=1))
        else:
            print_log_comparison(open_console(), comparison, screen)
    except (ArchiveError, LogsRefused, StoreError) as error:
        fail(str(error))
    raise typer.Exit(code)


def truth(
    experiment: str = typer.Argument(..., help="A long run of the simulated worker."),
    output: Path = typer.Option(..., "-o", "--output", help="The file to write."),
    root: Path | None = _ROOT,
) -> None:
    """Distil what the simulated worker really does from a long run."""
    from analysis.truth import TruthRefused, distil_truth
    from experiments.store import StoreError, load_cells
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.llm.simulated import fault_table_hash
    from geode.records.folder import write_atomically

    try:
        table = distil_truth(load_cells(settings_of(root).root, experiment), fault_table_hash())
        write_atomically(output, table.model_dump_json(by_alias=True, indent=1) + "\n")
    except (StoreError, TruthRefused, ValueError) as error:
        fail(str(error))
    typer.echo(f"{output}: {len(table.entries)} scaffolds on {len(table.entries[0].tasks)} tasks")
