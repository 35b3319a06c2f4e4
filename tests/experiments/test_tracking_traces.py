"""Traces in MLflow: quickly where the tables are known, through MLflow's client elsewhere, and the same either way."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.suite import OutcomeKind
from experiments.tracking_spans import EpisodeTrace, read_trace
from experiments.tracking_store import TrackingStore, load_mlflow
from experiments.tracking_traces import (
    KNOWN_SCHEMAS,
    ClientTraces,
    SqliteTraces,
    TraceHome,
    TraceWriter,
    open_trace_writer,
    stored_traces,
    trace_id_of,
)
from geode.config.settings import Settings
from tests.doubles.tracked_episodes import EpisodeMaker, dump, make_experiment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]  # MLflow's own use of SQLAlchemy

GENERATION = 8  # the column db_payload_generation of trace_info


@pytest.fixture
def store(tracking_settings: Settings) -> TrackingStore:
    return TrackingStore(tracking_settings)


@pytest.fixture
def home(store: TrackingStore) -> TraceHome:
    experiment = store.experiment("geode/x", "note")
    run = store.create_run(experiment.experiment_id, "baseline", 1_000, {})
    return TraceHome(experiment=experiment, run_id=run.run_id, variant="baseline")


@pytest.fixture
def traces(tmp_path: Path) -> list[EpisodeTrace]:
    """One of each outcome, with text that is hard on encodings and on MLflow's own guesses."""
    experiment = make_experiment()
    maker = EpisodeMaker(tmp_path / "episodes", rounds=4)
    episodes = [
        maker.episode(experiment, experiment.variant("baseline"), experiment.ruler.tasks[0], repetition=n, kind=kind)
        for n, kind in enumerate(OutcomeKind)
    ]
    timeline = episodes[0].folder / "timeline.jsonl"
    hard = '정확도 \\u0000 \\"quoted\\" {\\"json\\": [1]} '
    timeline.write_text(timeline.read_text().replace("I look at the next file.", hard + "x" * 3_000, 1))
    timeline.write_text(timeline.read_text().replace("exit code: 0", '[\\"a\\", \\"b\\"]', 1))
    return [read_trace(episode) for episode in episodes]


def test_the_quick_writer_is_used_where_the_tables_are_known(store: TrackingStore) -> None:
    """Fails when MLflow's schema has moved on: add its revision only after the comparison below has passed."""
    with closing(sqlite3.connect(store.settings.root.mlflow_database)) as connection:
        revisions = {revision for (revision,) in connection.execute("SELECT version_num FROM alembic_version")}
    assert revisions <= KNOWN_SCHEMAS
    assert isinstance(open_trace_writer(store), SqliteTraces)


