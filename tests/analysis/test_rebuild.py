"""The warehouse can be deleted: the episode folders bring everything back."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analysis.importers.mcpmark import read_archive
from analysis.importers.mcpmark_load import load
from analysis.rebuild import rebuild
from analysis.warehouse import DuckDBSink, Warehouse, create_sink
from experiments.sinks import Cell, CellSink
from experiments.store import EpisodeStore, load_cells
from geode.clock import ManualClock
from geode.config.settings import Settings, read_settings
from geode.redaction import Redactor
from tests.doubles.tracked_episodes import EpisodeMaker, make_experiment

pytestmark = pytest.mark.slow

FIXTURE = Path(__file__).parents[1] / "fixtures" / "mcpmark"
TABLES = ("runs", "cells", "episodes", "rounds", "tool_calls", "costs")


@dataclass(slots=True)
class FailingSink:
    """Refuses every cell."""

    closed: bool = False
    cells: list[str] = field(default_factory=list)

    def write(self, cell: Cell) -> None:
        self.cells.append(cell.variant.name)
        raise RuntimeError("the server is down")

    def close(self) -> None:
        self.closed = True


def cannot_open(settings: Settings) -> CellSink:
    raise PermissionError("no database here")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A state root with one experiment of two cells that are done."""
    settings = read_settings(tmp_path, {})
    store = EpisodeStore(settings.root, ManualClock(), Redactor())
    experiment = make_experiment()
    store.write_experiment(experiment)
    maker = EpisodeMaker(settings.root.episodes, rounds=2)
    for name in ("baseline", "stop_repeats"):
        for episode in maker.cell(experiment, name).episodes:
            store.finish(episode.record)
    return settings


def content(warehouse: Warehouse) -> dict[str, list[tuple[object, ...]]]:
    with warehouse.read() as reading:
        return {table: list(reading.query(f"SELECT * FROM {table} ORDER BY ALL").rows) for table in TABLES}


def test_a_deleted_warehouse_comes_back_the_same(settings: Settings) -> None:
    """It is derived; the folders are the truth."""
    warehouse = Warehouse(path=settings.root.warehouse)
    sink = DuckDBSink(warehouse)
    for cell in load_cells(settings.root, "hook_ablation"):
        sink.write(cell)
    before = content(warehouse)
    warehouse.path.unlink()
    rebuilt = rebuild(settings, {"duckdb": lambda _: sink})
    assert (rebuilt.experiments, rebuilt.cells, rebuilt.episodes, rebuilt.problems) == (("hook_ablation",), 7, 4, ())
    assert content(warehouse) == before
    assert len(before["rounds"]) == 8


def test_what_is_no_longer_on_record_goes_and_archives_stay(settings: Settings) -> None:
    """A rebuild is not an addition; and it cannot read an archive again, so it must not drop it."""
    warehouse = Warehouse(path=settings.root.warehouse)
    load(warehouse, read_archive(FIXTURE), datetime(2030, 2, 1, tzinfo=UTC))
    maker = EpisodeMaker(settings.root.path / "elsewhere", rounds=2)
    DuckDBSink(warehouse).write(maker.cell(make_experiment(name="forgotten"), "baseline"))
    rebuild(settings, {"duckdb": create_sink})
    with warehouse.read() as reading:
        runs = reading.query("SELECT source, count(*) FROM runs GROUP BY source ORDER BY source").rows
        calls = reading.query("SELECT count(*) FROM tool_calls WHERE source = 'mcpmark'").rows
    assert runs == (("geode", 1), ("mcpmark", 4))
    assert calls == ((9,),)


def test_one_broken_part_keeps_no_other_from_being_rebuilt(settings: Settings) -> None:
    """Each problem is named; the exit code tells; the rest is there."""
    broken = settings.root.experiment("broken") / "experiment.yaml"
    broken.parent.mkdir()
    broken.write_text("name: [")
    failing = FailingSink()
    warehouse = Warehouse(path=settings.root.warehouse)
    rebuilt = rebuild(settings, {"closed": cannot_open, "mlflow": lambda _: failing, "duckdb": create_sink})
    assert rebuilt.experiments == ("hook_ablation",)
    assert rebuilt.problems[0] == "closed does not open: PermissionError: no database here"
    assert str(broken) in rebuilt.problems[1]
    assert "mlflow has not hook_ablation/baseline: RuntimeError: the server is down" in rebuilt.problems
    assert len(rebuilt.problems) == 2 + len(failing.cells)
    assert failing.closed
    assert len(content(warehouse)["episodes"]) == 4


def test_one_damaged_episode_costs_its_cell_and_no_other(settings: Settings) -> None:
    """The warehouse is cleared first: what was left out for a neighbour's sake would be gone."""
    cell = load_cells(settings.root, "hook_ablation")[0]
    (cell.episodes[0].folder / "episode.json").write_text("{", encoding="utf-8")
    rebuilt = rebuild(settings, {"duckdb": create_sink})
    assert (rebuilt.experiments, rebuilt.cells, rebuilt.episodes) == ((), 6, 2)
    (problem,) = rebuilt.problems
    assert problem.startswith(f"hook_ablation/{cell.variant.name}: {cell.episodes[0].folder}")
