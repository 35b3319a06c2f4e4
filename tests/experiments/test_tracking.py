"""Cells in MLflow: found again, never doubled, and honest about what could not be stored."""

import math
import re
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from experiments.comparison import comparison_table
from experiments.imported import ImportedRun
from experiments.records import ExperimentRecord
from experiments.sinks import Cell, EarlySink
from experiments.tracking import CELL_TAG, Landing, MLflowSink, create_sink, find_landing, log_imported
from experiments.tracking_store import EntriesSetAside, TrackedRun, TrackingStore
from geode.config.settings import Settings, read_settings
from tests.doubles.tracked_episodes import EpisodeMaker, dump, make_experiment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]  # MLflow's own use of SQLAlchemy


@pytest.fixture
def maker(tmp_path: Path) -> EpisodeMaker:
    return EpisodeMaker(tmp_path / "episodes", rounds=3)


@pytest.fixture
def experiment() -> ExperimentRecord:
    return make_experiment(repeats=2)


@pytest.fixture
def sink(tracking_settings: Settings) -> MLflowSink:
    return MLflowSink(tracking_settings)


def runs_of(settings: Settings, experiment: str = "hook_ablation") -> dict[str, TrackedRun]:
    store = TrackingStore(settings)
    found = store.runs(store.experiment(f"geode/{experiment}", "").experiment_id, "")
    return {run.name: run for run in found}


def traces_of(settings: Settings, run: TrackedRun) -> dict[str, str]:
    """Session by episode key, as MLflow's public search finds the traces of a run."""
    store = TrackingStore(settings)
    experiment_id = store.client.get_run(run.run_id).info.experiment_id
    found = store.client.search_traces(locations=[experiment_id], run_id=run.run_id, include_spans=False)
    keys = [trace.info.tags["geode.episode_key"] for trace in found]
    assert len(keys) == len(set(keys))
    return {key: trace.info.trace_id for key, trace in zip(keys, found, strict=True)}


