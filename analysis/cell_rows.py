"""A finished cell as rows of the warehouse: from its records and timelines, and from nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from analysis.fields import Fields
from analysis.issues import Issue, IssueKind, is_error_text
from experiments.episode import EpisodeRecord
from experiments.records import ExperimentRecord, Variant
from experiments.roles import Role
from experiments.sinks import Cell, StoredEpisode
from geode.canonical import canonical_json
from geode.events import AttemptFailed, CallEnded, ModelCalled, ModelFailed
from geode.records.folder import SessionFolder
from geode.records.timeline import read_timeline

SOURCE = "geode"
_Row = tuple[object, ...]


def cell_rows(cell: Cell) -> dict[str, list[_Row]]:
    """Return the rows of `cell` by table, each in the order of its table's columns.

    Raises:
        TimelineNewer: if a newer version wrote one of its timelines.
    """
    details = _Details(run=cell.experiment.name, cell=cell.variant.name)
    for episode in cell.episodes:
        details.read(episode)
    return {
        "runs": [_run_row(cell.experiment)],
        "cells": [_cell_row(cell.experiment, cell.variant)],
        "episodes": [_episode_row(cell, episode.record) for episode in cell.episodes],
        "rounds": details.rounds,
        "attempts": details.attempts,
        "tool_calls": details.tool_calls,
        "costs": details.costs,
        "import_issues": [issue.row(SOURCE) for issue in details.issues],
    }


@dataclass(slots=True)
class _Details:
    """The rows below a cell, collected episode by episode."""

    run: str
    cell: str
    rounds: list[_Row] = field(default_factory=list)
    attempts: list[_Row] = field(default_factory=list)
    tool_calls: list[_Row] = field(default_factory=list)
    costs: list[_Row] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)

    def read(self, episode: StoredEpisode) -> None:
        key = episode.record.episode_key
        self.costs += _cost_rows(episode.record)
        timeline = SessionFolder(episode.folder).timeline
        if not timeline.is_file():
            self._issue(key, IssueKind.TIMELINE_MISSING, timeline, "no timeline: its rounds and calls are unknown")
            return
        for event in read_timeline(timeline):
            self._take(key, event, timeline)

    def _take(self, key: str, event: dict[str, JsonValue], timeline: Path) -> None:
        fields = Fields(event)
        match event.get("kind"):
            case ModelCalled.kind:
                row, rows = _model_called(key, fields), self.rounds
            case ModelFailed.kind:
                row, rows = _model_failed(key, fields), self.rounds
            case AttemptFailed.kind:
                row, rows = _attempt_failed(key, fields), self.attempts
            case CallEnded.kind:
                row, rows = _call_ended(key, fields), self.tool_calls
            case _:
                if event.get("seq") is None:  # how read_timeline reports a line that it could not read
                    self._issue(key, IssueKind.TIMELINE_LINE_SKIPPED, timeline, str(event.get("text")))
                return
        if fields.oddities or event["seq"] is None:
            odd = "; ".join(oddity.text for oddity in fields.oddities) or "it has no number"
            text = f"event {event.get('seq')} was skipped: {odd}"
            self._issue(key, IssueKind.TIMELINE_LINE_SKIPPED, timeline, text)
        else:
            rows.append(row)

    def _issue(self, key: str, kind: IssueKind, timeline: Path, text: str) -> None:
        place = f"episodes/{key[:2]}/{key}/{timeline.name}"
        self.issues.append(Issue(kind=kind, place=place, text=text, run=self.run, cell=self.cell, episode_key=key))


def _run_row(experiment: ExperimentRecord) -> _Row:
    return (
        SOURCE,
        experiment.name,
        experiment.question,
        experiment.ruler.suite,
        experiment.baseline,
        experiment.ruler.ruler_id,
        experiment.repeats,
        experiment.created_at,
        experiment.geode_version,
    )


def _cell_row(experiment: ExperimentRecord, variant: Variant) -> _Row:
    roles = canonical_json(variant.roles)
    target = variant.roles.get(Role.TARGET)
    return (SOURCE, experiment.name, variant.name, variant.scaffold_id, target, roles, list(variant.overrides))


def _episode_row(cell: Cell, record: EpisodeRecord) -> _Row:
    return (
        SOURCE,
        cell.experiment.name,
        cell.variant.name,
        record.episode_key,
        record.suite,
        record.task_id,
        record.family,
        record.task_hash,
        record.scaffold_id,
        record.caps_hash,
        record.seed,
        record.repetition,
        record.outcome.kind.value,
        record.outcome.score,
        list(record.outcome.reasons),
        record.stop_reason,
        record.verified,
        record.rounds,
        record.tool_calls,
        record.tool_errors,
        record.refused_calls,
        record.repairs_used,
        record.known_cost_usd,
        record.simulated,
        record.session_id,
        record.started_at,
        record.ended_at,
        record.wall_s,
        record.cpu_s,
        record.geode_version,
        record.python_version,
    )


def _cost_rows(record: EpisodeRecord) -> Sequence[_Row]:
    return [
        (
            SOURCE,
            record.episode_key,
            role,
            record.roles.get(role),
            usage.uncached_input_tokens,
            usage.cache_write_tokens,
            usage.cache_read_tokens,
            usage.output_tokens,
            usage.cost_usd,
            usage.calls,
            usage.latency_ms,
            usage.reasoning_tokens,
            usage.unpriced_calls,
        )
        for role, usage in record.usage.items()
    ]


def _model_called(key: str, event: Fields) -> _Row:
    return (
        SOURCE,
        key,
        event.integer("seq"),
        event.moment("at"),
        event.integer("turn"),
        event.integer("round"),
        event.text("stop"),
        event.text("served_model"),
        event.flag("simulated"),
        event.integer("latency_ms"),
        event.integer("uncached_input_tokens"),
        event.integer("cache_write_tokens"),
        event.integer("cache_read_tokens"),
        event.integer("output_tokens"),
        event.number("cost_usd"),
        event.text("text"),
        None,
        # Timelines of before these were known lack them.
        *(event.integer(name) if name in event.body else None for name in ("reasoning_tokens",)),
        *(
            event.text(name) or None if name in event.body else None
            for name in ("cost_origin", "provider", "request_id")
        ),
    )


def _model_failed(key: str, event: Fields) -> _Row:
    place = (SOURCE, key, event.integer("seq"), event.moment("at"), event.integer("turn"), event.integer("round"))
    return (*place, *[None] * 10, event.text("error"), *[None] * 4)


def _attempt_failed(key: str, event: Fields) -> _Row:
    return (
        SOURCE,
        key,
        event.integer("seq"),
        event.moment("at"),
        event.integer("turn"),
        event.integer("round"),
        event.text("error"),
        event.integer("status"),
        event.text("request_id") or None,
        event.integer("elapsed_ms"),
        event.integer("waited_ms"),
        event.number("cost_usd"),
    )


def _call_ended(key: str, event: Fields) -> _Row:
    result = event.text("result")
    return (
        SOURCE,
        key,
        event.integer("seq"),
        event.moment("at"),
        event.integer("turn"),
        event.integer("round"),
        event.text("call_id"),
        event.text("tool"),
        event.text("arguments"),
        event.text("end"),
        event.flag("is_error"),
        is_error_text(result),
        event.text("stage"),
        event.number("elapsed_ms"),
        result,
        event.integer("result_chars"),
    )
