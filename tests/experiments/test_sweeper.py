"""The command line through Hydra and our sweeper, down to the exit code, with the real loop and the real suite."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from experiments.cli import register
from experiments.episode import VOLATILE_FIELDS
from experiments.store import load_cells, read_experiment
from geode.config.paths import StateRoot

pytestmark = pytest.mark.slow

SMALL = ["tracking=none", "suite.tasks=[config_port,csv_totals]", "repeats=1"]


class Command:
    """`geode` in a working folder of its own."""

    def __init__(self, path: Path) -> None:
        self.root = StateRoot(path / "root")
        self._app = typer.Typer()
        register(self._app)

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(self._app, [*arguments, "--root", str(self.root.path)])

    def json(self, *arguments: str) -> dict[str, object]:
        result = self(*arguments, "--json")
        assert result.exit_code == 0, result.output
        body = json.loads(result.stdout)
        assert isinstance(body, dict)
        return body


@pytest.fixture
def geode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # as the command sets it; set here, it is taken back after the test
    yield Command(tmp_path)
    assert list(work.iterdir()) == [], "neither outputs/ nor multirun/ appears where a user works"


@pytest.mark.slow
def test_a_sweep_is_one_experiment_and_running_it_again_runs_nothing(geode: Command) -> None:
    """The variants are named by what they are, interleaved under one name, and paid for once."""
    first = geode("sweep", *SMALL, "hooks=[],[require_test_run]", "name=mine")
    assert first.exit_code == 0, first.output
    record = read_experiment(geode.root, "mine")
    assert [variant.name for variant in record.variants] == ["hooks=none", "hooks=require_test_run"]
    assert record.baseline == "hooks=none"
    cells = load_cells(geode.root, "mine")
    assert [len(cell.episodes) for cell in cells] == [2, 2]
    assert all(episode.record.simulated for cell in cells for episode in cell.episodes)
    again = geode.json("sweep", *SMALL, "hooks=[],[require_test_run]", "name=mine")
    assert (again["ran"], again["planned"]) == (0, 4)
    grown = geode.json("sweep", *SMALL, "hooks=[stop_repeats]", "repair=0,2", "name=mine")
    assert (grown["ran"], len(read_experiment(geode.root, "mine").variants)) == (4, 4)


@pytest.mark.slow
def test_the_folder_of_an_episode_says_what_ran_and_nothing_of_this_machine(geode: Command, tmp_path: Path) -> None:
    """It is the only truth, and can be copied to another machine."""
    geode("run", *SMALL, "hooks=[protect_tests]", "name=one")
    ((episode, *_),) = (cell.episodes for cell in load_cells(geode.root, "one"))
    spec = yaml.safe_load((episode.folder / "spec.yaml").read_text(encoding="utf-8"))
    assert (spec["schema"], spec["episode_key"]) == ("geode.episode_spec/1", episode.folder.name)
    assert [hook["name"] for hook in spec["scaffold"]["hooks"]] == ["protect_tests"]
    assert {"episode.json", "session.db", "effects.db", "timeline.jsonl", "state.json"} <= {
        path.name for path in episode.folder.iterdir()
    }
    here = (str(tmp_path).encode(), str(Path(__file__).parents[2]).encode(), os.environ["HOME"].encode() + b"/")
    assert not [(path.name, place) for path in episode.folder.iterdir() for place in here if place in path.read_bytes()]


@pytest.mark.slow
def test_the_preset_plans_what_it_says_and_runs_nothing(geode: Command) -> None:
    """Seven variants, six tasks, thirty repeats: the ablation that the demo runs."""
    plan = geode.json("sweep", "experiment=hook_ablation", "--plan")
    assert list(plan["variants"]) == [  # type: ignore[call-overload]
        "baseline",
        "require_test_run",
        "protect_tests",
        "stop_repeats",
        "all_three",
        "placebo",
        "harmful",
    ]
    assert (plan["experiment"], plan["to_run"], plan["blocks"]) == ("hook_ablation", 7 * 6 * 30, 6 * 30)
    assert not geode.root.episodes.exists()
    assert not geode.root.experiments.exists()


@pytest.mark.slow
def test_another_sweeper_runs_one_job_a_cell(geode: Command) -> None:
    """Hydra's own sweepers and launchers stay usable; their cells land in the same store and experiment."""
    result = geode("sweep", *SMALL, "hydra/sweeper=basic", "hooks=[],[stop_repeats]", "name=basic")
    assert result.exit_code == 0, result.output
    assert [len(cell.episodes) for cell in load_cells(geode.root, "basic")] == [2, 2]
    refused = geode("sweep", "hydra/sweeper=basic", "experiment=hook_ablation", *SMALL)
    assert refused.exit_code == 2
    assert "named variants need hydra/sweeper=geode" in refused.stderr


