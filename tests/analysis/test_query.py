"""`geode query` and `geode archive` as a person or a script uses them: output, messages, exit codes."""

import csv
import io
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from analysis.cli import register
from analysis.importers.mcpmark import read_archive
from analysis.importers.mcpmark_load import load
from analysis.tables import TableFormat, print_table
from analysis.warehouse import Table, Warehouse
from geode.config.paths import StateRoot

README = Path(__file__).parents[2] / "README.md"
FIXTURE = Path(__file__).parents[1] / "fixtures" / "mcpmark"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    load(Warehouse(path=StateRoot(folder).warehouse), read_archive(FIXTURE), datetime(2030, 2, 1, tzinfo=UTC))
    return folder


def geode(*arguments: str | Path) -> Result:
    app = typer.Typer(pretty_exceptions_enable=False)
    register(app)
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


PASSES = "SELECT task, passed FROM mcpmark_attempt WHERE mcp = 'postgres' ORDER BY task"


def test_every_query_of_the_readme_is_one(root: Path) -> None:
    """It is typed by whoever has just run the demo; a column that is not there ends in an error of the binder."""
    queries = re.findall(r'geode query .*?"(SELECT [^"]*)"', README.read_text(encoding="utf-8"))
    assert queries
    for query in queries:
        assert geode("query", "--root", root, query).exit_code == 0, query


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("csv", "task,passed\nlibrary__merge_branches,false\nlibrary__overdue_loans,true\n"),
        (
            "md",
            "| task | passed |\n| --- | --- |\n"
            "| library__merge_branches | false |\n| library__overdue_loans | true |\n",
        ),
    ],
)
def test_an_answer_is_written_in_the_format_asked_for(style: str, expected: str, root: Path) -> None:
    """A script and a document each get exactly their own form, with nothing around it."""
    result = geode("query", PASSES, "--format", style, "--root", root)
    assert (result.exit_code, result.stdout) == (0, expected)


def test_json_keeps_types_and_every_column(root: Path) -> None:
    """Two columns of one name are two values; losing one silently would be a false record."""
    sql = "SELECT 1.5 AS x, 2 AS x, NULL AS y, TIMESTAMPTZ '2030-01-01 00:00:00+00' AS t, [1, NULL] AS l, 'NaN'::DOUBLE"
    result = geode("query", f"{sql} AS n", "--format", "json", "--root", root)
    assert json.loads(result.stdout) == [
        {"x": 1.5, "x_2": 2, "y": None, "t": "2030-01-01T00:00:00+00:00", "l": [1, None], "n": "nan"}
    ]


def test_a_table_is_cut_only_with_a_word_about_it(root: Path) -> None:
    """Rows that are left out must not look like rows that do not exist."""
    result = geode("query", "SELECT seq FROM tool_calls", "--limit", "2", "--root", root)
    assert (result.exit_code, "the first 2 rows" in result.stderr) == (0, True)
    whole = geode("query", "SELECT seq FROM tool_calls", "--limit", "2", "--format", "csv", "--root", root)
    assert (len(whole.stdout.splitlines()), whole.stderr) == (10, "")


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM episode", "episode does not exist"),
        ("DELETE FROM runs", "read-only"),
        ("COPY (SELECT 1) TO '/nonexistent/out.csv'", "file system operations are disabled"),
        ("", "the SQL has no statement"),
        ("SELECT 1; SELECT 2", "the SQL has 2 statements; give one"),
        ("SELECT \udced", 'column "\ufffd" was not found'),
    ],
)
def test_bad_sql_says_why_and_what_there_is(sql: str, cause: str, root: Path) -> None:
    """Whoever misspells a table needs their names, and nobody may write."""
    result = geode("query", sql, "--root", root)
    assert (result.exit_code, result.stdout) == (1, "")
    assert cause in result.stderr
    assert "tables: attempts, cells, costs, episodes," in result.stderr
    assert "views: cell_totals, inspect_archive_logs," in result.stderr


def test_the_list_has_tables_views_and_columns(root: Path) -> None:
    """What can be asked must be found without the source."""
    result = geode("query", "--list", "--format", "csv", "--root", root)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {"relation": "episodes", "kind": "table", "column": "outcome", "type": "VARCHAR"} in rows
    assert {"relation": "cell_totals", "kind": "view", "column": "pass_rate", "type": "DOUBLE"} in rows


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("query",), "give one SELECT, or --list"),
        (("query", "SELECT 1", "--list"), "give one SELECT, or --list"),
        (("query", "SELECT 1", "--format", "xml"), "--format is 'xml'; it can be table, csv, json, md"),
    ],
)
def test_a_mistaken_command_names_the_value_and_the_choices(arguments: tuple[str, ...], cause: str, root: Path) -> None:
    """Exit code 2: nothing was tried."""
    result = geode(*arguments, "--root", root)
    assert (result.exit_code, cause in result.stderr) == (2, True)


