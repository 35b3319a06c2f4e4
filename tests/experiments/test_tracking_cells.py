"""What a cell says of itself: figures that can be compared, and nothing that looks measured but is not."""

from pathlib import Path

import pytest

from experiments.sinks import ComparisonRow
from experiments.suite import OutcomeKind
from experiments.tracking_cells import cell_params, headline_metrics, verdict_note
from tests.doubles.tracked_episodes import EpisodeMaker, make_experiment


def test_invalid_episodes_are_counted_and_are_in_no_rate(tmp_path: Path) -> None:
    """Infrastructure failures are not scores."""
    experiment = make_experiment()
    maker, variant, task = EpisodeMaker(tmp_path, rounds=4), experiment.variants[0], experiment.ruler.tasks[0]
    kinds = [OutcomeKind.PASS, OutcomeKind.PASS, OutcomeKind.PASS, OutcomeKind.FAIL, OutcomeKind.INVALID]
    metrics = headline_metrics(
        [maker.episode(experiment, variant, task, repetition=n, kind=kind) for n, kind in enumerate(kinds)]
    )
    assert metrics["pass_rate"] == 0.75
    assert (metrics["passes"], metrics["failures"], metrics["invalid"], metrics["episodes"]) == (3, 1, 1, 5)
    assert metrics["cost_usd_per_episode"] == pytest.approx(4 * 0.0042)
    assert metrics["tokens_in_per_episode"] == 6_000
    assert metrics["latency_s_per_episode"] == pytest.approx(3.6)
    assert metrics["verified_per_episode"] == 0.6


def test_a_cell_that_measured_nothing_has_no_pass_rate(tmp_path: Path) -> None:
    """Zero would be a measurement, and NaN would be drawn like one."""
    experiment = make_experiment()
    episode = EpisodeMaker(tmp_path).episode(
        experiment, experiment.variants[0], experiment.ruler.tasks[0], kind=OutcomeKind.INVALID
    )
    assert "pass_rate" not in headline_metrics([episode])
    assert headline_metrics([]) == {"passes": 0, "failures": 0, "invalid": 0, "episodes": 0}


def test_what_varies_can_be_read_off_the_params() -> None:
    """The compare page shows params side by side; what grows with the experiment is none, since none can change."""
    experiment = make_experiment(repeats=5)
    assert cell_params(experiment, experiment.variant("all_hooks")) == {
        "variant": "all_hooks",
        "scaffold_id": experiment.variant("all_hooks").scaffold_id,
        "suite": "workspace",
        "hooks": "require_test_run, protect_tests, stop_repeats",
        "prompt": "worker.md (15 characters)",
        "tools": "read_file, edit_file, shell",
        "repair_budget": "2",
        "model.target": "simulated/apprentice",
    }


def test_the_note_says_first_who_won_and_by_how_much() -> None:
    """Its first line stands on top of every page of the experiment."""
    experiment = make_experiment(repeats=30)
    rows = [
        ComparisonRow(variant="placebo_prompt", difference=None, low=None, high=None, verdict="INVALID"),
        ComparisonRow(variant="stop_repeats", difference=0.022, low=-0.088, high=0.132, verdict="UNDECIDED"),
        ComparisonRow(variant="all_hooks", difference=0.194, low=0.084, high=0.304, verdict="KEEP"),
    ]
    note = verdict_note(experiment, rows, {"baseline": {"pass_rate": 0.617}, "all_hooks": {"pass_rate": 0.811}})
    lines = note.splitlines()
    assert lines[0] == (
        "Which hook helps the worker, and by how much? **all_hooks is better by +0.194 (+0.084 to +0.304)**."
    )
    assert lines[6:] == [
        "| baseline | 0.617 | | baseline |",
        "| all_hooks | 0.811 | +0.194 (+0.084 to +0.304) | KEEP |",
        "| stop_repeats | not measured | +0.022 (-0.088 to +0.132) | UNDECIDED |",
        "| placebo_prompt | not measured | not measured (not measured to not measured) | INVALID |",
    ]
    assert "**No variant is shown to be better than baseline**" in verdict_note(experiment, rows[:2], {})
