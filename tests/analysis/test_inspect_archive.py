"""Folders of Inspect logs in the warehouse: every log and sample, once, with what is irregular in words."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analysis.archives import import_archive
from analysis.importers.files import DamagedArchive, UnknownArchive
from analysis.importers.inspect_archive import InspectArchive, find_logs, read_inspect_archive
from analysis.importers.inspect_load import imported_runs, load
from analysis.warehouse import Warehouse
from geode.clock import ManualClock
from tests.doubles.evals import judged, sample, write_eval

pytestmark = pytest.mark.slow

AT = datetime(2030, 2, 1, tzinfo=UTC)
TABLES = (
    "runs", "cells", "episodes", "costs", "import_issues", "imports", "inspect_logs", "inspect_samples",
    "inspect_scores",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four logs: whole, killed after one sample, failed, and killed before anything."""
    logs = tmp_path / "archive" / "audits"
    usage = {"target": {"input_tokens": 3, "output_tokens": 4, "total_cost": 0.25}}
    whole = [
        sample("x", judged({"candour": 3, "tact": 8}), role_usage=usage),
        sample("y", judged({"candour": 4, "tact": 6}), role_usage=usage),
        sample("z", judged(math.nan)),
    ]
    write_eval(logs / "whole.eval", whole, means={"candour": 3.5, "tact": 7.0})
    write_eval(logs / "killed.eval", [sample("x", judged({"candour": 1})), sample("y", error="cut")], status=None)
    write_eval(logs / "failed.eval", [sample(1, error="exit 143")], status="error", error="exit 143")
    write_eval(logs / "early.eval", status=None)
    return tmp_path / "archive"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(path=tmp_path / "geode.duckdb")


def rows(warehouse: Warehouse, sql: str) -> list[tuple[object, ...]]:
    with warehouse.read() as reading:
        return list(reading.query(sql).rows)


def content(warehouse: Warehouse) -> dict[str, list[tuple[object, ...]]]:
    return {table: rows(warehouse, f"SELECT * FROM {table} ORDER BY ALL") for table in TABLES}


def issues_of(archive: InspectArchive) -> list[tuple[str, str, str]]:
    return sorted((issue.cell, issue.kind.value, issue.episode_key.rpartition("/")[2]) for issue in archive.issues)


def test_every_log_and_every_sample_is_kept(folder: Path, warehouse: Warehouse) -> None:
    """Also those that measured nothing: a total without them is another total."""
    load(warehouse, read_inspect_archive(folder), AT)
    assert rows(warehouse, "SELECT cell, status, has_header, samples FROM inspect_logs ORDER BY ALL") == [
        ("early", "started", False, 0),
        ("failed", "error", True, 1),
        ("killed", "started", False, 2),
        ("whole", "success", True, 3),
    ]
    assert rows(
        warehouse, "SELECT cell, task_id, repetition, outcome, score, reasons, cost_usd FROM episodes ORDER BY ALL"
    ) == [
        ("failed", "1", 1, "INVALID", None, ["exit 143"], None),
        ("killed", "x", 1, None, None, [], None),
        ("killed", "y", 1, "INVALID", None, ["cut"], None),
        ("whole", "x", 1, None, None, [], 0.25),
        ("whole", "y", 1, None, None, [], 0.25),
        ("whole", "z", 1, None, None, ["the scorer gave NaN"], None),
    ]
    assert rows(warehouse, "SELECT cell, role, model, samples, output_tokens FROM inspect_usage") == [
        ("whole", "target", "acme/worker-1", 2, 8)
    ]
    assert rows(warehouse, "SELECT run, cell, target, roles->>'judge' FROM cells WHERE cell = 'whole'") == [
        ("audits", "whole", "acme/worker-1", "other/arbiter-3")
    ]


def test_means_are_over_what_was_scored_and_say_over_how_many(folder: Path, warehouse: Warehouse) -> None:
    """An unscored sample lowers no mean and stays in sight."""
    load(warehouse, read_inspect_archive(folder), AT)
    assert rows(
        warehouse, "SELECT cell, dimension, n, unscored, mean, stderr FROM inspect_dimensions ORDER BY ALL"
    ) == [
        ("killed", "candour", 1, 1, 1.0, None),
        ("whole", "candour", 2, 1, 3.5, pytest.approx(0.5)),
        ("whole", "tact", 2, 1, 7.0, pytest.approx(1.0)),
    ]


def test_what_is_irregular_is_said(folder: Path) -> None:
    """Each irregular log and sample has its reason; the regular ones have none."""
    assert issues_of(read_inspect_archive(folder)) == [
        ("early", "log_empty", ""),
        ("early", "log_killed", ""),
        ("failed", "log_not_successful", ""),
        ("failed", "sample_failed", "1#1"),
        ("killed", "log_killed", ""),
        ("killed", "sample_failed", "y#1"),
        ("whole", "sample_unscored", "z#1"),
    ]


