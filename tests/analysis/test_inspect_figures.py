"""Figures of Inspect archives: an index tells of logs that are not here, and published tables are held against logs."""

import gzip
import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from analysis.figures import Answer, Evaluator, read_map, shipped_maps
from analysis.golden import GoldenError, Status, check, passed, read_entries
from analysis.importers.files import DamagedArchive
from analysis.importers.inspect_archive import read_inspect_archive
from analysis.importers.inspect_load import load
from analysis.importers.mcpmark import read_archive
from analysis.importers.mcpmark_load import load as load_mcpmark
from analysis.warehouse import Warehouse
from tests.doubles.evals import judged, sample, write_eval

pytestmark = pytest.mark.slow

AT = datetime(2030, 2, 1, tzinfo=UTC)
COLUMNS = (
    "file,size_bytes,sha256,status,has_header,n_samples,n_scored,auditor,target,judge,seed_source,created\n"
)  # fmt: skip
MATRIX = "petri-matrix-20300101"


def index_line(file: str, size: int, status: str, samples: int, judged_samples: int) -> str:
    return f"{file},{size},ab,{status},{int(bool(status))},{samples},{judged_samples},a/b,c/d,e/f,seeds,2030\n"


def write_index(folder: Path, *lines: str, scores: str = "") -> None:
    (folder / "evals_index.csv").write_text(COLUMNS + "".join(lines))
    with gzip.open(folder / "scores_long.csv.gz", "wt") as file:
        file.write("file,sample_id,epoch,scorer,dim,value\n" + scores)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An index of three logs, of which one is here; it has a sample more than the index knows."""
    folder = tmp_path / "sil"
    here = [sample("x", judged({"candour": 3})), sample("y", judged(math.nan)), sample("z", error="cut")]
    write_eval(folder / "audits" / "here.eval", here)
    write_index(
        folder,
        index_line("here.eval", 1000, "success", 2, 2),
        index_line("away.eval", 500, "error", 4, 3),
        index_line("lost.eval", 50, "", 0, 0),
        scores="away.eval,p,1,audit_judge,candour,4\naway.eval,q,1,audit_judge,,NaN\naway.eval,r,1,audit_judge,candour,2\n",
    )
    return folder


def answers(path: Path, folder: Path, *names: str) -> dict[str, Answer]:
    warehouse = Warehouse(path=folder / "geode.duckdb")
    load(warehouse, read_inspect_archive(path), AT)
    with warehouse.read() as reading:
        evaluator = Evaluator(reading, shipped_maps())
        return {name: evaluator.compute(name) for name in names}


def test_totals_are_our_reading_where_the_log_is_here_and_the_index_elsewhere(archive: Path, tmp_path: Path) -> None:
    """An index may be wrong about what can be read; of what is not here it is all there is."""
    expected: dict[str, JsonValue] = {
        "petri.logs": 3,
        "petri.logs_here": 1,
        "petri.bytes": 1550,
        "petri.status_success": 1,
        "petri.status_error": 1,
        "petri.status_started": 1,
        "petri.no_header": 1,
        "petri.zero_samples": 1,
        "petri.samples": 7,
        "petri.samples_scored_dict": 3,
        "petri.samples_nan_score": 2,
        "petri.samples_without_score": 2,
    }
    found = answers(archive, tmp_path, *expected)
    assert {name: (answer.value, answer.reason) for name, answer in found.items()} == {
        name: (value, None) for name, value in expected.items()
    }


def test_an_index_that_contradicts_a_log_is_an_issue(archive: Path) -> None:
    """The figures follow the log; that the index differs must be known."""
    (issue,) = [i for i in read_inspect_archive(archive).issues if i.kind.value == "index_contradicts_log"]
    assert "the index says ('success', True, 2, 2)" in issue.text
    assert "the log ('success', True, 3, 2)" in issue.text


def test_without_an_index_or_its_scores_the_figures_say_what_is_wanting(archive: Path, tmp_path: Path) -> None:
    """A part of the archive never passes for the whole."""
    (archive / "scores_long.csv.gz").unlink()
    found = answers(archive, tmp_path, "petri.logs", "petri.samples_nan_score")
    assert found["petri.logs"].reason is None
    assert "of 1 of 3 logs the scores are unknown" in (found["petri.samples_nan_score"].reason or "")
    alone = answers(archive / "audits", tmp_path / "alone", "petri.logs")["petri.logs"]
    assert (alone.value, (alone.reason or "")[:39]) == (1, "no index (evals_index.csv) of the whole")


def write_comparison(folder: Path) -> None:
    """Two logs of two samples each, and the tables that one would publish about them."""
    scores = {"gee": {"s": 5, "t": 2}, "vee": {"s": 1, "t": 3}}
    for name, values in scores.items():
        write_eval(
            folder / f"{name}.eval", [sample(seed, judged({"candour": value})) for seed, value in values.items()]
        )
    archives = {
        "duo_G": {"file": "gee.eval", "wrap": "GEODE", "target": "w"},
        "duo_V": {"file": "vee.eval", "wrap": "vanilla", "target": "w"},
    }
    body = {
        "archives": archives,
        "means": {"duo_G": {"candour": 3.5}, "duo_V": {"candour": 2.0}},
        "stderr": {"duo_G": {"candour": 1.5}, "duo_V": {"candour": 1.0}},
        "deltas": {"duo": {"candour": 1.5}},
    }
    (folder / "p-summary.json").write_text(json.dumps(body))
    head = "dim,axis,duo_G,duo_V\n"
    (folder / "p-matrix.csv").write_text(
        f"{head}candour,a,3.500,2.000\n\n# stderr block (1-sigma)\n{head}candour,a,1.500,1.000\n"
    )
    (folder / "p-pairs.csv").write_text("dim,axis,direction,duo,mean_abs_delta\ncandour,a,lower,1.500,1.500\n")
    lines = [
        f"{archive},w,x,{seed},candour,a,{value:.3f}\n"
        for archive, name in (("duo_G", "gee"), ("duo_V", "vee"))
        for seed, value in scores[name].items()
    ]
    (folder / "p-per-sample.csv").write_text("archive,target,wrap,seed,dim,axis,score\n" + "".join(lines))


NAMES = [f"petri_matrix_20300101.{table}_cells" for table in ("means", "stderr", "pairs", "per_sample_rows")]


def test_published_cells_that_the_logs_give_again_are_counted(tmp_path: Path) -> None:
    """Means and errors of two logs, one pair, four samples; each file that states a cell must agree."""
    write_comparison(tmp_path / MATRIX)
    found = answers(tmp_path / MATRIX, tmp_path, *NAMES)
    assert [(answer.value, answer.reason) for answer in found.values()] == [(2, None), (2, None), (1, None), (4, None)]


@pytest.mark.parametrize(
    ("file", "right", "wrong", "expected"),
    [
        ("p-matrix.csv", "3.500,2.000", "3.501,2.000", [1, 2, 1, 4]),
        ("p-matrix.csv", "1.500,1.000", "1.500,1.001", [2, 1, 1, 4]),
        ("p-summary.json", '"duo_V": {"candour": 2.0}', '"duo_V": {"candour": 2.0000001}', [1, 2, 1, 4]),
        ("p-pairs.csv", "lower,1.500", "lower,-1.500", [2, 2, 0, 4]),
        ("p-per-sample.csv", "t,candour,a,3.000", "t,candour,a,2.000", [2, 2, 1, 3]),
        ("p-per-sample.csv", "duo_V,w,x,t", "duo_V,w,x,unknown", [2, 2, 1, 3]),
    ],
)
def test_a_wrong_cell_in_any_file_is_not_counted(
    file: str, right: str, wrong: str, expected: list[int], tmp_path: Path
) -> None:
    """If agreement could not fail, it would prove nothing."""
    write_comparison(tmp_path / MATRIX)
    path = tmp_path / MATRIX / file
    assert right in path.read_text()
    path.write_text(path.read_text().replace(right, wrong, 1))
    assert [answer.value for answer in answers(tmp_path / MATRIX, tmp_path, *NAMES).values()] == expected


def test_cells_about_a_log_that_is_not_here_are_told(tmp_path: Path) -> None:
    """A figure over half of the logs says so."""
    write_comparison(tmp_path / MATRIX)
    (tmp_path / MATRIX / "vee.eval").unlink()
    pairs = answers(tmp_path / MATRIX, tmp_path, NAMES[2])[NAMES[2]]
    assert (pairs.value, pairs.reason) == (0, "1 of 1 cells are about logs that were not imported")


@pytest.mark.parametrize(
    ("file", "text", "cause"),
    [
        ("p-matrix.csv", "dim,duo_G\ncandour,1\n", r"p-matrix\.csv is damaged in row 1 \(KeyError: 'duo_V'\)"),
        ("p-matrix.csv", "dim,duo_G,duo_V\ncandour,1,many\n", r"p-matrix\.csv is damaged in row 1 \(ValueError"),
        ("p-matrix.csv", "dim,duo_G,duo_V\ncandour,1\n", "means of duo_V, candour is None, no number"),
        ("p-matrix.csv", "dim,duo_G,duo_V\n# odds block\n", "has a block 'odds block'"),
        ("p-per-sample.csv", "archive,seed,dim,score\nsolo,s,candour,1\n", "names no file of the archive 'solo'"),
        ("p-summary.json", '{"archives": {}, "means": [], "stderr": {}, "deltas": {}}', "holds list where"),
        ("evals_index.csv", COLUMNS + "a.eval,many\n", r"evals_index\.csv is damaged in row 1"),
        ("scores_long.csv.gz", "no gzip", r"scores_long\.csv\.gz cannot be unpacked"),
    ],
)
def test_a_damaged_table_is_named_and_nothing_imported(file: str, text: str, cause: str, tmp_path: Path) -> None:
    """A table that is half read would look like agreement on the other half."""
    write_comparison(tmp_path / MATRIX)
    (tmp_path / MATRIX / file).write_text(text)
    with pytest.raises(DamagedArchive, match=cause):
        read_inspect_archive(tmp_path / MATRIX)


def golden_file(folder: Path, *names: str) -> Path:
    path = folder / "GOLDEN.json"
    figures = [{"name": name, "recomputed": 1, "recomputable_from_pack": True} for name in names]
    path.write_text(json.dumps({"figures": figures}))
    return path


def test_a_check_of_two_archives_does_what_it_can(archive: Path, tmp_path: Path) -> None:
    """With one archive imported its figures are computed, and the others ask for theirs; with none, that is all."""
    warehouse = Warehouse(path=tmp_path / "geode.duckdb")
    entries = read_entries(golden_file(tmp_path, "mcpmark.passes", "petri.logs_here", "else.what"), "")
    with warehouse.write():
        pass
    with warehouse.read() as reading, pytest.raises(GoldenError, match=r"nothing of mcpmark.*nothing of petri"):
        check(entries, shipped_maps(), reading)
    load(warehouse, read_inspect_archive(archive), AT)
    with warehouse.read() as reading:
        results = check(entries, shipped_maps(), reading)
    assert [(result.ours, result.status) for result in results] == [
        (None, Status.NOT_COMPUTED),
        (1, Status.MATCH),
        (None, Status.NOT_COMPUTED),
    ]
    assert "nothing of mcpmark was imported" in results[0].reason
    load_mcpmark(warehouse, read_archive(Path(__file__).parents[1] / "fixtures" / "mcpmark"), AT)
    with warehouse.read() as reading:
        assert check(entries, shipped_maps(), reading)[0].ours == 4


def test_a_table_that_an_older_file_lacks_is_an_archive_not_imported(archive: Path, tmp_path: Path) -> None:
    """A warehouse is brought up to date by the next import; until then the check must not end in an SQL error."""
    text = "schema: geode.golden_map/1\nprefix: petri\nneeds: of_a_later_version\nplaceholders: {field: '[a-z]+'}\n"
    text += "figures:\n  - {name: 'petri.{field}', view: petri_totals, value: '{field}'}\n"
    warehouse = Warehouse(path=tmp_path / "geode.duckdb")
    load(warehouse, read_inspect_archive(archive), AT)
    entries = read_entries(golden_file(tmp_path, "petri.logs"), "")
    with warehouse.read() as reading, pytest.raises(GoldenError, match="nothing of petri was imported"):
        check(entries, [read_map(text, "later.yaml")], reading)


@pytest.mark.slow
def test_every_petri_figure_of_the_recorded_archive_matches(shared: Path, tmp_path: Path) -> None:
    """The claim of the whole reader, on the real record: fourteen figures, all from shipped views."""
    warehouse = Warehouse(path=tmp_path / "geode.duckdb")
    load(warehouse, read_inspect_archive(shared / "archive" / "sil"), AT)
    golden = shared / "archive" / "GOLDEN.json"
    entries = read_entries(golden, "petri") + read_entries(golden, "petri_matrix_20260515")
    with warehouse.read() as reading:
        results = check(entries, shipped_maps(), reading)
    assert len(results) == 14
    assert {result.status for result in results} == {Status.MATCH}
    assert passed(results)
