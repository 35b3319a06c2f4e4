"""`geode ls`, `geode show` and `geode compare`: looking at results in the terminal."""

from pathlib import Path

import typer

_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")
_JSON = typer.Option(False, "--json", help="Print everything as JSON.")


def register(app: typer.Typer) -> None:
    """Add `ls`, `show`, `compare`, and, for those who change the simulated worker, `truth`."""
    app.command("ls", epilog="Example:  geode ls hook_ablation baseline")(ls)
    app.command("show", epilog="Example:  geode show 3fa2c1d9")(show)
    app.command("compare", epilog="Example:  geode compare hook_ablation --tasks")(compare)
    app.command("truth", hidden=True, epilog="Example:  geode truth long_run -o simulator_truth.json")(truth)


def ls(
    experiment: str = typer.Argument(None, help="An experiment, to list its cells."),
    variant: str = typer.Argument(None, help="One of its variants, to list its episodes."),
    as_json: bool = _JSON,
    root: Path | None = _ROOT,
) -> None:
    """List experiments, the cells of one, or the episodes of a cell. Exit code 1 if a record in them is damaged."""
    import json

    from analysis.ls import UnknownVariant, is_damaged, lines_to_json, list_what, print_lines
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    try:
        state = settings_of(root).root
        lines = list_what(state, experiment, variant)
    except (StoreError, UnknownVariant, ValueError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(lines_to_json(lines), ensure_ascii=False, indent=1))
    elif lines:
        print_lines(open_console(), lines)
    else:
        typer.echo(f"no experiments under {state.path}; try: geode sweep experiment=hook_ablation")
    if any(map(is_damaged, lines)):
        raise typer.Exit(1)


def show(
    episode: str = typer.Argument(..., help="An episode's key, its first 6 digits or more, or a folder."),
    full: bool = typer.Option(False, "--full", help="Cut nothing that the timeline holds."),
    as_json: bool = _JSON,
    root: Path | None = _ROOT,
) -> None:
    """Show what an episode is, what came of it, and everything that happened in it."""
    import json

    from analysis.show import EpisodeNotFound, find_folder, view_folder, view_to_json
    from analysis.show_text import print_view
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.records.timeline import TimelineNewer

    try:
        state = settings_of(root).root
        view = view_folder(state, find_folder(state, episode))
    except (EpisodeNotFound, StoreError, TimelineNewer, ValueError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(view_to_json(view), ensure_ascii=False, indent=1))
    else:
        print_view(open_console(), view, full=full)
    if view.damaged:
        raise typer.Exit(1)


def compare(
    experiment: str = typer.Argument(..., help="An experiment; geode ls names them. Or a log of another harness."),
    variants: list[str] = typer.Argument(
        None, help="Show only these; intervals stay those of all candidates. Or the second log."
    ),
    *,
    baseline: str = typer.Option(None, help="Another baseline than the one the experiment was planned with."),
    tasks: bool = typer.Option(False, "--tasks", help="Add the pass rate of each task, with an episode to look at."),
    pairs: bool = typer.Option(
        False, "--pairs", help="Add McNemar's table, and a pair of episodes for each moved task."
    ),
    usage: bool = typer.Option(False, "--usage", help="Add tokens, times, rounds, repairs and refused calls."),
    with_exit_code: bool = typer.Option(
        False,
        "--exit-code",
        help="End with the verdict on the one candidate: 0 KEEP, 3 REJECT, 4 UNDECIDED, 5 INVALID.",
    ),
    as_json: bool = _JSON,
    root: Path | None = _ROOT,
) -> None:
    """Compare the variants of an experiment with its baseline, paired by task, with a verdict for each.

    Two paths compare foreign logs instead, paired by task and attempt: MCPMark result directories, or .eval files. A
    name with a slash is a path: ./results. So do two experiments, or EXPERIMENT:VARIANT twice; without a variant,
    its baseline is meant.

    Ends with 0 whatever the verdicts are, unless --exit-code asks for one; with 1 if it could not compare.
    """
    import json

    from analysis.arms import names_arms
    from analysis.compare import compare as compare_cells
    from analysis.compare import comparison_to_json, exit_code
    from analysis.compare_table import print_comparison
    from analysis.foreign import is_log_path
    from analysis.terminal import open_console
    from analysis.truth import TruthRefused, load_truth
    from experiments.gate import EvidenceRefused
    from experiments.store import StoreError, list_experiments, load_cells
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.llm.simulated import fault_table_hash

    names = [experiment, *(variants or ())]
    try:
        state = settings_of(root).root
        pairwise = any(map(is_log_path, names)) or names_arms(state, names, list_experiments(state))
    except (StoreError, ValueError) as error:
        fail(str(error))
    if pairwise:
        if baseline or pairs or usage or with_exit_code:
            fail("two logs take --tasks and --json only: they have no plan in common, so no baseline and no verdict")
        _compare_logs(root, names, tasks=tasks, as_json=as_json)
        return
    try:
        cells = load_cells(state, experiment)
        known = load_truth(fault_table_hash())
        comparison = compare_cells(cells, baseline or cells[0].experiment.baseline, truth=known, only=variants or ())
        code = exit_code(comparison) if with_exit_code else 0
    except (StoreError, EvidenceRefused, TruthRefused, ValueError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(comparison_to_json(comparison), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        shown_root = str(root) if root else ""
        print_comparison(open_console(), comparison, tasks=tasks, pairs=pairs, usage=usage, root=shown_root)
    raise typer.Exit(code)


def _compare_logs(root: Path | None, names: list[str], *, tasks: bool, as_json: bool) -> None:
    import json

    from analysis.arms import parse_arm, read_arms
    from analysis.foreign import LogsRefused, is_log_path, read_run
    from analysis.foreign_compare import compare_runs, log_comparison_to_json
    from analysis.foreign_table import print_log_comparison
    from analysis.importers.files import ArchiveError
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    if len(names) != 2:
        fail(f"give two logs to compare, not {len(names)}: geode compare A.eval B.eval")
    try:
        if any(map(is_log_path, names)):
            first, second = (read_run(Path(name)) for name in names)
        else:
            first, second = read_arms(settings_of(root).root, *map(parse_arm, names))
        comparison = compare_runs(first, second)
    except (ArchiveError, LogsRefused, StoreError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(log_comparison_to_json(comparison), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        print_log_comparison(open_console(), comparison, tasks=tasks)


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
