"""Published figures against ours: computed by name alone, and held against the file apart."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from analysis.figures import Evaluator, MapError, read_map, shipped_maps
from analysis.golden import Checked, GoldenError, Status, agree, check, passed, read_entries
from analysis.importers.mcpmark import read_archive
from analysis.importers.mcpmark_load import load
from analysis.warehouse import Reading, Warehouse

FIXTURE = Path(__file__).parents[1] / "fixtures" / "mcpmark"
POSTGRES = "acme-20300101-mcpmark-verified-postgres"
FILESYSTEM = "acme-20300101-mcpmark-verified-filesystem"


def imported(path: Path, folder: Path) -> Warehouse:
    warehouse = Warehouse(path=folder / "geode.duckdb")
    load(warehouse, read_archive(path), datetime(2030, 2, 1, tzinfo=UTC))
    return warehouse


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    with imported(FIXTURE, tmp_path_factory.mktemp("golden")).read() as reading:
        yield reading


@pytest.fixture(scope="module")
def evaluator(reading: Reading) -> Evaluator:
    return Evaluator(reading, shipped_maps())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task_attempts", 7),
        ("passes", 4),
        ("aborted", 1),
        ("input_tokens", 20_500),
        ("cache_read_tokens", 4_000),
        ("turns", 16),
        ("cost_usd", pytest.approx(0.235)),
        ("agent_seconds", 1_016),
        ("filesystem.passes", 3),
        ("filesystem.input_tokens", 7_500),
        (f"dir.{POSTGRES}", [1, 2]),
        (f"dir.{FILESYSTEM}", [2, 3]),
        (f"dir.{POSTGRES}.output_tokens", 2_000),
        ("verified.postgres", [1, 2]),
        ("verified.filesystem", [3, 5]),
        ("verified.filesystem.deduplicated", [3, 4]),
        ("verified.filesystem.raw_attempts", [3, 5]),
        ("postgres.summary.total_turns", 8),
        ("postgres.summary.success_rate", 50.0),
        ("postgres.summary.total_tokens", 15_000),
        ("postgres.summary.avg_input_tokens", 6_500.0),
        ("filesystem.summary.success_rate", 60.0),
        ("postgres.summary.library.failed_tasks", 1),
        ("postgres.execution_log.records", 5),
        ("postgres.execution_log.files", 2),
        ("postgres.is_error", {"False": 5}),
        ("library__overdue_loans.turns", 3),
        ("overdue_loans.turns", 3),
        ("library__overdue_loans.tools_in_order", ["list_objects", "execute_sql", "execute_sql"]),
        ("library__overdue_loans.verifier", [3, 0]),
        ("library__merge_branches.verifier", [1, 3]),
        ("library__merge_branches.all_non_error", True),
        ("library__merge_branches.all_without_error_text", False),
        ("attic__sort_boxes.all_non_error", False),
        ("library__overdue_loans.call3.policies", 2),
        ("library__overdue_loans.call3.functions", 1),
        ("library__overdue_loans.call3.enable_rls", 1),
        ("library__overdue_loans.call2.policies", 0),
        ("attic__count_jars.turns", 2),
    ],
)
def test_a_figure_is_computed_from_its_name(name: str, value: JsonValue, evaluator: Evaluator) -> None:
    """Patterns are general: a figure of a known family needs no new rule."""
    answer = evaluator.compute(f"mcpmark.{name}")
    assert (answer.value, answer.reason) == (value, None)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("execution_log.records", 9, "of 6 attempts that ran, 2 have no execution.log here and 1 a broken one"),
        ("filesystem.is_error", {"False": 3, "True": 1}, "of 4 attempts that ran, 2 have no execution.log"),
        ("attic__find_key.all_non_error", True, "the execution.log of this task is not in the imported archive"),
        ("attic__label_jars.calls", 2, "the execution.log of this task breaks off after 2 records"),
        ("attic__sort_boxes.verifier", [None, None], "its verifier prints no count of checks"),
        ("verified.notion", None, "nothing was imported with service 'notion'"),
        ("rls.turns", None, "nothing was imported with name 'security__rls_business_access'"),
        ("rls.live_replay", None, "needs a PostgreSQL server"),
        ("wealth", None, "the view mcpmark_totals has no column wealth"),
        ("dir.x.y.z.turns", None, "no rule of ours computes a figure of this name"),
    ],
)
def test_what_cannot_be_computed_says_why(name: str, value: JsonValue, reason: str, evaluator: Evaluator) -> None:
    """A part of a total is shown with the reason why it is not the total; it never passes for one."""
    answer = evaluator.compute(f"mcpmark.{name}")
    assert answer.value == value
    assert reason in (answer.reason or "")


def golden_file(folder: Path, *figures: dict[str, JsonValue]) -> Path:
    path = folder / "GOLDEN.json"
    path.write_text(json.dumps({"generated": "2030-02-01", "figures": list(figures)}))
    return path


def figure(name: str, recomputed: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    return {"name": name, "published": None, "recomputed": recomputed, "recomputable_from_pack": True, **more}


def checked(path: Path, reading: Reading) -> dict[str, Checked]:
    return {result.name: result for result in check(read_entries(path, "mcpmark"), shipped_maps(), reading)}


def test_the_file_cannot_move_our_figures(tmp_path: Path, reading: Reading) -> None:
    """A check that computes from what it checks against proves nothing: with every value changed, ours stay."""
    names = (
        "mcpmark.passes",
        "mcpmark.verified.filesystem",
        "mcpmark.postgres.summary.success_rate",
        "mcpmark.is_error",
    )
    honest = checked(golden_file(tmp_path, *(figure(name, None) for name in names)), reading)
    sabotaged = checked(
        golden_file(tmp_path, *(figure(name, 99, published=98, deduplicated=[97, 97]) for name in names)), reading
    )
    assert {name: sabotaged[name].ours for name in names} == {name: honest[name].ours for name in names}
    assert sabotaged["mcpmark.passes"].ours == 4
    assert sabotaged["mcpmark.passes"].status is Status.DIFFERS
    assert sabotaged["mcpmark.verified.filesystem.deduplicated"].ours == [3, 4]
    assert not passed(tuple(sabotaged.values()))


def test_an_entry_is_held_against_its_recomputed_value_and_its_further_fields(tmp_path: Path, reading: Reading) -> None:
    """Where the published value is wrong on record, a match says what was published."""
    path = golden_file(
        tmp_path,
        figure("mcpmark.passes", 4, published=5),
        figure("mcpmark.verified.filesystem", [3, 5], deduplicated=[3, 4], raw_attempts=[3, 4]),
        figure("mcpmark.turns", None, published=16),
    )
    results = checked(path, reading)
    assert {name: result.status.value for name, result in results.items()} == {
        "mcpmark.passes": "match",
        "mcpmark.verified.filesystem": "match",
        "mcpmark.verified.filesystem.deduplicated": "match",
        "mcpmark.verified.filesystem.raw_attempts": "differs",
        "mcpmark.turns": "match",
    }
    assert results["mcpmark.passes"].reason == "published as 5"


@pytest.mark.parametrize(("recomputable", "expected"), [(True, False), (False, True)])
def test_a_figure_that_cannot_be_computed_fails_only_if_the_pack_can_give_it(
    recomputable: bool, expected: bool, tmp_path: Path, reading: Reading
) -> None:
    """The exit code stands for every figure that can be had, and for no other."""
    path = golden_file(tmp_path, figure("mcpmark.execution_log.records", 9, recomputable_from_pack=recomputable))
    results = checked(path, reading)
    assert results["mcpmark.execution_log.records"].status is Status.NOT_COMPUTED
    assert passed(tuple(results.values())) is expected


@pytest.mark.parametrize(
    ("expected", "ours", "same"),
    [
        (38_253, 38_253.18, True),
        (38_253, 38_253.5, False),
        (95.24, 95.238095, True),
        (95.25, 95.238095, False),
        (0.1 + 0.2, 0.3, True),
        (3, 4, False),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 2, 3], False),
        ({"a": 1}, {"a": 1, "b": 0}, False),
        ({"a": 1.0}, {"a": 1.01}, True),
        ("x", "x", True),
        (None, 0, False),
    ],
)
def test_values_agree_at_the_precision_that_was_published(expected: JsonValue, ours: JsonValue, same: bool) -> None:
    """A rounded figure is no difference; a wrong count is one, also if it is off by one."""
    assert agree(expected, ours) is same


def test_a_golden_file_that_is_none_is_named(tmp_path: Path, reading: Reading) -> None:
    """A missing or strange file must not read as "all figures match"."""
    with pytest.raises(GoldenError, match="cannot be read"):
        read_entries(tmp_path / "none.json", "")
    path = tmp_path / "GOLDEN.json"
    path.write_text('{"figures": [{"published": 1}]}')
    with pytest.raises(GoldenError, match=r"figures\.0\.name"):
        read_entries(path, "")
    with pytest.raises(GoldenError, match="has no figure 'mcp'; its figures begin with mcpmark"):
        read_entries(golden_file(tmp_path, figure("mcpmark.passes", 1)), "mcp")
    with pytest.raises(GoldenError, match="has no figure"):
        read_entries(golden_file(tmp_path), "")
    del reading


def test_a_check_before_any_import_asks_for_the_import(tmp_path: Path) -> None:
    """Thirty times "nothing was imported" would hide the one thing to do."""
    warehouse = Warehouse(path=tmp_path / "geode.duckdb")
    with warehouse.write():
        pass
    entries = read_entries(golden_file(tmp_path, figure("mcpmark.passes", 1)), "")
    with pytest.raises(GoldenError, match="nothing of mcpmark was imported"), warehouse.read() as reading:
        check(entries, shipped_maps(), reading)


@pytest.mark.parametrize(
    "rule",
    [
        "{name: a}",
        "{name: a, view: v}",
        "{name: a, not_here: x, view: v, value: b}",
        "{name: a, vieww: v}",
        "{name: '{b}', not_here: x}",
    ],
)
def test_a_mapping_with_a_mistake_is_refused(rule: str) -> None:
    """A misspelt key would otherwise silently drop a filter."""
    text = f"schema: geode.golden_map/1\nprefix: x\nneeds: runs\nplaceholders: {{}}\nfigures:\n  - {rule}\n"
    with pytest.raises(MapError, match=r"x\.yaml"):
        read_map(text, "x.yaml")


def test_every_recomputable_figure_of_the_recorded_archive_matches(shared: Path, tmp_path: Path) -> None:
    """The claim of the whole importer, on the real record."""
    entries = read_entries(shared / "archive" / "GOLDEN.json", "mcpmark")
    with imported(shared / "archive" / "mcpmark", tmp_path).read() as reading:
        results = check(entries, shipped_maps(), reading)
    assert passed(results)
    not_computed = {result.name: result.recomputable for result in results if result.status is not Status.MATCH}
    assert not_computed == {
        "mcpmark.execution_log.files": False,
        "mcpmark.execution_log.records": False,
        "mcpmark.is_error": False,
        "mcpmark.rls.live_replay": False,
    }
