"""One store, made once and whole, and writes that can be repeated."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from experiments.tracking_names import screen
from experiments.tracking_store import EntriesSetAside, TrackedRun, TrackingError, TrackingStore, ensure_store
from geode.config.settings import Settings, read_settings
from tests.doubles.tracked_episodes import dump
from tests.experiments.conftest import OpenedAtOnce

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]  # MLflow's own use of SQLAlchemy


@pytest.fixture
def store(tracking_settings: Settings) -> TrackingStore:
    return TrackingStore(tracking_settings)


@pytest.fixture
def run(store: TrackingStore) -> TrackedRun:
    return store.create_run(store.experiment("geode/x", "note").experiment_id, "baseline", 1_000, {"geode.cell": "x"})


def test_four_processes_that_open_a_new_store_at_once_get_one_whole_store(opened_at_once: OpenedAtOnce) -> None:
    """MLflow's own creation fails in most of them, and leaves a store that nobody can open."""
    assert opened_at_once.failures == ()
    database = read_settings(opened_at_once.root, {}).root.mlflow_database
    assert opened_at_once.printed == (f"sqlite:///{database}\n",) * 4
    assert {path.name for path in database.parent.iterdir()} == {"mlflow.db", "mlflow.lock"}
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert len(connection.execute("SELECT version_num FROM alembic_version").fetchall()) == 1


@pytest.mark.slow
def test_what_a_killed_creation_left_is_built_anew(tmp_path: Path) -> None:
    """A store that was killed half-way is no store: it lies beside the place, and the place is still empty."""
    database = read_settings(tmp_path, {}).root.mlflow_database
    database.parent.mkdir(parents=True)
    database.with_suffix(".building").write_text("half a store")
    database.with_suffix(".copy").write_text("half a copy")
    ensure_store(read_settings(tmp_path, {}))
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert {path.name for path in database.parent.iterdir()} == {"mlflow.db", "mlflow.lock"}


def test_a_users_own_tracking_uri_wins_and_nothing_is_made(tmp_path: Path) -> None:
    """A team's server is the team's; a second store beside it would hold half of the runs."""
    settings = read_settings(tmp_path / "root", {"MLFLOW_TRACKING_URI": "http://tracking.example:5000"})
    assert ensure_store(settings) == "http://tracking.example:5000"
    assert not settings.root.path.exists()


@pytest.mark.parametrize("content", [b"no database " * 500, b"SQLite format 3\0" + bytes(5_000)])
def test_a_damaged_store_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    """What a driver says names no file, and `geode ui`, a sweep and a rebuild all meet it."""
    settings = read_settings(tmp_path, {})
    settings.root.mlflow_database.parent.mkdir()
    settings.root.mlflow_database.write_bytes(content)
    with pytest.raises(TrackingError, match=r"mlflow\.db.*geode archive rebuild"):
        TrackingStore(settings)
    assert settings.root.mlflow_database.read_bytes() == content


def test_artifacts_have_an_absolute_place(store: TrackingStore) -> None:
    """MLflow's default depends on the working folder, and loses them with the next `cd`."""
    place = store.experiment("geode/x", "note").artifact_location
    assert place == store.settings.root.mlflow_artifacts.as_uri()


def test_writing_the_same_again_changes_nothing(store: TrackingStore, run: TrackedRun) -> None:
    """A rebuild must be able to run at any time, any number of times."""
    entries = screen(metrics={"pass_rate": 0.5}, params={"variant": "baseline"}, tags={"verdict": "KEEP"})
    assert store.update(run, entries) == ()
    store.end_run(store.run(run.run_id), "FINISHED", 2_000)
    before = dump(store.settings)
    assert store.update(store.run(run.run_id), entries) == ()
    store.end_run(store.run(run.run_id), "FINISHED", 2_000)
    assert dump(store.settings) == before


def test_the_last_value_of_a_metric_is_what_counts(store: TrackingStore, run: TrackedRun) -> None:
    """Also when it is smaller than the first, and also when a third write goes back to the first."""
    for value in (0.7, 0.2, 0.7):
        store.update(store.run(run.run_id), screen(metrics={"pass_rate": value}))
        assert store.run(run.run_id).metrics == {"pass_rate": value}


