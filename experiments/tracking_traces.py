"""Writes traces to MLflow: into its SQLite file at once where the schema is one we know, else through its client.

MLflow's client writes a trace of 20 spans in about 40 ms of CPU (its fluent API in 110, and that one swallows errors);
a sweep has a thousand. `SqliteTraces` writes the same rows in about 1.5 ms (`benchmarks/tracking.py`). It does so only
while the file's own schema revision is one that this module was tested with: the revision names the tables exactly,
and what a row of an older MLflow holds, a newer one must be able to read. `ClientTraces` writes to any store. A test
writes with both and compares every table.
"""

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import JsonValue

from experiments.episode import EpisodeRecord
from experiments.suite import OutcomeKind
from experiments.tracking_spans import EpisodeTrace, Span, SpanEvent, Tokens
from experiments.tracking_store import TrackedExperiment, TrackingStore, load_mlflow
from geode.config.settings import Settings
from geode.events import preview

KNOWN_SCHEMAS = frozenset({"dc11669786a5"})
"""The schema revisions (`alembic_version`) whose tables `SqliteTraces` knows: MLflow 3.17."""

EPISODE_KEY_TAG = "geode.episode_key"
TASK_TAG = "geode.task"
VARIANT_TAG = "geode.variant"
BUSY_TIMEOUT_S = 60.0
_PREVIEW_CHARS = 900  # MLflow's column holds 1,000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceHome:
    """Where a trace belongs: the run of its cell."""

    experiment: TrackedExperiment
    run_id: str
    variant: str


class TraceWriter(Protocol):
    """Stores traces that are not there yet. All or none of a call's traces are stored, or those before the error."""

    def write(self, home: TraceHome, traces: Sequence[EpisodeTrace]) -> None:
        """Store `traces`. Raises if the store refuses."""
        ...


def open_trace_writer(store: TrackingStore) -> TraceWriter:
    """Return the quickest writer that is right for `store`."""
    database = _known_database(store.settings, store.uri)
    return ClientTraces(store) if database is None else SqliteTraces(database)


def trace_id_of(home: TraceHome, record: EpisodeRecord) -> str:
    """Name a trace by what it is of: the run, the episode and the session, so that writing again finds it."""
    named = f"{home.run_id}/{record.episode_key}/{record.session_id}"
    return "tr-" + hashlib.sha256(named.encode()).hexdigest()[:32]


def stored_traces(store: TrackingStore, experiment_id: str, run_id: str) -> dict[str, str]:
    """Return the trace ids of a run by episode key."""
    found: dict[str, str] = {}
    token = None
    while True:
        page = store.client.search_traces(
            locations=[experiment_id], run_id=run_id, max_results=500, page_token=token, include_spans=False
        )
        found |= {trace.info.tags.get(EPISODE_KEY_TAG, trace.info.trace_id): trace.info.trace_id for trace in page}
        token = page.token
        if not token:
            return found


class ClientTraces:
    """Writes through MLflow's tracing client: slow, and right for every store that MLflow knows."""

    def __init__(self, store: TrackingStore) -> None:
        mlflow = load_mlflow()
        self._entities: Any = mlflow.entities
        self._client: Any = mlflow.tracing.client.TracingClient(store.uri)

    def write(self, home: TraceHome, traces: Sequence[EpisodeTrace]) -> None:
        """See `TraceWriter.write`."""
        for trace in traces:
            trace_id = trace_id_of(home, trace.record)
            experiment_id = home.experiment.experiment_id
            spans = [self._entities.Span.from_dict(body) for body in _span_bodies(trace_id, experiment_id, trace)]
            # Spans first: a trace is found by the run that only its information names, so one that lost its second
            # half to a crash is written again, over the first.
            self._client.log_spans(experiment_id, spans)
            self._client.start_trace(self._information(trace_id, home, trace))

    def _information(self, trace_id: str, home: TraceHome, trace: EpisodeTrace) -> Any:
        entities = self._entities
        summary = _Summary.of(trace_id, home, trace)
        outcome = trace.record.outcome
        verdict = entities.Feedback(
            name=_OUTCOME,
            value=summary.passed,
            error=None if summary.passed is not None else entities.AssessmentError(*_invalid(trace)),
            source=entities.AssessmentSource(source_type="CODE", source_id="verifier"),
            trace_id=trace_id,
            create_time_ms=summary.ended_at_ms,
            last_update_time_ms=summary.ended_at_ms,
            rationale=" ".join(outcome.reasons) or None,
        )
        verdict.assessment_id = summary.assessment_id
        return entities.TraceInfo(
            trace_id=trace_id,
            trace_location=entities.trace_location.TraceLocation.from_experiment_id(home.experiment.experiment_id),
            request_time=summary.started_at_ms,
            execution_duration=summary.ended_at_ms - summary.started_at_ms,
            state=entities.TraceState(summary.state),
            request_preview=summary.request,
            response_preview=summary.response,
            trace_metadata={
                **summary.metadata,
                "mlflow.trace.tokenUsage": json.dumps(_token_usage(trace.tokens)),
                # Explicitly unknown: MLflow has summed the spans up already, and took what they do not say for zero.
                "mlflow.trace.cost": json.dumps({"input_cost": None, "output_cost": None, **_cost(trace.tokens)}),
            },
            tags={**summary.tags, "mlflow.traceName": trace.root.name, "mlflow.trace.spansLocation": "TRACKING_STORE"},
            assessments=[verdict],
        )


