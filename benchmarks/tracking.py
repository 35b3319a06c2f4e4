"""What mirroring a cell to MLflow costs, against MLflow's own tracing API on the same episodes.

The limit is 25 ms of CPU a trace; a demo has 1,260 of them.

    python benchmarks/tracking.py [--episodes 180]
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from experiments.comparison import comparison_table
from experiments.sinks import Cell
from experiments.tracking import MLflowSink
from experiments.tracking_spans import EpisodeTrace, Span, read_trace
from experiments.tracking_store import TrackingStore, load_mlflow
from experiments.tracking_traces import ClientTraces, SqliteTraces, TraceHome, TraceWriter
from geode.config.settings import Settings, read_settings
from tests.doubles.tracked_episodes import EpisodeMaker, make_experiment

LIMIT_MS = 25.0
SLOW_EPISODES = 40  # enough for the slow ways


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=180, help="episodes of the cell (a multiple of 6)")
    episodes = parser.parse_args().episodes
    with tempfile.TemporaryDirectory() as folder:
        settings = read_settings(Path(folder) / "root", {})
        experiment = make_experiment(repeats=episodes // 6, tasks=6)
        cell = EpisodeMaker(Path(folder) / "episodes", rounds=9).cell(experiment, "baseline")
        sink_ms = cpu_ms(lambda: MLflowSink(settings))
        print(f"open a new store, import of MLflow included: {sink_ms:.0f} ms of CPU, once")
        measure(settings, cell)
        compare(settings, Path(folder) / "compared", episodes)


def measure(settings: Settings, cell: Cell) -> None:
    sink = MLflowSink(settings)
    warm_up = cell.experiment.model_copy(update={"name": "warm_up"})
    sink.write(Cell(experiment=warm_up, variant=cell.variant, episodes=cell.episodes[:2]))
    whole_ms = cpu_ms(lambda: sink.write(cell))
    again_ms = cpu_ms(lambda: sink.write(cell))
    count = len(cell.episodes)
    print(
        f"a cell of {count} episodes: {whole_ms:.0f} ms ({whole_ms / count:.2f} an episode); again: {again_ms:.0f} ms"
    )

    read_ms = cpu_ms(lambda: [read_trace(episode) for episode in cell.episodes]) / count
    traces = [read_trace(episode) for episode in cell.episodes]
    store = TrackingStore(settings)
    quick_ms = write_ms(store, SqliteTraces(settings.root.mlflow_database), traces)
    client_ms = write_ms(store, ClientTraces(store), traces[:SLOW_EPISODES])
    fluent_ms = fluent(store, traces[:SLOW_EPISODES])
    print(f"a trace of {len(traces[0].spans)} spans, reading its timeline: {read_ms:.2f} ms")
    for name, ms in (("rows at once", quick_ms), ("MLflow's client", client_ms), ("MLflow's fluent API", fluent_ms)):
        print(f"  written by {name:20} {ms:6.2f} ms   {fluent_ms / ms:5.1f} times less than the fluent API")
    verdict = "within" if read_ms + quick_ms <= LIMIT_MS else "ABOVE"
    print(f"reading and writing: {read_ms + quick_ms:.2f} ms a trace, {verdict} the limit of {LIMIT_MS:.0f}")


def compare(settings: Settings, folder: Path, episodes: int) -> None:
    """A whole experiment of seven variants: what the comparison adds to writing its cells."""
    experiment = make_experiment("compared", repeats=max(2, episodes // 42), tasks=6)
    maker = EpisodeMaker(folder, rounds=9)
    cells = [maker.cell(experiment, variant.name) for variant in experiment.variants]
    sink = MLflowSink(settings)
    cells_ms = sum(cpu_ms(partial(sink.write, cell)) for cell in cells)
    table_ms = cpu_ms(lambda: comparison_table(cells))
    table = comparison_table(cells)
    first_ms, again_ms = (cpu_ms(lambda: sink.write_comparison(table)) for _ in range(2))
    print(
        f"a comparison of {len(cells)} variants: {table_ms:.0f} ms to make and {first_ms:.0f} to write, again "
        f"{again_ms:.0f}; {(table_ms + first_ms) / cells_ms:.0%} of the {cells_ms:.0f} ms of its cells"
    )


def write_ms(store: TrackingStore, writer: TraceWriter, traces: Sequence[EpisodeTrace]) -> float:
    """CPU a trace, in milliseconds, in a run of its own."""
    home = store.experiment("geode/benchmark", "")
    run = store.create_run(home.experiment_id, type(writer).__name__, None, {})
    place = TraceHome(experiment=home, run_id=run.run_id, variant="baseline")
    writer.write(place, traces[:1])
    return cpu_ms(lambda: writer.write(place, traces[1:])) / (len(traces) - 1)


def fluent(store: TrackingStore, traces: Sequence[EpisodeTrace]) -> float:
    """CPU a trace, in milliseconds, by `mlflow.start_span_no_context`, the flush included."""
    mlflow = load_mlflow()
    mlflow.set_tracking_uri(store.uri)
    mlflow.set_experiment("geode/benchmark")

    def write(trace: EpisodeTrace) -> None:
        root = mlflow.start_span_no_context(**_arguments(trace.root))
        for span in trace.spans[1:]:
            child = mlflow.start_span_no_context(**_arguments(span), parent_span=root)
            child.set_outputs(dict(span.outputs))
            child.end(end_time_ns=span.end_ns)
        root.set_outputs(dict(trace.root.outputs))
        root.end(end_time_ns=trace.root.end_ns)

    def write_all() -> None:
        for trace in traces[1:]:
            write(trace)
        mlflow.flush_trace_async_logging()

    write(traces[0])
    mlflow.flush_trace_async_logging()
    return cpu_ms(write_all) / (len(traces) - 1)


def _arguments(span: Span) -> dict[str, object]:
    attributes = {key: json.dumps(value) for key, value in span.attributes.items()}
    return {
        "name": span.name,
        "span_type": span.kind.value,
        "inputs": dict(span.inputs),
        "attributes": attributes,
        "start_time_ns": span.start_ns,
    }


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    main()
