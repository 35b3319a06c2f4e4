"""How far an experiment is: what the folders, the manifest and the claims say together."""

import json
from pathlib import Path

import pytest

from experiments.claims import episode_name
from experiments.status import print_status
from experiments.store import EpisodeStore
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.redaction import Redactor
from tests.doubles.cells import make_cells, make_experiment, store_cells
from tests.doubles.claimer import Claimer

LETTERS = {"base": {"csv_a": "PF."}, "hook": {"csv_a": "I.."}}


def test_an_unfinished_episode_is_running_as_long_as_its_process_lives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who looks in from a second terminal must see whether to wait, or to start the sweep again."""
    root = StateRoot(tmp_path)
    store_cells(root, make_cells(LETTERS))
    experiment = make_experiment(LETTERS)
    *_, (_, _, _, key) = experiment.episode_keys(experiment.variant("base"))
    EpisodeStore(root, ManualClock(), Redactor()).begin(key, {})

    def rows() -> list[dict[str, int]]:
        assert print_status(Settings(root=root, tracking_uri=None, environment={}), "ablation", as_json=True)
        return list(json.loads(capsys.readouterr().out)["variants"].values())

    with Claimer(tmp_path) as another:
        another.take(episode_name(key))
        base, hook = rows()
    assert (base["done"], base["running"], base["unfinished"]) == (2, 1, 0)
    assert (hook["done"], hook["invalid"], hook["running"], hook["unfinished"]) == (1, 1, 0, 0)
    base, _ = rows()
    assert (base["running"], base["unfinished"]) == (0, 1), "it was killed"