class SqliteTraces:
    """Writes the rows of many traces in one transaction of MLflow's SQLite file."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def write(self, home: TraceHome, traces: Sequence[EpisodeTrace]) -> None:
        """See `TraceWriter.write`."""
        experiment_id = home.experiment.experiment_id
        rows: dict[str, list[_Row]] = {table: [] for table in _TABLES}
        for trace in traces:
            trace_id = trace_id_of(home, trace.record)
            summary = _Summary.of(trace_id, home, trace)
            artifacts = f"{home.experiment.artifact_location}/traces/{trace_id}/artifacts"
            tags = {
                **summary.tags,
                "mlflow.artifactLocation": artifacts,
                "mlflow.trace.spansLocation": "TRACKING_STORE",
            }
            metadata = {**summary.metadata, "mlflow.trace.infoFinalized": "true"}
            rows["trace_info"].append(_information_row(trace_id, experiment_id, summary, trace))
            rows["trace_tags"] += _pair_rows(trace_id, tags)
            rows["trace_request_metadata"] += _pair_rows(trace_id, metadata)
            rows["spans"] += _span_rows(trace_id, experiment_id, trace)
            rows["assessments"].append(_outcome_row(trace_id, experiment_id, summary, trace))
        with closing(sqlite3.connect(self._database, timeout=BUSY_TIMEOUT_S)) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            for table, values in rows.items():
                if values:
                    connection.executemany(_insert(table, values[0]), values)


_TABLES = ("trace_info", "trace_tags", "trace_request_metadata", "spans", "assessments")
_OUTCOME = "passed"
_Row = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    """What both writers say of a trace beside its spans."""

    state: str
    started_at_ms: int
    ended_at_ms: int
    request: str
    response: str
    passed: bool | None
    assessment_id: str
    tags: Mapping[str, str]
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, trace_id: str, home: TraceHome, trace: EpisodeTrace) -> "_Summary":
        record, root = trace.record, trace.root
        outcome = record.outcome.kind
        return cls(
            state="ERROR" if root.error else "OK",
            started_at_ms=root.start_ns // 1_000_000,
            ended_at_ms=root.end_ns // 1_000_000,
            # MLflow pairs the traces of two runs by this text; with the prompt alone, it finds one pair a task.
            request=preview(
                f"{record.task_id} · seed {record.seed} · repetition {record.repetition}: {root.inputs['prompt']}",
                _PREVIEW_CHARS,
            ),
            response=preview(f"{outcome.value}: {root.outputs['answer']}", _PREVIEW_CHARS),
            passed=None if outcome is OutcomeKind.INVALID else outcome is OutcomeKind.PASS,
            assessment_id="a-" + trace_id.removeprefix("tr-"),
            tags={
                EPISODE_KEY_TAG: record.episode_key,
                TASK_TAG: record.task_id,
                "geode.family": record.family,
                VARIANT_TAG: home.variant,
                "geode.seed": str(record.seed),
                "geode.repetition": str(record.repetition),
                "outcome": outcome.value,
            },
            metadata={"mlflow.sourceRun": home.run_id, "mlflow.trace_schema.version": "3"},
        )


def _known_database(settings: Settings, uri: str) -> Path | None:
    """Return the file of a store that `SqliteTraces` may write to."""
    if not uri.startswith("sqlite:///") or "?" in uri or settings.environment.get("MLFLOW_SQL_TRACE_ROLLUPS_ENABLED"):
        # With rollups MLflow queues what must be summed up again; only MLflow itself knows how.
        return None
    database = Path(uri.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(database, timeout=BUSY_TIMEOUT_S)) as connection:
        revisions = {revision for (revision,) in connection.execute("SELECT version_num FROM alembic_version")}
    return database if revisions and revisions <= KNOWN_SCHEMAS else None


def _span_bodies(trace_id: str, experiment_id: str, trace: EpisodeTrace) -> Iterable[dict[str, JsonValue]]:
    """Yield the spans as MLflow's `Span.to_dict` writes and `Span.from_dict` reads them."""
    otel_trace_id = base64.b64encode(bytes.fromhex(trace_id.removeprefix("tr-"))).decode()
    for number, span in enumerate(trace.spans, start=1):
        yield {
            "trace_id": otel_trace_id,
            "span_id": base64.b64encode(number.to_bytes(8)).decode(),
            "parent_span_id": base64.b64encode((1).to_bytes(8)).decode() if number > 1 else None,
            "name": span.name,
            "start_time_unix_nano": span.start_ns,
            "end_time_unix_nano": span.end_ns,
            "events": [_event_body(event) for event in (*span.events, *_failures(span))],
            "status": {"code": "STATUS_CODE_ERROR" if span.error else "STATUS_CODE_OK", "message": span.error},
            "attributes": {key: _json(value) for key, value in _attributes(trace_id, experiment_id, span).items()},
            "links": [],
        }