def test_a_cell_is_a_child_run_with_its_figures_and_one_trace_an_episode(
    tracking_settings: Settings, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """What the researcher compares, and where they go from there."""
    sink = create_sink(tracking_settings)
    assert isinstance(sink, EarlySink)
    cell = maker.cell(experiment, "all_hooks")
    sink.write(cell)
    sink.close()
    runs = runs_of(tracking_settings)
    parent, child = runs["hook_ablation"], runs["all_hooks"]
    assert child.tags["mlflow.parentRunId"] == parent.run_id
    assert child.tags[CELL_TAG] == f"hook_ablation/all_hooks/{cell.variant.scaffold_id}"
    assert child.status == parent.status == "FINISHED"
    assert child.metrics["episodes"] == 4
    assert child.params["hooks"] == "require_test_run, protect_tests, stop_repeats"
    assert parent.tags["geode.question"] == experiment.question
    assert parent.tags["geode.ruler"] == experiment.ruler.ruler_id
    assert set(traces_of(tracking_settings, child)) == {episode.record.episode_key for episode in cell.episodes}
    stored = TrackingStore(tracking_settings).client.download_artifacts(parent.run_id, "experiment.yaml")
    assert f"scaffold_id: {cell.variant.scaffold_id}" in Path(stored).read_text(encoding="utf-8")


def test_writing_a_cell_again_changes_no_row(
    tracking_settings: Settings, sink: MLflowSink, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """A rebuild by another process finds everything by its tags, and leaves the store as it was."""
    cell = maker.cell(experiment, "baseline")
    sink.write(cell)
    before = dump(tracking_settings)
    sink.write(cell)
    MLflowSink(tracking_settings).write(cell)
    assert dump(tracking_settings) == before


def test_a_grown_cell_is_the_same_run_with_what_is_new(
    tracking_settings: Settings, sink: MLflowSink, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """More repeats make the episodes more, not the runs."""
    cell = maker.cell(experiment, "baseline")
    sink.write(replace(cell, episodes=cell.episodes[:3]))
    assert runs_of(tracking_settings)["baseline"].status == "RUNNING"
    sink.write(cell)
    longer = experiment.model_copy(update={"repeats": 3})
    more = [maker.episode(longer, cell.variant, task, repetition=2) for task in longer.ruler.tasks]
    MLflowSink(tracking_settings).write(replace(cell, experiment=longer, episodes=[*cell.episodes, *more]))
    runs = runs_of(tracking_settings)
    assert set(runs) == {"hook_ablation", "baseline"}
    assert runs["baseline"].status == "FINISHED"
    assert runs["baseline"].metrics["episodes"] == 6
    assert runs["baseline"].tags["geode.repeats"] == runs["hook_ablation"].tags["geode.repeats"] == "3"
    assert len(traces_of(tracking_settings, runs["baseline"])) == 6


def test_traces_that_were_written_early_are_found_by_the_cell(
    tracking_settings: Settings, sink: MLflowSink, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """Writing while the sweep runs keeps the other core busy, and must not double anything."""
    cell = maker.cell(experiment, "baseline")
    sink.write_traces(experiment, cell.variant, cell.episodes[:1])
    sink.write_traces(experiment, cell.variant, cell.episodes[1:3])
    early = traces_of(tracking_settings, runs_of(tracking_settings)["baseline"])
    assert len(early) == 3
    MLflowSink(tracking_settings).write(cell)
    late = traces_of(tracking_settings, runs_of(tracking_settings)["baseline"])
    assert len(late) == 4
    assert early.items() <= late.items()


def test_an_episode_that_was_run_afresh_replaces_its_trace(
    tracking_settings: Settings, sink: MLflowSink, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """The trace of a session that was set aside would show another outcome than the figures."""
    cell = maker.cell(experiment, "baseline")
    sink.write(cell)
    first = traces_of(tracking_settings, runs_of(tracking_settings)["baseline"])
    again = maker.episode(experiment, cell.variant, experiment.ruler.tasks[0])
    sink.write(replace(cell, episodes=[again, *cell.episodes[1:]]))
    second = traces_of(tracking_settings, runs_of(tracking_settings)["baseline"])
    assert second.keys() == first.keys()
    assert {key for key in first if first[key] != second[key]} == {again.record.episode_key}


def test_an_unreadable_timeline_costs_one_trace_and_is_reported(
    tracking_settings: Settings, sink: MLflowSink, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """A logging failure never passes unseen, and takes nothing else with it."""
    cell = maker.cell(experiment, "baseline")
    shutil.rmtree(cell.episodes[2].folder)
    with pytest.raises(EntriesSetAside, match=cell.episodes[2].record.episode_key[:12]):
        sink.write(cell)
    run = runs_of(tracking_settings)["baseline"]
    assert run.metrics["episodes"] == 4
    assert len(traces_of(tracking_settings, run)) == 3


def compare(sink: MLflowSink, cells: list[Cell]) -> None:
    for cell in cells:
        sink.write(cell)
    sink.write_comparison(comparison_table(cells))


def test_a_comparison_stands_beside_the_figures(
    tracking_settings: Settings, sink: MLflowSink, maker: EpisodeMaker
) -> None:
    """A stranger on MLflow's compare page can say which hook won and by how much."""
    cells = maker.cells(make_experiment(repeats=8), {"baseline": "FFFFFFFF", "all_hooks": "PPPPPPPP"})
    compare(sink, cells)
    before = dump(tracking_settings)
    MLflowSink(tracking_settings).write_comparison(comparison_table(cells))
    assert dump(tracking_settings) == before
    runs = runs_of(tracking_settings)
    parent, baseline, candidate = (runs[name] for name in ("hook_ablation", "baseline", "all_hooks"))
    assert candidate.metrics.keys() == baseline.metrics.keys()
    assert (candidate.metrics["diff_vs_baseline"], baseline.metrics["diff_vs_baseline"]) == (1.0, 0.0)
    assert candidate.metrics["diff_low"] > 0
    assert (candidate.tags["verdict"], baseline.tags["verdict"]) == ("KEEP", "baseline")
    assert candidate.tags["mlflow.note.content"].startswith("**KEEP**: the whole interval")
    assert parent.tags["verdicts"] == "1 KEEP"
    assert parent.tags["mlflow.note.content"].startswith("**all_hooks is better by +100.0 points")
    stored = TrackingStore(tracking_settings).client.download_artifacts(parent.run_id, "comparison.md")
    page = Path(stored).read_text(encoding="utf-8")
    assert set(re.findall(r"tr-[0-9a-f]{32}", page)) <= {
        *traces_of(tracking_settings, baseline).values(),
        *traces_of(tracking_settings, candidate).values(),
    }


def test_a_verdict_that_no_longer_holds_disappears(
    tracking_settings: Settings, sink: MLflowSink, maker: EpisodeMaker
) -> None:
    """A KEEP that more repeats do not bear out must stand nowhere, and a figure that is not known any more is none."""
    few, more = make_experiment(repeats=8), make_experiment(repeats=16)
    compare(sink, maker.cells(few, {"baseline": "FFFFFFFF", "all_hooks": "PPPPPPPP"}))
    compare(sink, maker.cells(more, {"baseline": "FFFFFFFFPPPPPPPP", "all_hooks": "PPPPPPPPFFFFFFFF"}))
    runs = runs_of(tracking_settings)
    assert (runs["all_hooks"].metrics["diff_vs_baseline"], runs["all_hooks"].tags["verdict"]) == (0.0, "UNDECIDED")
    assert runs["hook_ablation"].tags["verdicts"] == "1 UNDECIDED"
    assert not any("KEEP" in value for run in runs.values() for value in run.tags.values())

    unmeasured = maker.cells(more, {"baseline": "I" * 16, "all_hooks": "P" * 16})
    compare(MLflowSink(tracking_settings), unmeasured)
    run = runs_of(tracking_settings)["all_hooks"]
    assert run.tags["verdict"] == "INVALID"
    assert all(math.isnan(run.metrics[name]) for name in ("diff_vs_baseline", "diff_low", "diff_high"))
    before = dump(tracking_settings)
    sink.write_comparison(comparison_table(unmeasured))
    assert dump(tracking_settings) == before


def test_a_store_that_grew_says_what_a_rebuilt_one_says(
    tracking_settings: Settings, sink: MLflowSink, maker: EpisodeMaker, tmp_path: Path
) -> None:
    """MLflow can be deleted: nothing in it depends on how often, or in which steps, it was written."""
    compare(sink, maker.cells(make_experiment(repeats=8), {"baseline": "FFFFFFFF", "all_hooks": "PPPPPPPP"}))
    last = maker.cells(
        make_experiment(repeats=9), {"baseline": "F" * 9, "all_hooks": "PPPPPPPPF", "stop_repeats": "F" * 9}
    )
    compare(MLflowSink(tracking_settings), last)
    shutil.copytree(tmp_path / "root", tmp_path / "rebuilt")
    rebuilt = read_settings(tmp_path / "rebuilt", {})
    TrackingStore(rebuilt).client.rename_experiment("1", "gone")
    compare(MLflowSink(rebuilt), last)
    grown, again = (said(settings) for settings in (tracking_settings, rebuilt))
    assert again == grown


def said(settings: Settings) -> dict[str, tuple[dict[str, float], dict[str, str]]]:
    """Figures and words by run, whatever MLflow calls runs, experiments and traces."""
    runs = runs_of(settings)
    ids = "|".join([*(run.run_id for run in runs.values()), "tr-[0-9a-f]{32}", "experiments/[0-9]+"])
    return {
        name: (dict(run.metrics), {key: re.sub(ids, "id", value) for key, value in run.tags.items()})
        for name, run in runs.items()
    }


def test_verdicts_on_an_experiment_that_grows_are_marked_until_they_are_made_again(
    tracking_settings: Settings, sink: MLflowSink, maker: EpisodeMaker
) -> None:
    """A run that is cut short leaves the old answer beside new episodes; it must say so."""
    compare(sink, maker.cells(make_experiment(repeats=8), {"baseline": "FFFFFFFF", "all_hooks": "PPPPPPPP"}))
    longer = maker.cells(make_experiment(repeats=9), {"baseline": "FFFFFFFFF", "all_hooks": "PPPPPPPPP"})
    for _ in range(2):
        MLflowSink(tracking_settings).write(longer[0])
        note = runs_of(tracking_settings)["hook_ablation"].tags["mlflow.note.content"]
        assert note.count("has grown") == 1
        assert "all_hooks is better" in note
    MLflowSink(tracking_settings).write_comparison(comparison_table(longer))
    assert "has grown" not in runs_of(tracking_settings)["hook_ablation"].tags["mlflow.note.content"]


def test_a_verdict_on_a_cell_that_was_never_written_is_told(
    tracking_settings: Settings, sink: MLflowSink, maker: EpisodeMaker
) -> None:
    """It has no place, but the others have theirs."""
    letters = {"baseline": "FFFFFFFF", "all_hooks": "PPPPPPPP", "stop_repeats": "PPPPPPPP"}
    cells = maker.cells(make_experiment(repeats=8), letters)
    for cell in cells[:2]:
        sink.write(cell)
    with pytest.raises(EntriesSetAside, match=r"verdict of stop_repeats.*write its cell first"):
        sink.write_comparison(comparison_table(cells))
    runs = runs_of(tracking_settings)
    assert runs["all_hooks"].tags["verdict"] == "KEEP"
    assert "| stop_repeats | KEEP |" in runs["hook_ablation"].tags["mlflow.note.content"]


def test_imported_runs_are_stored_once_and_replaced(tracking_settings: Settings) -> None:
    """Importing an archive again corrects it; names from elsewhere are mapped, and what is no figure is told."""
    run = ImportedRun(
        name="gpt__postgres",
        experiment="mcpmark",
        params={"model": "gpt", "config": "x" * 20_000},
        metrics={"pass@1": 0.5},
        tags={"service": "postgres"},
    )
    log_imported(tracking_settings, [run])
    before = dump(tracking_settings)
    log_imported(tracking_settings, [run])
    assert dump(tracking_settings) == before
    with pytest.raises(EntriesSetAside, match="'turns' is nan"):
        log_imported(tracking_settings, [replace(run, metrics={"pass@1": 0.75, "turns": float("nan")})])
    note = TrackingStore(tracking_settings).client.get_experiment_by_name("geode/mcpmark").tags["mlflow.note.content"]
    assert "`geode compare A B`" in note, "a mean without an error invites a comparison by eye"
    runs = runs_of(tracking_settings, "mcpmark")
    assert [(run.name, run.status) for run in runs.values()] == [("gpt__postgres", "FINISHED")]
    assert runs["gpt__postgres"].metrics == {"pass_x40_1": 0.75}
    assert runs["gpt__postgres"].params["config"].startswith("sha256:")


def test_the_landing_is_the_newest_experiment_baseline_first(
    tracking_settings: Settings, sink: MLflowSink, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """`geode ui` opens where the last sweep wrote, in an order that can be read."""
    assert find_landing(tracking_settings) is None
    maker.pass_rates |= {"stop_repeats": 1.0, "all_hooks": 0.0, "baseline": 0.0}
    for name in ("stop_repeats", "all_hooks", "baseline"):
        sink.write(maker.cell(experiment, name))
    runs = runs_of(tracking_settings)
    order = tuple(runs[name].run_id for name in ("baseline", "stop_repeats", "all_hooks"))
    landing = Landing(experiment_id="1", name="geode/hook_ablation", run_ids=order, compared_in=None)
    assert find_landing(tracking_settings) == landing
    sink.write_comparison(comparison_table([maker.cell(experiment, name) for name in ("baseline", "all_hooks")]))
    assert find_landing(tracking_settings) == replace(landing, compared_in=runs["hook_ablation"].run_id)


def test_two_experiments_may_share_an_episode(
    tracking_settings: Settings, sink: MLflowSink, experiment: ExperimentRecord, maker: EpisodeMaker
) -> None:
    """An episode is stored once, and belongs to every cell that asks for it; each shows a trace of it."""
    cell = maker.cell(experiment, "baseline")
    later = experiment.created_at + timedelta(days=1)
    other = experiment.model_copy(update={"name": "second_look", "created_at": later})
    sink.write(cell)
    sink.write(Cell(experiment=other, variant=cell.variant, episodes=cell.episodes))
    for name in ("hook_ablation", "second_look"):
        assert len(traces_of(tracking_settings, runs_of(tracking_settings, name)["baseline"])) == 4
