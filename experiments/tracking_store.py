"""The one door to MLflow: a store that is made once and whole, and the few calls that the bench needs of it.

MLflow takes 1.5 seconds to import, so it is imported when a store is first opened, and nowhere else.
"""

import logging
import math
import os
import sqlite3
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock

from experiments.tracking_names import NOTE_TAG, Entries, EntryKind, SetAside
from geode.config.settings import Settings

LOCK_TIMEOUT_S = 120.0
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # else the first use looks up a host of MLflow's own
    "DO_NOT_TRACK": "true",
    "MLFLOW_TRUNCATE_LONG_VALUES": "false",  # refuse what is too long; never cut it
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",  # 7 keep a run waiting for minutes when a server is down
    "GIT_PYTHON_REFRESH": "quiet",
}
_REMOTE = ("http://", "https://", "databricks")


class TrackingError(Exception):
    """MLflow could not be given what it should hold. The episode folders have it all the same."""


class EntriesSetAside(TrackingError):  # noqa: N818  (named by what happened)
    """Some entries were not logged; all others were."""

    def __init__(self, where: str, entries: tuple[SetAside, ...]) -> None:
        shown = "; ".join(str(entry) for entry in entries[:5])
        more = f"; and {len(entries) - 5} more" if len(entries) > 5 else ""
        super().__init__(f"MLflow has {where} without these entries: {shown}{more}")
        self.entries = entries


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedExperiment:
    """An experiment of MLflow."""

    experiment_id: str
    artifact_location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """A run as MLflow holds it: what a writer compares with before it writes."""

    run_id: str
    name: str
    status: str
    end_time_ms: int | None
    metrics: Mapping[str, float]
    params: Mapping[str, str]
    tags: Mapping[str, str]


@cache
def load_mlflow() -> ModuleType:
    """Import MLflow, without its telemetry. Every other module gets it from here."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    mlflow = import_module("mlflow")
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return mlflow


def is_remote(uri: str) -> bool:
    """Say whether a server owns the store, and so decides where artifacts go."""
    return uri.startswith(_REMOTE)


def ensure_store(settings: Settings) -> str:
    """Return the tracking URI, and make the default store if it is not there.

    A user's own `MLFLOW_TRACKING_URI` wins and is left alone. Processes that open a new SQLite store of MLflow at the
    same time break it, so ours is built beside its place, by one process under a lock, and moved there whole: if
    the file is there, it is ready.

    Raises:
        filelock.Timeout: if another process holds the lock for longer than `LOCK_TIMEOUT_S`.
    """
    if settings.tracking_uri:
        return settings.tracking_uri
    database = settings.root.mlflow_database
    if not database.exists():
        database.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(database.with_suffix(".lock"), timeout=LOCK_TIMEOUT_S):
            if not database.exists():
                _build(database)
    return _sqlite_uri(database)


def artifact_location(settings: Settings, uri: str) -> str | None:
    """Return where a new experiment's artifacts go: an absolute place, or None where a server decides."""
    return None if is_remote(uri) else settings.root.mlflow_artifacts.as_uri()


