"""What is on record, finished or not, with names that lead on."""

from pathlib import Path

import pytest

from analysis.ls import CellLine, EpisodeLine, ExperimentLine, UnknownVariant, lines_to_json, list_what
from experiments.store import RecordDamaged, UnknownExperiment
from geode.config.paths import StateRoot
from tests.doubles.cells import make_cells, store_cells

LETTERS = {"baseline": {"a": "PFI.", "b": "PPPP"}, "hook": {"a": "PPPP", "b": "...."}}


@pytest.fixture
def root(tmp_path: Path) -> StateRoot:
    root = StateRoot(tmp_path)
    store_cells(root, make_cells(LETTERS))
    return root


def test_an_empty_root_lists_nothing(tmp_path: Path) -> None:
    """A first look before the first sweep is no error."""
    assert list(list_what(StateRoot(tmp_path / "none"))) == []


def test_experiments_are_listed_with_what_is_done_of_them(root: StateRoot) -> None:
    """Eleven of sixteen planned episodes have a record."""
    (line,) = list_what(root)
    assert line == ExperimentLine(
        name="ablation", question="Which hook helps?", variants=("baseline", "hook"), finished=11, planned=16
    )


def test_a_damaged_experiment_does_not_hide_the_others(root: StateRoot) -> None:
    """One bad file must not take the list with it, nor pass unnoticed."""
    broken = root.experiment("broken")
    broken.mkdir()
    (broken / "experiment.yaml").write_text("{")
    first, second = list_what(root)
    assert isinstance(first, ExperimentLine)
    assert isinstance(second, ExperimentLine)
    assert (first.finished, second.name) == (11, "broken")
    assert "cannot be read" in second.problem
    with pytest.raises(RecordDamaged):
        list_what(root, "broken")


def test_cells_are_listed_with_their_outcomes(root: StateRoot) -> None:
    """INVALID is counted apart."""
    baseline, hook = list_what(root, "ablation")
    assert isinstance(baseline, CellLine)
    assert isinstance(hook, CellLine)
    assert (baseline.planned, baseline.passes, baseline.fails, baseline.invalid) == (8, 5, 1, 1)
    assert (hook.planned, hook.passes, baseline.is_baseline, hook.is_baseline) == (8, 4, True, False)


def test_episodes_are_listed_with_their_state(root: StateRoot) -> None:
    """One not run, one begun, one damaged: none is silently left out."""
    lines = [line for line in list_what(root, "ablation", "baseline") if isinstance(line, EpisodeLine)]
    by_place = {(line.task_id, line.repetition): line for line in lines}
    assert [by_place["a", number].state for number in range(4)] == ["PASS", "FAIL", "INVALID", "new"]
    root.episode(by_place["a", 3].episode_key).mkdir(parents=True)
    (root.episode(by_place["a", 0].episode_key) / "episode.json").write_text("{}")
    after = {
        (line.task_id, line.repetition): line
        for line in list_what(root, "ablation", "baseline")
        if isinstance(line, EpisodeLine)
    }
    assert (after["a", 0].state, after["a", 3].state) == ("damaged", "unfinished")
    assert "newer GEODE" in after["a", 0].reasons[0]


def test_a_task_is_listed_of_all_variants_or_of_one(root: StateRoot) -> None:
    """The episodes behind one figure of a table, and no others."""
    lines = [line for line in list_what(root, "ablation", task="a") if isinstance(line, EpisodeLine)]
    assert [(line.variant, line.repetition) for line in lines] == [
        (variant, repetition) for variant in ("baseline", "hook") for repetition in range(4)
    ]
    (first, *_, last) = [line for line in list_what(root, "ablation", "hook", "b") if isinstance(line, EpisodeLine)]
    assert {(line.variant, line.task_id) for line in (first, last)} == {("hook", "b")}


def test_unknown_names_are_answered_with_the_nearest(root: StateRoot) -> None:
    """A misspelling costs one look, not a search."""
    with pytest.raises(UnknownExperiment, match="did you mean 'ablation'"):
        list_what(root, "ablatoin")
    with pytest.raises(UnknownVariant, match="did you mean 'hook'"):
        list_what(root, "ablation", "hok")
    with pytest.raises(UnknownVariant, match="no task 'c' in experiment 'ablation'"):
        list_what(root, "ablation", task="c")


def test_lines_are_json(root: StateRoot) -> None:
    """A program reads the same facts."""
    body = lines_to_json(list_what(root, "ablation"))
    assert body["schema"] == "geode.list/1"
    assert body["items"][1]["variant"] == "hook"
