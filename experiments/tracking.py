"""Finished cells in MLflow: derived from the episode folders, and the same however often they are written.

    MLflow experiment   geode/<experiment>
    parent run          <experiment>      the question, the ruler, the verdicts; as artifacts experiment.yaml, and
                                          comparison.md with the transcripts behind each figure
    child run           <variant>         one cell: headline metrics and the gate's answer under the same names in each,
                                          what varies as params
    trace               one an episode, found from the run of its cell

Runs are found again by their tags `geode.experiment` and `geode.cell`, traces by `geode.episode_key`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import yaml

from experiments.comparison import ComparisonTable
from experiments.imported import ImportedRun
from experiments.records import ExperimentRecord, Variant
from experiments.sinks import Cell, CellSink, StoredEpisode
from experiments.tracking_cells import (
    SIZE_TAGS,
    cell_key,
    cell_params,
    cell_tags,
    experiment_tags,
    headline_metrics,
)
from experiments.tracking_links import COMPARISON_PAGE, Links
from experiments.tracking_names import NOTE_TAG, EntryKind, SetAside, screen
from experiments.tracking_pages import cell_note, comparison_page, experiment_note, outdated_note
from experiments.tracking_spans import EpisodeTrace, NotATimeline, read_trace
from experiments.tracking_store import EntriesSetAside, TrackedExperiment, TrackedRun, TrackingStore
from experiments.tracking_traces import TraceHome, open_trace_writer, stored_traces, trace_id_of
from experiments.tracking_verdicts import COMPARED_TAG, experiment_verdict_tags, verdict_figures, verdict_tags
from geode.config.settings import Settings
from geode.records.timeline import TimelineNewer

PREFIX = "geode/"
EXPERIMENT_TAG = "geode.experiment"
CELL_TAG = "geode.cell"
IMPORTED_TAG = "geode.imported"
ANY_CELL = f"tags.`{CELL_TAG}` LIKE '%'"
TRACES_PER_WRITE = 200
"""So many traces go into one transaction; a reader waits no longer than that."""

_HOW_TO_READ = (
    "How to read it: *Evaluation runs* lists the cells. `pass_rate` is what a variant reached, `diff_vs_baseline` its "
    "paired difference to the baseline within the interval `diff_low` to `diff_high`, all as shares; the tag `verdict` "
    "is what the gate says. `invalid` counts episodes that measured nothing; they are in no rate. Select runs and "
    "press *Compare* for all figures; *Traces* shows what happened in each episode, by default of the last seven days."
)


_HOW_TO_READ_IMPORTED = (
    "Imported from an archive: each run is one log as it was recorded; its tags say by whom and when. A figure is of "
    "that log alone and has no error: `geode compare A B`, with the paths of two logs, pairs them by task, with "
    "intervals and with counts of what could not be paired. What measured nothing is counted apart, and is in no "
    "`pass_rate` and no `mean`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Where a reader should begin: the experiment last written to, and the runs of its cells.

    `compared_in` is the run that has the page of the comparison, if there is one.
    """

    experiment_id: str
    name: str
    run_ids: tuple[str, ...]
    compared_in: str | None


@dataclass(slots=True)
class _OpenExperiment:
    """What this process already knows of an experiment, so that it asks MLflow once."""

    home: TrackedExperiment
    parent_id: str
    record: ExperimentRecord | None = None


def create_sink(settings: Settings) -> CellSink:
    """Open the MLflow sink: the factory of the entry point `mlflow` in the group `geode.sinks`."""
    return MLflowSink(settings)


