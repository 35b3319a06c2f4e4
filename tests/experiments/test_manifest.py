"""The manifest that several processes append to: it tells what each episode came to, and invents no loss."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.claims import Claims, episode_name
from experiments.manifest import MANIFEST_FILE, EpisodeStatus, Manifest, read_manifest
from experiments.plan import PlannedEpisode, make_plan
from experiments.store import EpisodeStore
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.redaction import Redactor
from tests.doubles.cells import make_cells, make_experiment
from tests.doubles.claimer import Claimer

LETTERS = {"base": {"csv_a": "PFI"}}
PLANNED, STARTED, DONE, FAILED, LOST = EpisodeStatus


class Ground:
    """A manifest with three planned episodes, none of them run."""

    def __init__(self, path: Path) -> None:
        self.store = EpisodeStore(StateRoot(path / "root"), ManualClock(), Redactor())
        self.folder = path / "experiment"
        self.manifest = Manifest(self.folder, ManualClock())
        plan = make_plan(make_experiment(LETTERS), ["base"], 3, self.store)
        self.episodes: list[PlannedEpisode] = [episode for block in plan.blocks for episode in block.episodes]
        for episode in self.episodes:
            self.manifest.note(episode, PLANNED)

    def key(self, index: int) -> str:
        return self.episodes[index].spec.episode_key

    def finish(self, index: int) -> None:
        records = (stored.record for cell in make_cells(LETTERS) for stored in cell.episodes)
        self.store.begin(self.key(index), {})
        self.store.finish(next(record for record in records if record.episode_key == self.key(index)))

    def statuses(self) -> list[EpisodeStatus]:
        said = read_manifest(self.folder)
        return [said[self.key(index)] for index in range(3)]


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    yield made
    made.manifest.close()


def test_what_was_started_is_lost_unless_it_is_done_or_a_process_still_runs_it(ground: Ground) -> None:
    """A command that begins beside another one must not call its episodes lost."""
    for episode in ground.episodes:
        ground.manifest.note(episode, STARTED)
    ground.finish(1)
    claims = Claims(ground.store.root)
    with Claimer(ground.store.root.path) as another:
        another.take(episode_name(ground.key(2)))
        ground.manifest.note_lost(claims, ground.store)
        assert [ground.statuses()[index] for index in (0, 2)] == [LOST, STARTED]
        assert ground.statuses()[1] in {DONE, FAILED}, "it died between the record and this line"
    ground.manifest.note_lost(claims, ground.store)
    assert ground.statuses()[2] is LOST
    claims.close()


def test_planning_says_nothing_of_what_another_run_has_begun(ground: Ground) -> None:
    """Else a killed run's episode would be called planned, and nobody would know that it was lost."""
    first, second, third = ground.episodes
    ground.manifest.note(first, STARTED)
    ground.manifest.note(second, DONE)
    ground.manifest.note(third, LOST)
    other = Manifest(ground.folder, ManualClock())
    for episode in ground.episodes:
        other.note(episode, PLANNED)
    other.close()
    assert ground.statuses() == [STARTED, DONE, PLANNED]


def test_a_line_that_a_full_disk_cut_off_spoils_no_other(ground: Ground) -> None:
    """The next process to open the file ends it."""
    with (ground.folder / MANIFEST_FILE).open("a", encoding="utf-8") as file:
        file.write('{"at":"2030-01-01T00:00:00.000Z","episo')
    other = Manifest(ground.folder, ManualClock())
    other.note(ground.episodes[0], STARTED)
    other.close()
    assert ground.statuses() == [STARTED, PLANNED, PLANNED]
