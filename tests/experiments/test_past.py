"""A plan looks back at what has run, within bounds, and changes nothing."""

import os
from pathlib import Path

import pytest

from experiments.past import look_back
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from tests.doubles.cells import make_cells, make_experiment, store_cells

OWN = {"base": {"csv_a": "PF", "csv_b": "PP"}, "hook": {"csv_a": "P.", "csv_b": ".."}}


@pytest.fixture
def root(tmp_path: Path) -> StateRoot:
    """Five episodes of the experiment, and four of another one, the last of which is the oldest."""
    root = StateRoot(tmp_path)
    store_cells(root, make_cells(OWN))
    others = make_cells({"elsewhere": {"log_a": "PPPF"}})
    store_cells(root, others)
    for age, stored in enumerate(others[0].episodes):
        os.utime(root.episode(stored.record.episode_key) / "episode.json", (1e9 - age, 1e9 - age))
    return root


def test_own_episodes_come_as_cells_and_others_the_newest_first(root: StateRoot) -> None:
    found = look_back(root, make_experiment(OWN), ManualClock())
    assert [[stored.record.repetition for stored in cell.episodes] for cell in found.cells] == [[0, 0, 1, 1], [0]]
    assert [record.repetition for record in found.others] == [0, 1, 2, 3]
    assert len(found.records) == 9


def test_bounds_leave_whole_blocks_and_the_newest(root: StateRoot) -> None:
    """Two of the experiment's blocks are half of a repetition of all variants; of the others one is the newest."""
    found = look_back(root, make_experiment(OWN), ManualClock(), own_max=2, others_max=1)
    assert [[stored.record.task_id for stored in cell.episodes] for cell in found.cells] == [["csv_a"], ["csv_a"]]
    assert [record.repetition for record in found.others] == [0]


def test_time_is_bounded_too(root: StateRoot) -> None:
    """A slow disk makes a plan rest on less, not wait for ever."""

    class Slow(ManualClock):
        def monotonic_s(self) -> float:
            self.advance(0.75)
            return self.elapsed_s

    found = look_back(root, make_experiment(OWN), Slow())
    assert 0 < len(found.records) < 9


def test_what_cannot_be_read_is_passed_over(root: StateRoot) -> None:
    """The plan names damage by itself; a forecast only does without it."""
    (_, hook) = make_cells(OWN)
    (root.episode(hook.episodes[0].record.episode_key) / "episode.json").write_text("{", encoding="utf-8")
    (root.episodes / "ab" / "unfinished").mkdir(parents=True)
    found = look_back(root, make_experiment(OWN), ManualClock())
    assert [len(cell.episodes) for cell in found.cells] == [4, 0]


def test_an_empty_root_has_no_past(tmp_path: Path) -> None:
    found = look_back(StateRoot(tmp_path / "new"), make_experiment(OWN), ManualClock())
    assert (found.records, [cell.episodes for cell in found.cells]) == ((), [(), ()])
    assert not (tmp_path / "new").exists()