class MLflowSink:
    """A `CellSink` that writes to MLflow. One process at a time may write to one experiment."""

    def __init__(self, settings: Settings) -> None:
        self._store = TrackingStore(settings)
        self._traces = open_trace_writer(self._store)
        self._experiments: dict[str, _OpenExperiment] = {}
        self._stored: dict[str, dict[str, str]] = {}

    def write(self, cell: Cell) -> None:
        """Store a cell: its run, its headline metrics, and the traces that are not there yet.

        Raises:
            EntriesSetAside: after all else is stored, if an entry could not be.
        """
        experiment, variant = cell.experiment, cell.variant
        known = self._experiment(experiment)
        run = self._cell_run(known, experiment, variant, cell.episodes)
        problems = self._write_traces(known, run, variant, cell.episodes)
        entries = screen(
            metrics=headline_metrics(cell.episodes),
            params=cell_params(experiment, variant),
            tags=cell_tags(experiment, variant),
        )
        problems += self._store.update(run, entries)
        if cell.episodes:
            planned = len(experiment.ruler.tasks) * len(experiment.ruler.seeds) * experiment.repeats
            status = "FINISHED" if len(cell.episodes) == planned else "RUNNING"
            ended_at_ms = max(_ms(episode.record.ended_at) for episode in cell.episodes)
            self._store.end_run(run, status, ended_at_ms)
            parent = self._store.run(known.parent_id)
            self._store.end_run(parent, "FINISHED", max(ended_at_ms, parent.end_time_ms or 0))
        _report(f"the cell {run.name!r} of {experiment.name!r}", problems)

    def write_traces(self, experiment: ExperimentRecord, variant: Variant, episodes: Sequence[StoredEpisode]) -> None:
        """Store the traces of finished episodes before their cell is complete; `write` then finds them there.

        Raises:
            EntriesSetAside: after the others are stored, if an episode has no readable timeline.
        """
        known = self._experiment(experiment)
        run = self._cell_run(known, experiment, variant, episodes)
        _report(f"the traces of {run.name!r}", self._write_traces(known, run, variant, episodes))

    def write_comparison(self, table: ComparisonTable) -> None:
        """Add what the gate says to cells that are written, and the whole comparison to the experiment's own run.

        Raises:
            EntriesSetAside: after all else is stored, if a variant has no run.
        """
        experiment = table.experiment
        known = self._experiment(experiment)
        runs = {run.tags[CELL_TAG]: run for run in self._store.runs(known.home.experiment_id, ANY_CELL)}
        cells = {
            variant.name: run for variant in experiment.variants if (run := runs.get(cell_key(experiment, variant)))
        }
        links = Links(
            home=known.home,
            parent_id=known.parent_id,
            baseline=table.baseline.variant,
            run_ids={name: run.run_id for name, run in cells.items()},
        )
        problems: tuple[SetAside, ...] = ()
        for row in table.rows:
            run = cells.get(row.variant)
            if run is None:
                reason = "has no run; write its cell first"
                problems += (SetAside(kind=EntryKind.TAG, name=f"verdict of {row.variant}", reason=reason),)
                continue
            tags = {**verdict_tags(table, row), NOTE_TAG: cell_note(table, row, links)}
            figures = verdict_figures(table, row)
            known_figures = {name: value for name, value in figures.items() if value is not None}
            problems += self._store.update(run, screen(metrics=known_figures, tags=tags), covered=figures.keys())
        parent, note = self._store.run(known.parent_id), experiment_note(table, links)
        self._store.log_text(parent, comparison_page(table, links), COMPARISON_PAGE)
        problems += self._store.update(parent, screen(tags={**experiment_verdict_tags(table), NOTE_TAG: note}))
        self._store.describe(known.home.experiment_id, f"{note}\n\n{_HOW_TO_READ}")
        _report(f"the comparison of {experiment.name!r}", problems)

    def close(self) -> None:
        """Nothing is held back: each call stored what it was given."""

    def _experiment(self, record: ExperimentRecord) -> _OpenExperiment:
        known = self._experiments.get(record.name)
        if known is None:
            home = self._store.experiment(PREFIX + record.name, f"{record.question}\n\n{_HOW_TO_READ}")
            found = self._store.runs(home.experiment_id, f"tags.`{EXPERIMENT_TAG}` = '{record.name}'")
            tags = {EXPERIMENT_TAG: record.name}
            parent = (
                found[0]
                if found
                else self._store.create_run(home.experiment_id, record.name, _ms(record.created_at), tags)
            )
            known = self._experiments[record.name] = _OpenExperiment(home=home, parent_id=parent.run_id)
        if known.record != record:
            parent = self._store.run(known.parent_id)
            self._store.log_text(parent, _experiment_yaml(record), "experiment.yaml")
            tags = experiment_tags(record)
            if COMPARED_TAG in parent.tags and any(parent.tags.get(name) != tags[name] for name in SIZE_TAGS):
                # Should this run be cut short, no reader takes the verdicts for those of all that is there.
                tags[NOTE_TAG] = outdated_note(parent.tags.get(NOTE_TAG, ""))
                self._store.describe(known.home.experiment_id, f"{tags[NOTE_TAG]}\n\n{_HOW_TO_READ}")
            _report(f"the experiment {record.name!r}", self._store.update(parent, screen(tags=tags)))
            known.record = record
        return known

    def _cell_run(
        self, known: _OpenExperiment, record: ExperimentRecord, variant: Variant, episodes: Sequence[StoredEpisode]
    ) -> TrackedRun:
        key = cell_key(record, variant)
        found = self._store.runs(known.home.experiment_id, f"tags.`{CELL_TAG}` = '{key}'")
        if found:
            return found[0]
        started_at = min((episode.record.started_at for episode in episodes), default=record.created_at)
        tags = {CELL_TAG: key, "mlflow.parentRunId": known.parent_id}
        return self._store.create_run(known.home.experiment_id, variant.name, _ms(started_at), tags)

    def _write_traces(
        self, known: _OpenExperiment, run: TrackedRun, variant: Variant, episodes: Sequence[StoredEpisode]
    ) -> tuple[SetAside, ...]:
        place = TraceHome(experiment=known.home, run_id=run.run_id, variant=variant.name)
        stored = self._stored.get(run.run_id)
        if stored is None:
            stored = self._stored[run.run_id] = stored_traces(self._store, known.home.experiment_id, run.run_id)
        problems: list[SetAside] = []
        pending: list[EpisodeTrace] = []
        for episode in episodes:
            key, trace_id = episode.record.episode_key, trace_id_of(place, episode.record)
            if stored.get(key) == trace_id:
                continue
            try:
                pending.append(read_trace(episode))
            except (OSError, NotATimeline, TimelineNewer) as error:
                problems.append(
                    SetAside(kind=EntryKind.TRACE, name=key[:12], reason=f"has no readable timeline ({error})")
                )
        for begin in range(0, len(pending), TRACES_PER_WRITE):
            batch = pending[begin : begin + TRACES_PER_WRITE]
            # An episode that was set aside and run afresh has another session: its old trace is of what does not count.
            stale = [stored[key] for trace in batch if (key := trace.record.episode_key) in stored]
            if stale:
                self._store.client.delete_traces(known.home.experiment_id, trace_ids=stale)
            self._traces.write(place, batch)
            stored |= {trace.record.episode_key: trace_id_of(place, trace.record) for trace in batch}
        return tuple(problems)


