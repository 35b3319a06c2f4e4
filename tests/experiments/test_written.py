"""What each sink has, cell by cell: a cell that is not exactly that is written again, and no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.sinks import Cell
from experiments.written import WrittenCells
from tests.doubles.cells import make_cells

CELLS = make_cells({"base": {"csv_a": "PF"}, "hook": {"csv_a": "P."}})


def missing(folder: Path, *sinks: str, cells: list[Cell] = CELLS) -> tuple[str, ...]:
    """What another process finds."""
    return WrittenCells(folder).missing(sinks, cells)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    for cell in CELLS:
        WrittenCells(tmp_path).add("mlflow", cell)
    WrittenCells(tmp_path).add("duckdb", CELLS[0])
    return tmp_path


def test_what_a_sink_has_is_remembered_by_sink(filled: Path) -> None:
    """A run that was killed while it wrote goes on with the cells that are missing."""
    assert missing(filled, "mlflow") == ()
    assert missing(filled, "mlflow", "duckdb") == ("hook",)
    assert missing(filled, "other") == ("base", "hook")
    assert missing(filled) == ()


def test_a_cell_that_has_grown_is_missing(filled: Path) -> None:
    """Whoever ran the new episode, and whenever it looked before: what counts is what was written."""
    grown = make_cells({"base": {"csv_a": "PF"}, "hook": {"csv_a": "PP"}})
    assert missing(filled, "mlflow", cells=grown) == ("hook",)


def test_an_episode_that_ran_again_makes_its_cell_missing(filled: Path) -> None:
    """It has the key of the one that it replaces."""
    first, *others = CELLS[1].episodes
    again = replace(first, record=first.record.model_copy(update={"ended_at": first.record.ended_at.replace(hour=9)}))
    assert missing(filled, "mlflow", cells=[replace(CELLS[1], episodes=(again, *others))]) == ("hook",)


@pytest.mark.parametrize(
    "text", ['{"written": 7', "[]", '{"schema": "geode.sinks/1", "written": {"mlflow": ["base", "hook"]}}']
)
def test_a_memory_that_cannot_be_read_writes_everything_again(filled: Path, text: str) -> None:
    """It is derived; sinks take a second write of the same cell."""
    (filled / "sinks.json").write_text(text, encoding="utf-8")
    assert missing(filled, "mlflow") == ("base", "hook")