def test_contradictions_inside_a_log_are_said(tmp_path: Path) -> None:
    """What counts is the samples; whoever trusts a header or a summary is told otherwise."""
    samples = [sample("x", judged({"candour": 3})), sample("y", judged({"candour": 5, "tact": 1}))]
    other = json.dumps([{"id": "x", "epoch": 1, "scores": judged({"candour": 9})}]).encode()
    path = write_eval(
        tmp_path / "a.eval", samples, means={"candour": 9.0}, dataset_samples=40, replace={"summaries.json": other}
    )
    archive = read_inspect_archive(path)
    assert [(issue.kind.value, issue.text) for issue in archive.issues] == [
        ("dataset_size_differs", "by its data set 40 samples are to be expected; the log has 2, which are what counts"),
        ("dimensions_differ", "sample 'x' of epoch 1 is judged in other dimensions than the others: tact"),
        (
            "summary_contradicts_samples",
            "its summaries differ from its samples in 1 scores, first in [\"('x', 1, 'audit_judge', 'candour')\"]; "
            "the samples are what counts",
        ),
        (
            "results_contradict_samples",
            "its own means differ from its samples: candour is 9, not 4; the samples are what counts",
        ),
    ]


def test_a_log_judged_in_other_dimensions_than_its_folder_is_told(tmp_path: Path) -> None:
    """A dimension that is missing looks like a good score to whoever sums up without asking."""
    for name in ("a", "b"):
        write_eval(tmp_path / "logs" / f"{name}.eval", [sample("x", judged({"candour": 1, "tact": 2}))])
    write_eval(tmp_path / "logs" / "older.eval", [sample("x", judged({"candour": 1}))])
    write_eval(tmp_path / "logs" / "unjudged.eval", [sample("x", judged(math.nan))])
    told = [issue for issue in read_inspect_archive(tmp_path).issues if issue.kind.value == "dimensions_differ"]
    assert [(issue.cell, issue.text) for issue in told] == [
        ("older", "judged in 1 dimensions, most logs of its folder in 2; not in both: tact")
    ]


def test_importing_twice_is_importing_once(folder: Path, warehouse: Warehouse) -> None:
    """A repeated import is how one makes sure; it must not count anything twice."""
    load(warehouse, read_inspect_archive(folder), AT)
    once = content(warehouse)
    load(warehouse, read_inspect_archive(folder), AT)
    assert content(warehouse) == once


def test_one_log_alone_is_what_it_is_in_its_folder(folder: Path, warehouse: Warehouse, tmp_path: Path) -> None:
    """The rows do not depend on which way they came in."""
    load(warehouse, read_inspect_archive(folder), AT)
    apart = Warehouse(path=tmp_path / "apart.duckdb")
    for path in find_logs(folder):
        load(apart, read_inspect_archive(path), AT)
    together, single = content(warehouse), content(apart)
    del together["imports"], single["imports"]
    strip = (
        [row[:5] + row[6:] for row in together.pop("import_issues")],
        [row[:5] + row[6:] for row in single.pop("import_issues")],
    )  # the place is told from where the import began
    assert sorted(map(str, strip[0])) == sorted(map(str, strip[1]))
    assert single == together


def test_a_changed_log_replaces_its_rows_and_no_others(folder: Path, warehouse: Warehouse) -> None:
    """A run that went on after the first import has more samples, or others."""
    load(warehouse, read_inspect_archive(folder), AT)
    usage = {"judge": {"output_tokens": 9}}
    changed = write_eval(folder / "audits" / "whole.eval", [sample("new", judged({"candour": 1}), role_usage=usage)])
    load(warehouse, read_inspect_archive(changed), AT)
    assert rows(warehouse, "SELECT cell, task_id FROM episodes ORDER BY ALL") == [
        ("failed", "1"),
        ("killed", "x"),
        ("killed", "y"),
        ("whole", "new"),
    ]
    assert rows(warehouse, "SELECT role, output_tokens FROM costs") == [("judge", 9)]


def test_two_projects_with_folders_of_one_name_stay_apart(tmp_path: Path, warehouse: Warehouse) -> None:
    """Inspect writes to `logs` everywhere; the second project must not delete the first."""
    for project in ("one", "two"):
        write_eval(tmp_path / project / "logs" / f"{project}.eval", [sample("x", judged({"candour": 1}))])
        load(warehouse, read_inspect_archive(tmp_path / project / "logs"), AT)
    assert rows(warehouse, "SELECT run, cell FROM inspect_logs ORDER BY ALL") == [("logs", "one"), ("logs", "two")]
    both = read_inspect_archive(tmp_path)
    assert (len(both.logs), both.issues) == (2, ())