def log_imported(settings: Settings, runs: Sequence[ImportedRun]) -> None:
    """Store runs of an archive, each once, found again by experiment and name.

    Raises:
        EntriesSetAside: after all else is stored, if an entry could not be.
    """
    store = TrackingStore(settings)
    problems: tuple[SetAside, ...] = ()
    for experiment in dict.fromkeys(run.experiment for run in runs):
        home = store.experiment(PREFIX + experiment, _HOW_TO_READ_IMPORTED)
        known = {
            run.tags[IMPORTED_TAG]: run for run in store.runs(home.experiment_id, f"tags.`{IMPORTED_TAG}` LIKE '%'")
        }
        for run in (run for run in runs if run.experiment == experiment):
            key = f"{experiment}/{run.name}"
            tracked = known.get(key)
            if tracked is None:
                tracked = known[key] = store.create_run(home.experiment_id, run.name, None, {IMPORTED_TAG: key})
            problems += store.update(tracked, screen(metrics=run.metrics, params=run.params, tags=run.tags))
            store.end_run(tracked, "FINISHED", None)
    _report("the imported runs", problems)


def find_landing(settings: Settings, runs_max: int = 20) -> Landing | None:
    """Return the experiment of ours that was last written to, or None if there is none."""
    store = TrackingStore(settings)
    found = store.newest_experiment(PREFIX + "%")
    if found is None:
        return None
    experiment_id, name = found
    runs = store.runs(experiment_id, "")
    baselines = {run.tags.get("geode.baseline") for run in runs}
    cells = [run for run in runs if CELL_TAG in run.tags] or runs
    cells.sort(key=lambda run: (run.name not in baselines, -run.metrics.get("pass_rate", -1.0)))
    return Landing(
        experiment_id=experiment_id,
        name=name,
        run_ids=tuple(run.run_id for run in cells[:runs_max]),
        compared_in=next((run.run_id for run in runs if COMPARED_TAG in run.tags), None),
    )


def _report(where: str, problems: tuple[SetAside, ...]) -> None:
    if problems:
        raise EntriesSetAside(where, problems)


def _experiment_yaml(record: ExperimentRecord) -> str:
    return yaml.safe_dump(record.model_dump(mode="json", by_alias=True), sort_keys=False, allow_unicode=True)


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