REFUSED = {
    ("sweep", "hooks=[],[requier_test_run]"): "did you mean 'require_test_run'",
    ("sweep", "question='\udcec\udc97'"): "it is no text in UTF-8; set the terminal to UTF-8",
    ("sweep", "--plann"): "of its own geode has --plan, --root PATH and --json",
    ("run", "repair.per_prompt=-1"): "\n  repair.per_prompt: -1 is refused",
    ("sweep", "question=정확도"): "\"'정확도'\"",
    ("sweep", "+variants.a=['repair.per_prompt=-1']"): "variant a: repair.per_prompt: -1 is refused",
    ("sweep", "repair=2,default"): "are the same scaffold",
    ("sweep", "suite.tasks=[fix_slag]"): "there is no task 'fix_slag' in 'workspace'; did you mean 'fix_slug'?",
    ("sweep", "baseline=bse", "+variants.base=[]"): "there is no variant 'bse'; did you mean 'base'?",
    ("run", "hooks=[],[stop_repeats]"): "geode run takes one variant, and these are 2",
    ("sweep", "status", "mine"): "no experiment 'mine'",
    ("sweep", "status"): "takes the name of one experiment",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_is_refused_runs_nothing_and_says_why_in_one_message(geode: Command, arguments: tuple[str, ...]) -> None:
    """Exit code 2, one compact message, no traceback, and not one variant of a wrong sweep is run."""
    own = SMALL if arguments[1] != "status" else []
    result = geode(*arguments[:1], *own, *arguments[1:]) if own else geode(*arguments)
    assert result.exit_code == 2, result.output
    assert REFUSED[arguments] in result.stderr
    assert "Traceback" not in result.output
    assert not geode.root.episodes.exists()


def test_the_own_flags_of_hydra_still_work(geode: Command) -> None:
    """What is not ours is handed on as it came, wherever it stands."""
    shown = geode("run", "repair=0", "--cfg", "job")
    assert shown.exit_code == 0
    assert yaml.safe_load(shown.stdout)["repair"]["per_prompt"] == 0
    told = geode("sweep", "--help")
    assert "Exit codes: 0 all done" in told.stdout


@pytest.mark.slow
def test_damaged_episodes_stop_the_run_until_they_are_set_aside(geode: Command) -> None:
    """The folders are named with the next step; what is moved away is not deleted."""
    geode("run", *SMALL, "name=one")
    folder = load_cells(geode.root, "one")[0].episodes[0].folder
    (folder / "episode.json").write_text("{", encoding="utf-8")
    refused = geode("run", *SMALL, "name=one")
    assert refused.exit_code == 2
    assert str(folder) in refused.stderr
    assert "damaged=set_aside" in refused.stderr
    assert geode.json("run", *SMALL, "name=one", "damaged=set_aside")["ran"] == 1
    assert [path.name.split(".")[0] for path in geode.root.set_aside.iterdir()] == [folder.name]
    status = geode.json("sweep", "status", "one")
    assert status["variants"]["default"] == {  # type: ignore[index]
        "planned": 2,
        "done": 2,
        "invalid": 0,
        "running": 0,
        "unfinished": 0,
        "lost": 0,
        "damaged": 0,
        "set_aside": 1,
    }


@pytest.mark.slow
def test_another_ruler_under_the_same_name_is_refused(geode: Command) -> None:
    """A name stands for one ruler; the message says what differs, and how to go on."""
    geode("run", *SMALL, "name=one")
    refused = geode("run", *SMALL, "name=one", "caps.rounds=5")
    assert refused.exit_code == 2
    assert "ruler, caps" in refused.stderr
    assert "name=..." in refused.stderr


KILLED = ["tracking=none", "suite.tasks=[config_port,csv_totals]", "repeats=6", "hooks=[],[stop_repeats]", "name=k"]


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_ends_as_an_undisturbed_one(geode: Command, tmp_path: Path) -> None:
    """Killed with -9 half-way, the same command gives the same records; finished episodes are not run again."""
    script = "from geode.cli import main; main()"
    command = [sys.executable, "-c", script, "sweep", *KILLED, "--root", str(geode.root.path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as run:
        deadline = time.monotonic() + 60
        while len(list(geode.root.episodes.glob("*/*/episode.json"))) < 8 and time.monotonic() < deadline:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    before = {path: path.read_bytes() for path in geode.root.episodes.glob("*/*/episode.json")}
    assert 8 <= len(before) < 24
    resumed = geode.json("sweep", *KILLED)
    assert resumed["ran"] == 24 - len(before)
    assert {path: path.read_bytes() for path in before} == before
    undisturbed = Command(tmp_path / "other")
    undisturbed("sweep", *KILLED)
    assert records(geode.root) == records(undisturbed.root)


def records(root: StateRoot) -> dict[str, dict[str, object]]:
    return {
        episode.record.episode_key: episode.record.model_dump(exclude=set(VOLATILE_FIELDS))
        for cell in load_cells(root, "k")
        for episode in cell.episodes
    }
