"""MCPMark archives: every attempt is kept, also the irregular ones, and what is irregular is said in words."""

import json
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.importers.files import DamagedArchive, UnknownArchive
from analysis.importers.mcpmark import Archive, read_archive
from analysis.importers.mcpmark_load import imported_runs, load
from analysis.importers.mcpmark_log import read_log
from analysis.warehouse import Warehouse

pytestmark = pytest.mark.slow

FIXTURE = Path(__file__).parents[1] / "fixtures" / "mcpmark"
AT = datetime(2030, 2, 1, tzinfo=UTC)
POSTGRES = "acme-20300101-mcpmark-verified-postgres"
FILESYSTEM = "acme-20300101-mcpmark-verified-filesystem"
RETRY = "acme-20300102-mcpmark-verified-filesystem-retry"
TABLES = (
    "runs", "cells", "episodes", "tool_calls", "costs", "import_issues", "mcpmark_attempts", "mcpmark_summaries",
    "imports",
)  # fmt: skip


@pytest.fixture(scope="module")
def archive() -> Archive:
    return read_archive(FIXTURE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "mcpmark"))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(path=tmp_path / "geode.duckdb")


@pytest.fixture(scope="module")
def loaded(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """The whole fixture, imported; for tests that only look."""
    warehouse = Warehouse(path=tmp_path_factory.mktemp("loaded") / "geode.duckdb")
    load(warehouse, archive, AT)
    return warehouse


def content(warehouse: Warehouse) -> dict[str, list[tuple[object, ...]]]:
    with warehouse.read() as reading:
        return {table: list(reading.query(f"SELECT * FROM {table} ORDER BY ALL").rows) for table in TABLES}


def rows(warehouse: Warehouse, sql: str) -> list[tuple[object, ...]]:
    with warehouse.read() as reading:
        return list(reading.query(sql).rows)


def issues_of(archive: Archive, folder: str) -> list[tuple[str, str]]:
    return [(issue.kind.value, issue.text) for issue in archive.issues if issue.episode_key.endswith(f"/{folder}")]


def test_every_attempt_is_kept(archive: Archive, loaded: Warehouse) -> None:
    """An attempt that is dropped changes every rate that is computed later."""
    assert {table: len(found) for table, found in content(loaded).items()} == {
        "runs": 4,
        "cells": 4,
        "episodes": 7,
        "tool_calls": 9,
        "costs": 6,
        "import_issues": len(archive.issues),
        "mcpmark_attempts": 7,
        "mcpmark_summaries": 3,
        "imports": 1,
    }
    assert rows(loaded, "SELECT task_id, outcome, score FROM episodes WHERE family = 'attic' ORDER BY ALL") == [
        ("attic__count_jars", "INVALID", None),
        ("attic__count_jars", "PASS", 1.0),
        ("attic__find_key", "FAIL", 0.0),
        ("attic__label_jars", "PASS", 1.0),
        ("attic__sort_boxes", "PASS", 1.0),
    ]


def test_each_irregularity_is_explained(archive: Archive) -> None:
    """A reader of the rows must be able to find out why one is strange."""
    assert Counter(issue.kind.value for issue in archive.issues) == {
        "attempt_aborted": 1,
        "attempt_over_timeout": 1,
        "error_not_flagged": 1,
        "field_missing": 1,
        "field_odd": 2,
        "field_unknown": 1,
        "file_not_imported": 1,
        "log_missing": 2,
        "log_torn": 1,
        "run_without_attempts": 1,
        "summary_contradicts_attempts": 1,
        "summary_contradicts_itself": 2,
        "summary_missing": 1,
        "time_zone_unknown": 3,
    }
    assert ("error_not_flagged", 'call 1 (execute_sql) returned an error as normal text: Error: relation "branch" '
            "does not exist") in issues_of(archive, "library__merge_branches")  # fmt: skip
    texts = {issue.kind.value: issue.text for issue in archive.issues}
    assert texts["summary_contradicts_attempts"].startswith("total_tasks is 1, not 2; successful_tasks is 0, not 1")
    assert "2 whole entries before the break are kept" in texts["log_torn"]


def test_an_aborted_attempt_counts_as_an_attempt_and_measures_nothing(archive: Archive, loaded: Warehouse) -> None:
    """It has `{}` for its usage, no log, and `[]` for its answer: that is what it says, not what is missing."""
    sql = "SELECT success, aborted, input_tokens, turn_count, has_log, final_answer FROM mcpmark_attempts WHERE aborted"
    assert rows(loaded, sql) == [(False, True, None, None, False, None)]
    assert [kind for kind, _ in issues_of(archive, "attic__count_jars") if kind != "log_missing"] == ["attempt_aborted"]


def test_an_odd_field_is_null_in_its_column_and_whole_in_meta(loaded: Warehouse) -> None:
    """Types are fixed; the file itself is kept beside them."""
    sql = "SELECT timeout, turn_count, agent_execution_time, task_execution_time, meta FROM mcpmark_attempts WHERE "
    found = rows(loaded, sql + "folder = 'attic__find_key'")[0]
    assert found[:4] == (None, None, None, 31.5)
    meta = json.loads(str(found[4]))
    assert (meta["turn_count"], meta["agent_execution_time"], meta["seed"]) == ("many", "30 s", 7)


def test_calls_keep_their_order_their_flag_and_their_text(loaded: Warehouse) -> None:
    """A failure is to be found by the flag and by the text: postgres-mcp flags no SQL error."""
    sql = "SELECT seq, tool, is_error, error_text, result FROM tool_calls WHERE episode_key LIKE '%{}' ORDER BY seq"
    assert rows(loaded, sql.format("library__merge_branches"))[0] == (
        1, "execute_sql", False, True, 'Error: relation "branch" does not exist'
    )  # fmt: skip
    assert rows(loaded, sql.format("attic__sort_boxes")) == [
        (1, "read_text_file", True, False, "ENOENT: no such file or directory"),
        (2, "move_file", False, False, "Moved"),
    ]
    overdue = rows(loaded, sql.format("library__overdue_loans"))
    assert overdue[1][4] == "[{'title': '도서관의 밤 — Überfällig ✅'}]"
    assert [row[0] for row in overdue] == [1, 2, 3]


def test_times_without_a_zone_are_never_points_in_time(loaded: Warehouse) -> None:
    """A guess at the zone would order runs of two machines wrongly."""
    assert rows(loaded, "SELECT DISTINCT started_at, ended_at FROM episodes") == [(None, None)]
    sql = "SELECT time_start FROM mcpmark_attempts WHERE folder = 'library__overdue_loans'"
    assert rows(loaded, sql) == [("2030-01-01T08:00:00.250000",)]


def test_importing_again_changes_nothing(archive: Archive, warehouse: Warehouse) -> None:
    """Whoever is not sure whether it was imported imports it again."""
    load(warehouse, archive, AT)
    once = content(warehouse)
    load(warehouse, archive, AT)
    assert content(warehouse) == once


@pytest.mark.parametrize("part", [RETRY, f"{RETRY}/acme-1__filesystem", f"{RETRY}/acme-1__filesystem/run-1"])
def test_a_part_replaces_only_itself(part: str, archive: Archive, warehouse: Warehouse, copy: Path) -> None:
    """A result directory or a run may be imported alone; all else stays as it is."""
    load(warehouse, archive, AT)
    before = content(warehouse)
    shutil.rmtree(copy / RETRY / "acme-1__filesystem" / "run-1" / "attic__find_key")
    load(warehouse, read_archive(copy / part), AT)
    sql = "SELECT run, count(*) FROM mcpmark_attempts GROUP BY run ORDER BY run"
    assert rows(warehouse, sql) == [(FILESYSTEM, 3), (POSTGRES, 2), (RETRY, 1)]
    after = content(warehouse)
    assert after["tool_calls"] == before["tool_calls"]
    assert [row for row in after["import_issues"] if row[1] != RETRY] == [
        row for row in before["import_issues"] if row[1] != RETRY
    ]


def test_what_vanished_from_a_result_directory_vanishes_here(
    archive: Archive, warehouse: Warehouse, copy: Path
) -> None:
    """Importing again must give what importing afresh gives, calls and issues included."""
    load(warehouse, archive, AT)
    shutil.rmtree(copy / POSTGRES / "acme-1__postgres" / "run-1" / "library__overdue_loans")
    (copy / RETRY / "acme-1__filesystem" / "run-1").rename(copy / RETRY / "acme-1__filesystem" / "run-2")
    load(warehouse, read_archive(copy), AT)
    again = content(warehouse)
    fresh = Warehouse(path=warehouse.path.with_name("fresh.duckdb"))
    load(fresh, read_archive(copy), AT)
    expected = content(fresh)
    del again["imports"], expected["imports"]
    assert again == expected


def test_the_upstream_layout_is_found_below_its_own_folders(copy: Path, tmp_path: Path) -> None:
    """A checkout keeps the result directories two folders down."""
    deep = tmp_path / "checkout" / "mcpmark" / "results"
    deep.parent.mkdir(parents=True)
    copy.rename(deep)
    (deep / "acme-20300101-mcpmark-empty").mkdir()
    found = read_archive(tmp_path / "checkout")
    assert len(found.cells) == 4
    places = {issue.place for issue in found.issues if issue.kind.value == "directory_without_run"}
    assert places == {"mcpmark/results/acme-20300101-mcpmark-empty"}


@pytest.mark.parametrize("name", ["meta.json", "summary.json"])
@pytest.mark.parametrize("damage", ['{"task_name": ', "[]", "null", "\udcff", '{"a": ' * 20_000])
def test_a_damaged_record_stops_the_import_and_is_named(name: str, damage: str, copy: Path) -> None:
    """Without its meta.json nobody knows what an attempt was; guessing, or leaving it out, would change the rates."""
    path = next(iter(sorted(copy.rglob(name))))
    path.write_bytes(damage.encode("utf-8", "surrogateescape"))
    with pytest.raises(DamagedArchive, match=f"{path}.*nothing was imported"):
        read_archive(copy)


def test_what_is_no_archive_says_what_was_looked_for(tmp_path: Path, copy: Path) -> None:
    """A wrong path is the most common mistake."""
    with pytest.raises(UnknownArchive, match="does not exist"):
        read_archive(tmp_path / "nowhere")
    with pytest.raises(UnknownArchive, match="is a file"):
        read_archive(copy / "notes.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnknownArchive, match=r"looked for MCPMark's <experiment>/<model>__<service>/run-<n>"):
        read_archive(tmp_path / "empty")


def test_a_task_folder_without_a_meta_is_no_attempt_and_is_named(copy: Path) -> None:
    """It is there, so it is told; but nothing is known of it."""
    folder = copy / POSTGRES / "acme-1__postgres" / "run-1" / "library__lost"
    folder.mkdir()
    (folder / "execution.log").write_text("[]")
    found = read_archive(copy)
    assert sum(len(cell.attempts) for cell in found.cells) == 7
    assert issues_of(found, "library__lost")[0][0] == "attempt_without_meta"


def test_runs_are_summed_up_for_the_tracking_store(archive: Archive) -> None:
    """Only what was measured: no rate where nothing was, no tool calls where no log is."""
    runs = {run.name: run for run in imported_runs(archive)}
    assert sorted(runs) == sorted(
        [f"{FILESYSTEM}/filesystem", f"{POSTGRES}/postgres", f"{RETRY}/filesystem",
         "acme-20300101-mcpmark-smoke-notion/notion"]
    )  # fmt: skip
    first = runs[f"{FILESYSTEM}/filesystem"]
    assert first.params["model"] == "acme/acme-1"
    picked = ("attempts", "passes", "fails", "invalid", "pass_rate", "pass_rate_of_attempts", "input_tokens", "logs")
    assert [first.metrics[name] for name in picked] == [3, 2, 0, 1, 1.0, 2 / 3, 5000, 2]
    assert (first.metrics["tool_calls"], first.metrics["tool_errors"]) == (4, 1)
    assert runs[f"{POSTGRES}/postgres"].metrics["tool_errors"] == 1
    assert "tool_calls" not in runs[f"{RETRY}/filesystem"].metrics
    assert runs["acme-20300101-mcpmark-smoke-notion/notion"].metrics == {"attempts": 0, "import_issues": 1}


ENTRY = st.fixed_dictionaries(
    {
        "tool": st.text(max_size=5),
        "input": st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
        "result": st.fixed_dictionaries({"result": st.just('{"content": [], "isError": false}')}),
        "tool_use_id": st.text(max_size=5),
    }
)


@given(st.lists(ENTRY, max_size=4), st.data())
def test_a_log_cut_anywhere_gives_the_whole_entries_before_the_cut(entries: list[object], data: st.DataObject) -> None:
    """A killed run tears its log at any character; what stands before is whole and in order."""
    text = json.dumps(entries, ensure_ascii=False, indent=data.draw(st.sampled_from([None, 2])))
    whole = read_log(text)
    assert (len(whole.calls), whole.torn) == (len(entries), None)
    cut = read_log(text[: data.draw(st.integers(0, len(text) - 1))])
    assert cut.torn is not None
    assert cut.calls == whole.calls[: len(cut.calls)]


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_text_makes_the_log_reader_raise(text: str) -> None:
    """Logs are written by programs that crash."""
    read_log(text)


def test_the_whole_recorded_archive_is_imported(shared: Path, warehouse: Warehouse) -> None:
    """The real record: 89 attempts, 13 summaries, and the 21 logs of the PostgreSQL run with their 172 calls."""
    archive = read_archive(shared / "archive" / "mcpmark")
    load(warehouse, archive, AT)
    counts = {table: len(found) for table, found in content(warehouse).items()}
    assert [counts[table] for table in ("runs", "mcpmark_attempts", "mcpmark_summaries", "tool_calls")] == [
        16, 89, 13, 172
    ]  # fmt: skip
    kinds = Counter(issue.kind.value for issue in archive.issues)
    picked = ("attempt_aborted", "log_missing", "run_without_attempts", "summary_missing", "field_odd", "log_torn")
    assert [kinds[kind] for kind in picked] == [11, 57, 1, 3, 0, 0]