class TrackingStore:
    """What the bench asks of MLflow. Every method raises MLflow's own error if MLflow refuses."""

    def __init__(self, settings: Settings) -> None:
        """Open the store.

        Raises:
            TrackingError: if MLflow cannot open it.
        """
        self.settings = settings
        self._mlflow = load_mlflow()
        try:
            self.uri = ensure_store(settings)
            self.client: Any = self._mlflow.MlflowClient(self.uri)
        # MLflow opens a database by SQLAlchemy and a driver, and each of the three raises errors of its own.
        except Exception as error:
            where = settings.tracking_uri or str(settings.root.mlflow_database)
            way_out = (
                "correct or unset MLFLOW_TRACKING_URI"
                if settings.tracking_uri
                else "make room or repair its permissions; if it is damaged, move its folder away, run "
                "`geode archive rebuild`, and import your archives again"
            )
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TrackingError(f"MLflow cannot open the store {where!r} ({why}); {way_out}") from error

    def experiment(self, name: str, note: str) -> TrackedExperiment:
        """Find or create the experiment `name`; one that was deleted in MLflow comes back."""
        found = self.client.get_experiment_by_name(name)
        if found is None:
            tags = {NOTE_TAG: note, "mlflow.experimentKind": "genai_development"}
            location = artifact_location(self.settings, self.uri)
            found = self.client.get_experiment(self.client.create_experiment(name, location, tags))
        elif found.lifecycle_stage == "deleted":
            self.client.restore_experiment(found.experiment_id)
        return TrackedExperiment(experiment_id=found.experiment_id, artifact_location=found.artifact_location)

    def describe(self, experiment_id: str, note: str) -> None:
        """Give an experiment the description that MLflow shows on top of its pages, in Markdown."""
        self.client.set_experiment_tag(experiment_id, NOTE_TAG, note)

    def newest_experiment(self, name_pattern: str) -> tuple[str, str] | None:
        """Return (id, name) of the experiment last written to whose name is like `name_pattern`, if there is one."""
        found = self.client.search_experiments(
            filter_string=f"name LIKE '{name_pattern}'", order_by=["last_update_time DESC"], max_results=1
        )
        return (found[0].experiment_id, found[0].name) if found else None

    def runs(self, experiment_id: str, where: str) -> list[TrackedRun]:
        """Return the runs that MLflow's filter `where` matches, oldest first."""
        found: list[TrackedRun] = []
        token = None
        while True:
            page = self.client.search_runs(
                [experiment_id], where, max_results=500, order_by=["attributes.start_time ASC"], page_token=token
            )
            found += [_run(run) for run in page]
            token = page.token
            if not token:
                return found

    def run(self, run_id: str) -> TrackedRun:
        """Return a run as MLflow holds it at this moment."""
        return _run(self.client.get_run(run_id))

    def create_run(
        self, experiment_id: str, name: str, started_at_ms: int | None, tags: Mapping[str, str]
    ) -> TrackedRun:
        """Create a run; one whose start is not known starts at this moment."""
        return _run(self.client.create_run(experiment_id, start_time=started_at_ms, tags=dict(tags), run_name=name))

    def update(self, run: TrackedRun, entries: Entries, *, covered: Collection[str] = ()) -> tuple[SetAside, ...]:
        """Make `run` hold `entries`, and return what it could not take.

        Only what differs is written, in one batch: writing the same again changes nothing. MLflow lets no param
        change, so one that differs is set aside; and it deletes no metric, so that one that is `covered` and has no
        value in the entries becomes NaN, if the run holds it: its pages then show no number.
        """
        changed = [
            SetAside(
                kind=EntryKind.PARAM,
                name=key,
                reason=f"is {run.params[key]!r} in MLflow, which lets no param change to {value!r}",
            )
            for key, value in entries.params.items()
            if run.params.get(key, value) != value
        ]
        entities = self._mlflow.entities
        logged_at_ms = time.time_ns() // 1_000_000
        metrics = [
            entities.Metric(key, value, logged_at_ms, 0)
            for key, value in {**dict.fromkeys(_outdated(run, covered), math.nan), **entries.metrics}.items()
            if run.metrics.get(key) != value
        ]
        params = [entities.Param(key, value) for key, value in entries.params.items() if key not in run.params]
        tags = [entities.RunTag(key, value) for key, value in entries.tags.items() if run.tags.get(key) != value]
        for path, text in entries.texts.items():
            self.client.log_text(run.run_id, text, path)
        if metrics or params or tags:
            self.client.log_batch(run.run_id, metrics=metrics, params=params, tags=tags)
        return (*entries.set_aside, *changed)

    def end_run(self, run: TrackedRun, status: str, ended_at_ms: int | None) -> None:
        """Give `run` its status and its end; one whose end is not known ends at this moment, if it has not already."""
        if run.status != status or ended_at_ms not in {None, run.end_time_ms}:
            self.client.set_terminated(run.run_id, status, ended_at_ms)

    def log_text(self, run: TrackedRun, text: str, path: str) -> None:
        """Store `text` as an artifact of `run`."""
        self.client.log_text(run.run_id, text, path)


def _run(run: Any) -> TrackedRun:
    return TrackedRun(
        run_id=run.info.run_id,
        name=run.info.run_name,
        status=run.info.status,
        end_time_ms=run.info.end_time,
        metrics=run.data.metrics,
        params=run.data.params,
        tags=run.data.tags,
    )


def _outdated(run: TrackedRun, names: Collection[str]) -> list[str]:
    return [name for name in names if not math.isnan(run.metrics.get(name, math.nan))]


def _sqlite_uri(database: Path) -> str:
    return f"sqlite:///{database}"


def _build(database: Path) -> None:
    building, copy = database.with_suffix(".building"), database.with_suffix(".copy")
    _remove(building)
    _remove(copy)
    load_mlflow().MlflowClient(_sqlite_uri(building)).search_experiments(max_results=1)
    # MLflow keeps its connections open, and an open SQLite file must not be moved: what is moved is a copy.
    with closing(sqlite3.connect(building)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    with closing(sqlite3.connect(copy)) as connection:
        # Readers (`geode ui`) and the writer do not wait for each other, and a commit costs half.
        connection.execute("PRAGMA journal_mode=WAL")
    _remove(building)
    copy.replace(database)


def _remove(database: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
