"""`geode archive` and `geode query`: records of others, and everything by SQL."""

from pathlib import Path

import typer

_ROOT_HELP = "The state root; by default GEODE_HOME, or ~/.geode."


def register(app: typer.Typer) -> None:
    """Add `archive` and `query`."""
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help="Import archives, check figures, rebuild what is derived."
    )
    group.callback()(lambda: None)
    group.command("import", epilog="Example:  geode archive import ../shared/archive/mcpmark")(import_archive)
    group.command("check", epilog="Example:  geode archive check --golden GOLDEN.json --only mcpmark")(check)
    group.command("rebuild", epilog="Example:  geode archive rebuild")(rebuild)
    app.add_typer(group, name="archive")
    app.command("query", epilog='Example:  geode query "SELECT * FROM cell_totals" --format md')(query)


def import_archive(
    path: Path = typer.Argument(..., help="An archive, one of its folders, one run, or one .eval log."),
    as_json: bool = typer.Option(False, "--json", help="Print what was imported as JSON."),
    root: Path = typer.Option(None, help=_ROOT_HELP),
) -> None:
    """Import an archive (MCPMark, Inspect logs) into the warehouse and MLflow. Doing it again replaces it."""
    import json

    from analysis.archives import import_archive
    from analysis.importers.files import ArchiveError
    from analysis.reports import print_import
    from analysis.warehouse import Warehouse, WarehouseError
    from experiments.tracking import log_imported
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.clock import SystemClock

    settings = settings_of(root)
    try:
        imported = import_archive(Warehouse(path=settings.root.warehouse), path, SystemClock())
    except (ArchiveError, WarehouseError) as error:
        fail(str(error))
    if as_json:
        typer.echo(json.dumps(imported.as_json(), ensure_ascii=False, indent=1))
    else:
        print_import(imported)
    try:
        log_imported(settings, imported.tracked)
    # MLflow raises errors of many libraries. Whatever it was, the warehouse has the import, and that must be said.
    except Exception as error:  # noqa: BLE001
        cause = f"{type(error).__name__}: {error}"
        fail(f"the warehouse has the archive, MLflow has not: {cause}; the same command tries again")


def check(
    golden: Path = typer.Option(..., help="The file of published figures."),
    only: str = typer.Option("", help="Only figures whose name begins with this, e.g. mcpmark."),
    as_json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
    root: Path = typer.Option(None, help=_ROOT_HELP),
) -> None:
    """Compute published figures from what was imported, and compare. Exit code 0 if every recomputable one matches."""
    import json

    from analysis.figures import MapError, shipped_maps
    from analysis.golden import GoldenError, as_json_rows, passed, read_entries
    from analysis.golden import check as check_entries
    from analysis.reports import print_checked
    from analysis.warehouse import Warehouse, WarehouseError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    try:
        entries = read_entries(golden, only)
        with Warehouse(path=settings_of(root).root.warehouse).read() as reading:
            checked = check_entries(entries, shipped_maps(), reading)
    except (GoldenError, MapError, WarehouseError) as error:
        fail(str(error), 2)
    if as_json:
        typer.echo(json.dumps(as_json_rows(checked), ensure_ascii=False, indent=1))
    else:
        print_checked(checked)
    raise typer.Exit(0 if passed(checked) else 1)


def rebuild(root: Path = typer.Option(None, help=_ROOT_HELP)) -> None:
    """Write every finished cell anew into the warehouse and MLflow. Imported archives stay as they are."""
    from analysis.rebuild import installed_sinks
    from analysis.rebuild import rebuild as rebuild_all
    from analysis.reports import print_rebuilt
    from analysis.warehouse import Warehouse, WarehouseError
    from experiments.sink_turns import SinksBusy
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    settings = settings_of(root)
    warehouse = Warehouse(path=settings.root.warehouse)
    try:
        rebuilt = rebuild_all(settings, installed_sinks())
        with warehouse.read() as reading:
            imports = reading.query("SELECT source, path, attempts FROM imports ORDER BY source, path")
    except (WarehouseError, SinksBusy) as error:
        fail(str(error))
    print_rebuilt(rebuilt, imports)
    if rebuilt.problems:
        fail(f"{len(rebuilt.problems)} problems:\n" + "\n".join(f"  {problem}" for problem in rebuilt.problems))


def query(
    sql: str = typer.Argument(None, help="One SELECT in DuckDB's SQL."),
    style: str = typer.Option("table", "--format", help="table, csv, json or md."),
    list_all: bool = typer.Option(False, "--list", help="List tables and views with their columns."),
    limit: int = typer.Option(1000, min=1, help="Print at most so many rows of a table; other formats have all."),
    root: Path = typer.Option(None, help=_ROOT_HELP),
) -> None:
    """Ask the warehouse. It is opened for reading only, and reaches no file and no network."""
    from analysis.reports import listing, names, open_console
    from analysis.tables import TableFormat, print_table
    from analysis.warehouse import QueryRefused, Warehouse, WarehouseError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of

    if style not in set(TableFormat):
        fail(f"--format is {style!r}; it can be {', '.join(TableFormat)}", 2)
    if (sql is None) == (not list_all):
        fail('give one SELECT, or --list; for example: geode query "SELECT * FROM cell_totals"', 2)
    form = TableFormat(style)
    try:
        with Warehouse(path=settings_of(root).root.warehouse).read() as reading:
            if list_all:
                answer = listing(reading.relations())
            else:
                try:
                    answer = reading.query(sql, limit=limit if form is TableFormat.TABLE else None)
                except QueryRefused as error:
                    fail(f"{error}\n{names(reading.relations())}")
    except WarehouseError as error:
        fail(str(error))
    print_table(open_console(), answer, form)
    if answer.more:
        typer.echo(f"geode: the first {limit} rows; more with --limit, all with --format csv", err=True)