def test_without_a_warehouse_the_message_says_how_to_get_one(tmp_path: Path) -> None:
    """The first command of a new user may be a query."""
    result = geode("query", "SELECT 1", "--root", tmp_path)
    assert (result.exit_code, "geode archive import PATH" in result.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_values_survive_each_format() -> None:
    """Text of others holds separators, line ends and escape sequences; none may break a format or the screen."""
    nasty = 'a|b,"c"\nd\x1b[31m 한글'
    row = (nasty, Decimal("1.50"), date(2030, 1, 2), b"\x01", None)
    table = Table(columns=("text", "n", "d", "b", "none"), types=("VARCHAR",) * 5, rows=(row,))

    def written(style: TableFormat) -> str:
        console = Console(file=io.StringIO(), width=120)
        print_table(console, table, style)
        return str(console.file.getvalue())  # type: ignore[attr-defined]

    assert list(csv.reader(io.StringIO(written(TableFormat.CSV))))[1] == [nasty, "1.5", "2030-01-02", "01", ""]
    assert json.loads(written(TableFormat.JSON))[0]["text"] == nasty
    assert written(TableFormat.MD).splitlines()[2].startswith('| a\\|b,"c"<br>d')
    assert "\x1b" not in written(TableFormat.TABLE)


def golden(folder: Path, value: int) -> Path:
    path = folder / "GOLDEN.json"
    figures = [
        {"name": "mcpmark.passes", "published": None, "recomputed": value, "recomputable_from_pack": True},
        {"name": "mcpmark.rls.live_replay", "published": [18, 0], "recomputable_from_pack": False},
        {"name": "sil.other", "published": 1, "recomputable_from_pack": True},
    ]
    path.write_text(json.dumps({"figures": figures}))
    return path


@pytest.mark.parametrize(("value", "code", "status"), [(4, 0, "match"), (5, 1, "differs")])
def test_a_check_ends_with_what_it_found(value: int, code: int, status: str, root: Path, tmp_path: Path) -> None:
    """CI reads the exit code: 0 only if every recomputable figure matches."""
    arguments = ("archive", "check", "--golden", golden(tmp_path, value), "--only", "mcpmark", "--root", root)
    result = geode(*arguments)
    assert result.exit_code == code
    assert "cannot be computed" in result.stdout
    rows = json.loads(geode(*arguments, "--json").stdout)
    assert [(row["name"], row["expected"], row["ours"], row["status"]) for row in rows] == [
        ("mcpmark.passes", value, 4, status),
        ("mcpmark.rls.live_replay", [18, 0], None, "cannot be computed here"),
    ]


def test_a_check_that_cannot_begin_is_told_apart_from_a_difference(root: Path, tmp_path: Path) -> None:
    """Exit code 2, not 1: nothing was compared."""
    for arguments in (("--golden", tmp_path / "none.json"), ("--golden", golden(tmp_path, 4), "--only", "tau2")):
        assert geode("archive", "check", *arguments, "--root", root).exit_code == 2
    unimported = geode("archive", "check", "--golden", golden(tmp_path, 4), "--root", tmp_path / "new")
    assert (unimported.exit_code, "no warehouse" in unimported.stderr) == (2, True)


def test_a_refused_import_writes_nothing(tmp_path: Path) -> None:
    """Not even an empty warehouse: the next command must not find half of something."""
    home = tmp_path / "root"
    for path in (tmp_path / "nowhere", FIXTURE / "notes.txt", tmp_path):
        result = geode("archive", "import", path, "--root", home)
        assert (result.exit_code, result.stdout) == (1, "")
        assert str(path) in result.stderr
    assert not home.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # MLflow's own use of SQLAlchemy
def test_an_import_tells_what_it_kept_and_fills_both_stores(tmp_path: Path) -> None:
    """One command, and the archive stands in DuckDB and in MLflow; done twice, it stands there once."""
    from experiments.tracking_store import TrackingStore
    from geode.config.settings import read_settings

    for _ in range(2):
        result = geode("archive", "import", FIXTURE, "--root", tmp_path)
        assert result.exit_code == 0, result.stderr
    assert "4 result directories, 7 attempts, 3 summaries, 4 execution logs with 9 calls" in result.stdout
    assert "1  attempt_aborted" in result.stdout
    assert geode("query", "SELECT count(*) FROM episodes", "--format", "csv", "--root", tmp_path).stdout.endswith("7\n")
    store = TrackingStore(read_settings(tmp_path, {}))
    runs = store.runs(store.experiment("geode/mcpmark", "").experiment_id, "")
    assert sorted(run.metrics["attempts"] for run in runs) == [0, 2, 2, 3]
