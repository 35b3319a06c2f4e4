"""Done line 2: a sweep that was killed half-way and run again gives what an undisturbed one gives."""

import json
import signal
from pathlib import Path

import pytest
from pydantic import JsonValue

from experiments.episode import VOLATILE_FIELDS, EpisodeRecord
from tests.done.command import end_when, geode, start

SWEEP = ("sweep", "experiment=hook_ablation", "suite.tasks=[config_port,csv_totals]", "tracking=none")
VARIANTS, TASKS = 7, 2


def results(root: Path) -> dict[str, dict[str, JsonValue]]:
    """Every episode's record without the fields that two runs may differ in."""
    records = {}
    for path in root.glob("episodes/*/*/episode.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        records[path.parent.name] = {key: value for key, value in record.items() if key not in VOLATILE_FIELDS}
    return records


def stamps(root: Path) -> dict[str, int]:
    """When each episode's record was written, in nanoseconds."""
    return {path.parent.name: path.stat().st_mtime_ns for path in root.glob("episodes/*/*/episode.json")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("undisturbed")
    ran = geode(root, *SWEEP, "repeats=2", "--root", str(root))
    assert ran.code == 0, ran.err
    return root


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_killed_half_way_and_run_again_it_gives_the_same(
    tmp_path: Path, undisturbed: Path, sent: signal.Signals
) -> None:
    """Nothing is lost, nothing is run twice, and nobody can tell the results apart."""
    sweep = start(tmp_path, *SWEEP, "repeats=2", "--root", str(tmp_path))
    end_when(sweep, tmp_path, "episodes/*/*/episode.json", VARIANTS * TASKS, sent)
    out, err = sweep.communicate()
    assert sweep.returncode == (-9 if sent is signal.SIGKILL else 130), (out, err)
    before = stamps(tmp_path)
    assert VARIANTS * TASKS <= len(before) < 2 * VARIANTS * TASKS

    again = geode(tmp_path, *SWEEP, "repeats=2", "--root", str(tmp_path), "--json")

    assert again.code == 0, again.err
    assert again.json["ran"] == 2 * VARIANTS * TASKS - len(before)
    after = stamps(tmp_path)
    assert {key: after[key] for key in before} == before
    assert results(tmp_path) == results(undisturbed)


@pytest.mark.slow
def test_raising_the_repeats_runs_only_the_new_half(tmp_path: Path, undisturbed: Path) -> None:
    """An episode is named by what determines it, so more of them is no other experiment."""
    first = geode(tmp_path, *SWEEP, "repeats=1", "--root", str(tmp_path), "--json")
    assert first.json["ran"] == VARIANTS * TASKS, first.err
    before = stamps(tmp_path)

    more = geode(tmp_path, *SWEEP, "repeats=2", "--root", str(tmp_path), "--json")

    assert more.json["ran"] == VARIANTS * TASKS, more.err
    after = stamps(tmp_path)
    assert {key: after[key] for key in before} == before
    assert results(tmp_path) == results(undisturbed)


def test_the_volatile_fields_are_named_and_are_only_times_and_ids() -> None:
    """A list that grew to hide a difference would make the comparison above worthless."""
    assert set(EpisodeRecord.model_fields) > VOLATILE_FIELDS
    assert {
        "session_id",
        "started_at",
        "ended_at",
        "wall_s",
        "cpu_s",
        "geode_version",
        "python_version",
    } == VOLATILE_FIELDS
