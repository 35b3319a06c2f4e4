"""A truth is shown only where it was measured: same scaffold, same tasks, same table of faults."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.truth import TruthRefused, TruthTable, distil_truth, load_truth, true_difference
from experiments.records import TaskRef
from tests.doubles.cells import Letters, make_cells, make_experiment

LETTERS: Letters = {
    "baseline": {"a": "PPPPFFFFFF", "b": "PPPPPPPPPP"},
    "hook": {"a": "PPPPPPPPFI", "b": "PPPPPPPPPP"},
}
CELLS = make_cells(LETTERS)
BASELINE, HOOK = (cell.variant for cell in CELLS)
TASKS = CELLS[0].experiment.ruler.tasks


def test_the_true_difference_is_the_mean_over_tasks_with_its_own_error() -> None:
    """8/9 against 4/10 on one task, nothing on the other; binomial variances."""
    found = true_difference(distil_truth(CELLS, "t"), HOOK, BASELINE, TASKS)
    assert found is not None
    assert found.estimate == pytest.approx((8 / 9 - 0.4) / 2)
    assert found.standard_error == pytest.approx(((8 / 9) * (1 / 9) / 9 + 0.4 * 0.6 / 10) ** 0.5 / 2)


def test_another_task_or_scaffold_or_model_has_no_truth() -> None:
    """A truth about something similar is not the truth about this."""
    table = distil_truth(CELLS, "t")
    other_task = TaskRef(task_id="a", family="a", task_hash="f" * 64)
    other_scaffold = HOOK.model_copy(update={"scaffold_id": "0" * 12})
    real = HOOK.model_copy(update={"roles": {"target": "anthropic/claude-opus-5-5"}})
    assert true_difference(table, HOOK, BASELINE, (*TASKS, other_task)) is None
    assert true_difference(table, other_scaffold, BASELINE, TASKS) is None
    assert true_difference(table, real, BASELINE, TASKS) is None
    assert true_difference(None, HOOK, BASELINE, TASKS) is None


def test_a_truth_survives_its_file_and_holds_for_its_table_of_faults_only(tmp_path: Path) -> None:
    """A worker with other faults has another truth."""
    table, file = distil_truth(CELLS, "t"), tmp_path / "truth.json"
    assert load_truth("t", file) is None
    file.write_text(table.model_dump_json(by_alias=True))
    assert load_truth("t", file) == table
    assert load_truth("another", file) is None


def test_a_damaged_truth_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    """Silently showing `not measured` would hide a broken installation."""
    file = tmp_path / "truth.json"
    file.write_text(
        '{"schema":"geode.truth/1","table_hash":"t","entries":[{"scaffold_id":"x","tasks":{"h":{"n":1,"passes":2}}}]}'
    )
    with pytest.raises(TruthRefused, match=r"truth\.json.*2 passes of 1"):
        load_truth("t", file)


def test_only_complete_simulated_runs_become_a_truth() -> None:
    """No language model has a known truth, and a task without a measurement has no rate."""
    real = make_cells(LETTERS, make_experiment(LETTERS, model="anthropic/claude-opus-5-5"))
    with pytest.raises(TruthRefused, match="anthropic/claude-opus-5-5"):
        distil_truth(real, "t")
    with pytest.raises(TruthRefused, match="no measured episode of b"):
        distil_truth(make_cells({"baseline": {"a": "P", "b": "I"}}), "t")


def test_a_run_that_has_not_ended_is_no_truth_yet() -> None:
    """A long run is looked at while it runs, and its shares then are not those that it will end with."""
    half = [replace(cell, episodes=cell.episodes[:-1]) for cell in CELLS]
    with pytest.raises(TruthRefused, match="19 of 20 episodes"):
        distil_truth(half, "t")


def test_the_shipped_truth_can_be_read_where_it_is_there() -> None:
    """Whatever is shipped must not break `geode compare`."""
    assert load_truth("no such table") is None or isinstance(load_truth("no such table"), TruthTable)