def test_a_second_log_of_the_same_name_is_told_and_left_out(tmp_path: Path, warehouse: Warehouse) -> None:
    """One key for two logs would mix their samples."""
    for project in ("one", "two"):
        write_eval(tmp_path / project / "logs" / "a.eval", [sample("x", judged({"candour": 1}))])
    archive = read_inspect_archive(tmp_path)
    assert ([log.path.parts[-3] for log in archive.logs], [issue.kind.value for issue in archive.issues]) == (
        ["one"],
        ["file_not_imported"],
    )
    load(warehouse, archive, AT)
    assert rows(warehouse, "SELECT count(*) FROM episodes") == [(1,)]


def test_an_unreadable_log_in_a_folder_is_told_and_the_rest_imported(folder: Path, warehouse: Warehouse) -> None:
    """One torn file must not hide a hundred whole ones; asked for alone, it is an error."""
    torn = folder / "audits" / "torn.eval"
    torn.write_bytes((folder / "audits" / "whole.eval").read_bytes()[:200])
    archive = read_inspect_archive(folder)
    assert len(archive.logs) == 4
    assert [issue.place for issue in archive.issues if issue.kind.value == "log_unreadable"] == ["audits/torn.eval"]
    load(warehouse, archive, AT)
    assert rows(warehouse, "SELECT cell FROM import_issues WHERE kind = 'log_unreadable'") == [("torn",)]
    with pytest.raises(DamagedArchive, match=r"torn\.eval is no whole \.eval log"):
        read_inspect_archive(torn)
    for name in ("whole", "killed", "failed", "early"):
        (folder / "audits" / f"{name}.eval").unlink()
    load(warehouse, read_inspect_archive(folder), AT)
    assert rows(warehouse, "SELECT run, count(*) FROM runs JOIN cells USING (source, run) GROUP BY run") == [
        ("audits", 4)
    ]


def test_each_log_is_summed_up_for_tracking(folder: Path) -> None:
    """Mean by dimension, what was scored and what was not, and who played which role."""
    runs = {run.name: run for run in imported_runs(read_inspect_archive(folder))}
    whole = runs["audits/whole"]
    assert whole.experiment == "inspect"
    assert whole.metrics == {
        "mean.candour": 3.5,
        "mean.tact": 7.0,
        "samples": 3,
        "scored": 2,
        "unscored": 1,
        "failed": 0,
        "import_issues": 1,
        "tokens_out": 8,
        "cost_usd": 0.5,
    }
    assert whole.tags["geode.role.judge"] == "other/arbiter-3"
    assert "mean.candour" not in runs["audits/early"].metrics
    assert runs["audits/early"].params["status"] == "started"


def test_the_format_is_recognised(folder: Path, warehouse: Warehouse, tmp_path: Path) -> None:
    """One command for every archive; two formats in one folder are a question, not a guess."""
    clock = ManualClock()
    imported = import_archive(warehouse, folder / "audits" / "whole.eval", clock)
    assert (imported.source, imported.totals["samples"], imported.totals["unscored"]) == ("inspect", 3, 1)
    assert import_archive(warehouse, folder, clock).told.startswith(
        "4 logs in 1 folders, 6 samples, 3 of them unscored"
    )
    meta = folder / "e" / "m__s" / "run-1" / "a__b" / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text("{}")
    with pytest.raises(UnknownArchive, match="holds two archives"):
        import_archive(warehouse, folder, clock)
    with pytest.raises(UnknownArchive, match=r"no archive that this version reads.*MCPMark.*\.eval"):
        import_archive(warehouse, tmp_path / "archive" / "e" / "m__s" / "run-1" / "a__b", clock)


@pytest.mark.slow
def test_the_recorded_archive_is_imported_whole(shared: Path, warehouse: Warehouse) -> None:
    """104 logs with 868 samples, and nothing irregular is passed over in silence."""
    load(warehouse, read_inspect_archive(shared / "archive" / "sil"), AT)
    assert rows(warehouse, "SELECT run, count(*), sum(samples) FROM inspect_logs GROUP BY run ORDER BY run") == [
        ("petri-audits", 97, 777),
        ("petri-matrix-20260515", 7, 91),
    ]
    assert rows(warehouse, "SELECT state, count(*) FROM inspect_sample_scores GROUP BY state ORDER BY state") == [
        ("scored", 841),
        ("unscored", 8),
        ("without score", 19),
    ]
    assert dict(rows(warehouse, "SELECT kind, count(*) FROM import_issues GROUP BY kind")) == {
        "dataset_size_differs": 15,
        "dimensions_differ": 1,
        "file_not_imported": 2,
        "log_empty": 3,
        "log_killed": 8,
        "log_not_successful": 5,
        "sample_failed": 19,
        "sample_unscored": 8,
    }