def _failures(span: Span) -> list[SpanEvent]:
    """Return what MLflow's pages mark a span as failed by: they look for this event, not for the status."""
    failure = {"exception.message": span.error}
    return [SpanEvent(name="exception", at_ns=span.end_ns, attributes=failure)] if span.error else []


def _event_body(event: SpanEvent) -> JsonValue:
    return {"name": event.name, "time_unix_nano": event.at_ns, "attributes": dict(event.attributes)}


def _attributes(trace_id: str, experiment_id: str, span: Span) -> dict[str, JsonValue]:
    """Return the attributes of a span, each of which MLflow holds as JSON text."""
    attributes: dict[str, JsonValue] = {
        "mlflow.traceRequestId": trace_id,
        "mlflow.experimentId": experiment_id,
        "mlflow.spanType": span.kind.value,
        **span.attributes,
    }
    if span.inputs:
        attributes["mlflow.spanInputs"] = dict(span.inputs)
    if span.outputs:
        attributes["mlflow.spanOutputs"] = dict(span.outputs)
    if span.tokens:
        attributes["mlflow.chat.tokenUsage"] = {**_token_usage(span.tokens)}
        # Always there, also when it is zero: MLflow fills a missing cost in from a price list of its own.
        attributes["mlflow.llm.cost"] = {**_cost(span.tokens)}
        attributes["mlflow.llm.model"] = span.model
        attributes["mlflow.llm.provider"] = span.provider
    return attributes


def _token_usage(tokens: Tokens) -> dict[str, int]:
    return {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
    }


def _cost(tokens: Tokens) -> dict[str, float]:
    return {"total_cost": tokens.cost_usd}


def _invalid(trace: EpisodeTrace) -> tuple[str, str]:
    return OutcomeKind.INVALID.value, trace.root.error


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _insert(table: str, row: _Row) -> str:
    # The names are keys of the literals below, never data; `key` is also a word of SQL, hence the quotes.
    columns = ", ".join(f'"{name}"' for name in row)
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join(f':{name}' for name in row)})"  # noqa: S608


def _pair_rows(trace_id: str, values: Mapping[str, str]) -> list[_Row]:
    return [{"request_id": trace_id, "key": key, "value": value} for key, value in values.items()]


def _information_row(trace_id: str, experiment_id: str, summary: _Summary, trace: EpisodeTrace) -> _Row:
    return {
        "request_id": trace_id,
        "experiment_id": int(experiment_id),
        "timestamp_ms": summary.started_at_ms,
        "execution_time_ms": summary.ended_at_ms - summary.started_at_ms,
        "status": summary.state,
        "request_preview": summary.request,
        "response_preview": summary.response,
        "db_payload_generation": 1,
        "trace_name": trace.root.name,
        **_token_usage(trace.tokens),
        **_cost(trace.tokens),
    }


def _span_rows(trace_id: str, experiment_id: str, trace: EpisodeTrace) -> Iterable[_Row]:
    bodies = _span_bodies(trace_id, experiment_id, trace)
    for number, (span, body) in enumerate(zip(trace.spans, bodies, strict=True), start=1):
        yield {
            "trace_id": trace_id,
            "experiment_id": int(experiment_id),
            "span_id": f"{number:016x}",
            "parent_span_id": f"{1:016x}" if number > 1 else None,
            "name": span.name,
            "type": span.kind.value,
            "status": "ERROR" if span.error else "OK",
            "start_time_unix_nano": span.start_ns,
            "end_time_unix_nano": span.end_ns,
            "content": _json(body),
            "total_cost": span.tokens.cost_usd if span.tokens else None,
            "model_name": span.model or None,
            "model_provider": span.provider or None,
        }


def _outcome_row(trace_id: str, experiment_id: str, summary: _Summary, trace: EpisodeTrace) -> _Row:
    error = None
    if summary.passed is None:
        code, message = _invalid(trace)
        error = _json({"error_code": code, "error_message": message, "stack_trace": None})
    return {
        "assessment_id": summary.assessment_id,
        "trace_id": trace_id,
        "name": _OUTCOME,
        "assessment_type": "feedback",
        "value": _json(summary.passed),
        "error": error,
        "created_timestamp": summary.ended_at_ms,
        "last_updated_timestamp": summary.ended_at_ms,
        "experiment_id": int(experiment_id),
        "trace_timestamp_ms": summary.started_at_ms,
        "aggregate_value": None if summary.passed is None else float(summary.passed),
        "is_numeric_value": False,
        "source_type": "CODE",
        "source_id": "verifier",
        "rationale": " ".join(trace.record.outcome.reasons) or None,
        "valid": True,
    }