def test_an_unknown_schema_gets_mlflows_own_client(store: TrackingStore) -> None:
    """A table that means something else must never be written by guess."""
    with closing(sqlite3.connect(store.settings.root.mlflow_database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    assert isinstance(open_trace_writer(store), ClientTraces)


def test_rollups_get_mlflows_own_client(store: TrackingStore) -> None:
    """With rollups MLflow sums traces up elsewhere, which only its own code keeps right."""
    store.settings = replace(store.settings, environment={"MLFLOW_SQL_TRACE_ROLLUPS_ENABLED": "true"})
    assert isinstance(open_trace_writer(store), ClientTraces)


def test_both_writers_leave_the_same_rows(store: TrackingStore, home: TraceHome, traces: list[EpisodeTrace]) -> None:
    """The guard against a quick writer that drifts from what MLflow itself would store."""
    before = dump(store.settings)
    SqliteTraces(store.settings.root.mlflow_database).write(home, traces)
    quick = dump(store.settings)
    store.client.delete_traces(
        home.experiment.experiment_id, trace_ids=[trace_id_of(home, trace.record) for trace in traces]
    )
    assert dump(store.settings) == before
    ClientTraces(store).write(home, traces)
    by_client = dump(store.settings)
    assert by_client.keys() == quick.keys() > before.keys()
    for rows in (by_client, quick):
        # MLflow counts how often it wrote to a trace, and its client writes twice.
        rows["trace_info"] = [(*row[:GENERATION], *row[GENERATION + 1 :]) for row in rows["trace_info"]]
    for table in quick:
        assert by_client[table] == quick[table], table


@pytest.mark.parametrize("writer", ["quick", "client"])
def test_a_trace_reads_back_with_its_sums_and_its_run(
    writer: str, store: TrackingStore, home: TraceHome, traces: list[EpisodeTrace]
) -> None:
    """MLflow's asynchronous export loses part of the cost; here tokens and cost are whole."""
    chosen: TraceWriter = (
        SqliteTraces(store.settings.root.mlflow_database) if writer == "quick" else ClientTraces(store)
    )
    chosen.write(home, traces)
    passed, failed, invalid = (store.client.get_trace(trace_id_of(home, trace.record)) for trace in traces)
    assert passed.info.token_usage == {
        "input_tokens": 6_000,
        "output_tokens": 480,
        "total_tokens": 6_480,
        "cache_read_input_tokens": 2_000,
        "cache_creation_input_tokens": 0,
    }
    assert passed.info.cost == {"total_cost": pytest.approx(0.0168)}
    assert [trace.info.state.value for trace in (passed, failed, invalid)] == ["OK", "OK", "ERROR"]
    assert [trace.info.tags["outcome"] for trace in (passed, failed, invalid)] == ["PASS", "FAIL", "INVALID"]
    assert [trace.info.assessments[0].feedback.value for trace in (passed, failed, invalid)] == [True, False, None]
    assert invalid.info.assessments[0].feedback.error.error_code == "INVALID"
    assert [span.name for span in passed.data.spans] == [span.name for span in traces[0].spans]
    assert passed.data.spans[1].outputs["text"].startswith('정확도 \0 "quoted" {"json": [1]} xxx')
    assert passed.data.spans[2].outputs == {"result": '["a", "b"]\n' + "ok\n" * 4}
    found = store.client.search_traces(locations=[home.experiment.experiment_id], run_id=home.run_id)
    assert len(found) == 3
    assert stored_traces(store, home.experiment.experiment_id, home.run_id) == {
        trace.record.episode_key: trace_id_of(home, trace.record) for trace in traces
    }


def test_the_two_ends_of_a_block_share_their_request_and_no_other_two_do(
    store: TrackingStore, home: TraceHome, traces: list[EpisodeTrace], tmp_path: Path
) -> None:
    """MLflow sets the traces of two runs side by side by the text of their requests."""
    experiment = make_experiment(repeats=3)
    cell = EpisodeMaker(tmp_path / "other", rounds=4).cell(experiment, "all_hooks")
    of_candidate = [read_trace(episode) for episode in cell.episodes]
    writer = SqliteTraces(store.settings.root.mlflow_database)
    writer.write(home, traces)
    writer.write(replace(home, variant="all_hooks"), of_candidate)
    found = store.client.search_traces(locations=[home.experiment.experiment_id], max_results=20, include_spans=False)
    requests = {"baseline": set[str](), "all_hooks": set[str]()}
    for trace in found:
        requests[trace.info.tags["geode.variant"]].add(trace.info.request_preview)
    assert [len(texts) for texts in requests.values()] == [3, 6]
    assert requests["baseline"] < requests["all_hooks"]
    assert any(text.startswith("fix_slugify · seed 1 · repetition 2: The tests") for text in requests["baseline"])


def test_the_client_writes_a_trace_that_lost_its_second_half_again(
    store: TrackingStore, home: TraceHome, traces: list[EpisodeTrace]
) -> None:
    """A crash between its two calls leaves spans that no run names; writing again completes them."""
    writer = ClientTraces(store)
    mlflow = load_mlflow()

    class CrashingClient:
        def __init__(self) -> None:
            self.log_spans = mlflow.tracing.client.TracingClient(store.uri).log_spans

        def start_trace(self, _: object) -> None:
            raise KeyboardInterrupt

    crashing = ClientTraces(store)
    crashing._client = CrashingClient()
    with pytest.raises(KeyboardInterrupt):
        crashing.write(home, traces[:1])
    assert stored_traces(store, home.experiment.experiment_id, home.run_id) == {}
    writer.write(home, traces[:1])
    trace = store.client.get_trace(trace_id_of(home, traces[0].record))
    assert len(trace.data.spans) == len(traces[0].spans)
    assert trace.info.token_usage["total_tokens"] == 6_480


def test_a_batch_that_fails_leaves_nothing(store: TrackingStore, home: TraceHome, traces: list[EpisodeTrace]) -> None:
    """All or nothing: half a batch would be taken for the whole next time."""
    writer = SqliteTraces(store.settings.root.mlflow_database)
    writer.write(home, traces[1:2])
    before = dump(store.settings)
    with pytest.raises(sqlite3.IntegrityError):
        writer.write(home, traces)
    assert dump(store.settings) == before
