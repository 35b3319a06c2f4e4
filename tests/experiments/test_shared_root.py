"""Two sweeps at once on one root, through the installed command: each episode runs once, and both have all of them."""

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from pydantic import JsonValue

from experiments.manifest import MANIFEST_FILE
from experiments.store import read_experiment
from geode.config.paths import StateRoot
from tests.done.command import end_when, start
from tests.doubles.hook_package import install_hooks

pytestmark = pytest.mark.slow

COMMON = ("suite.tasks=[config_port,csv_totals]", "executor.concurrency=2", "--json")
SAME_FOR_BOTH = frozenset({"exit_code", "planned", "variants", "invalid_reasons", "sink_problems", "stopped"})


def sweep(home: Path, name: str, hooks: str, *more: str) -> "subprocess.Popen[str]":
    arguments = ("sweep", *COMMON, f"name={name}", f"hooks={hooks}", "--root", str(home / "root"), *more)
    return start(home, *arguments, more={"PYTHONPATH": str(home / "site")})


def report(process: "subprocess.Popen[str]") -> dict[str, JsonValue]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    body = json.loads(out)
    assert isinstance(body, dict)
    # What another has done before this one plans is reused, and what it does meanwhile is found.
    assert body["ran"] + body["found"] == body["to_run"]
    return body


def manifest_lines(root: StateRoot) -> Counter[tuple[str, str]]:
    """How often each (status, episode) is in any manifest."""
    lines = [
        json.loads(line)
        for path in root.experiments.glob(f"*/{MANIFEST_FILE}")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return Counter((line["status"], line["episode"]) for line in lines if "episode" in line)


def each_once(root: StateRoot, total: int) -> None:
    """Every one of `total` episodes was begun once, ended once, and nothing was set aside."""
    keys = {path.parent.name for path in root.episodes.glob("*/*/episode.json")}
    assert len(keys) == len(list(root.episodes.glob("*/*"))) == total
    lines = manifest_lines(root)
    for status in ("started", "done"):
        assert {key: times for (said, key), times in lines.items() if said == status} == dict.fromkeys(keys, 1)
    assert not [key for said, key in lines if said == "lost"], "what another process is running is not lost"
    assert not root.set_aside.exists()
    assert list(root.workspaces.iterdir()) == []


@pytest.fixture
def home(tmp_path: Path) -> Path:
    install_hooks(tmp_path / "site")
    return tmp_path


def test_the_same_sweep_started_twice_shares_the_work(home: Path) -> None:
    """A second terminal, or a second machine on the same disk, halves the time and changes no result."""
    both = [sweep(home, "one", "[slow],[slow,stop_repeats]", "repeats=4", "tracking=none") for _ in range(2)]
    first, second = map(report, both)
    each_once(StateRoot(home / "root"), 16)
    ran = [int(str(first["ran"])), int(str(second["ran"]))]
    assert sum(ran) == 16
    assert min(ran) > 0, "each ran a part"
    assert {key: first[key] for key in SAME_FOR_BOTH} == {key: second[key] for key in SAME_FOR_BOTH}


def test_two_experiments_share_the_episodes_that_both_ask_for(home: Path) -> None:
    """They are named by what determines them, and not by who asked. The sinks get the cells of both."""
    first, second = map(
        report,
        [
            sweep(home, "one", "[slow],[slow,stop_repeats]", "repeats=4"),
            sweep(home, "two", "[slow],[slow,protect_tests]", "repeats=4"),
        ],
    )
    each_once(StateRoot(home / "root"), 24)
    assert int(str(first["ran"])) + int(str(second["ran"])) == 24
    assert first["variants"]["hooks=slow"] == second["variants"]["hooks=slow"]  # type: ignore[index,call-overload]
    assert first["sink_problems"] == second["sink_problems"] == []
    for name in ("one", "two"):
        written = json.loads((home / "root" / "experiments" / name / "sinks.json").read_text(encoding="utf-8"))
        assert {sink: len(cells) for sink, cells in written["written"].items()} == {"mlflow": 2, "duckdb": 2}


def test_what_a_killed_sweep_was_running_is_taken_over_by_the_other(home: Path) -> None:
    """Nobody has to start it again: the one that is left ends with everything, the killed one's half episodes too."""
    root = StateRoot(home / "root")
    arguments = (home, "one", "[slow],[slow,stop_repeats]", "repeats=4", "tracking=none")
    victim, other = sweep(*arguments), sweep(*arguments)
    end_when(victim, root.path, "episodes/*/*/episode.json", 3, signal.SIGKILL)
    victim.communicate()
    complete = report(other)
    assert complete["planned"] == 16
    assert len(list(root.episodes.glob("*/*/episode.json"))) == 16
    done = [key for (said, key), times in manifest_lines(root).items() if said == "done" and times == 1]
    assert len(done) == 16
    assert list(root.workspaces.iterdir()) == [], "the killed one's, too"


def test_jobs_of_another_sweeper_side_by_side_make_one_experiment(home: Path) -> None:
    """A launcher of Hydra may run them at once: each adds its variant, and none takes another's away."""
    jobs = [
        sweep(home, "one", hooks, "repeats=4", "tracking=none", "hydra/sweeper=basic")
        for hooks in ("[slow]", "[slow,stop_repeats]")
    ]
    for job in jobs:
        out, err = job.communicate()
        assert job.returncode == 0, (out, err)
    root = StateRoot(home / "root")
    each_once(root, 16)
    assert {variant.name for variant in read_experiment(root, "one").variants} == {
        "hooks=slow",
        "hooks=slow+stop_repeats",
    }