def test_a_covered_metric_without_a_value_becomes_nan_once_and_may_come_back(
    store: TrackingStore, run: TrackedRun
) -> None:
    """MLflow deletes no metric; NaN is shown as no number, and what was never there stays away."""
    names = ("diff_low", "diff_high")
    store.update(run, screen(metrics={"diff_low": 0.1, "pass_rate": 0.5}), covered=names)
    for _ in range(2):
        store.update(store.run(run.run_id), screen(), covered=names)
    found = store.run(run.run_id).metrics
    assert found.keys() == {"diff_low", "pass_rate"}
    assert math.isnan(found["diff_low"])
    assert len(store.client.get_metric_history(run.run_id, "diff_low")) == 2
    store.update(store.run(run.run_id), screen(metrics={"diff_low": 0.2}), covered=names)
    assert store.run(run.run_id).metrics["diff_low"] == 0.2


def test_a_param_that_changed_is_set_aside_and_the_rest_is_logged(store: TrackingStore, run: TrackedRun) -> None:
    """MLflow refuses the whole batch for it."""
    store.update(run, screen(params={"hooks": "none"}))
    problems = store.update(
        store.run(run.run_id), screen(params={"hooks": "stop_repeats", "suite": "workspace"}, metrics={"passes": 3})
    )
    assert "'none' in MLflow, which lets no param change to 'stop_repeats'" in str(problems[0])
    after = store.run(run.run_id)
    assert after.params == {"hooks": "none", "suite": "workspace"}
    assert after.metrics == {"passes": 3}


def test_mlflow_takes_every_key_that_the_map_makes(store: TrackingStore, run: TrackedRun) -> None:
    """The map is of no use if MLflow's own check is stricter than ours."""
    names = ["pass@1", "a/../b", "/a", "..", "정확도", "a b", "a,b[0]", "_x40_", "n" * 250]
    assert store.update(run, screen(metrics=dict.fromkeys(names, 1.0), params=dict.fromkeys(names, "p"))) == ()
    assert len(store.run(run.run_id).metrics) == len(store.run(run.run_id).params) == len(names)


def test_many_entries_go_in_one_update(store: TrackingStore, run: TrackedRun) -> None:
    """MLflow's limits a request are 1,000 metrics and 100 params; ours is none."""
    entries = screen(
        metrics={f"m{number}": number for number in range(1_001)}, params={f"p{n}": "x" for n in range(120)}
    )
    assert store.update(run, entries) == ()
    assert len(store.run(run.run_id).metrics) == 1_001


def test_a_long_value_can_be_read_back_whole(store: TrackingStore, run: TrackedRun) -> None:
    """20 KB of configuration: the hash is in the param, the text in the artifact that the param names."""
    config = "가: 1\n" * 3_000
    store.update(run, screen(params={"config": config}))
    param = store.run(run.run_id).params["config"]
    path = param.rsplit(" in ", 1)[1].rstrip(")")
    local = store.client.download_artifacts(run.run_id, path)
    assert Path(local).read_text(encoding="utf-8") == config


def test_an_experiment_that_was_deleted_in_mlflow_comes_back(store: TrackingStore) -> None:
    """A rebuild after a click too many must not end in an error about a name that is taken."""
    first = store.experiment("geode/x", "note")
    store.client.delete_experiment(first.experiment_id)
    assert store.experiment("geode/x", "note") == first
    assert store.client.get_experiment(first.experiment_id).lifecycle_stage == "active"


def test_what_was_set_aside_is_named_with_its_reason() -> None:
    """A reader of the message must be able to act on it."""
    error = EntriesSetAside("the cell 'a' of 'x'", screen(metrics={"bad": float("nan")}).set_aside)
    assert (
        str(error)
        == "MLflow has the cell 'a' of 'x' without these entries: metric 'bad' is nan, which is no measurement"
    )
