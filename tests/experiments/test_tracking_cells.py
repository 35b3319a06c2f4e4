"""What a cell says of itself: figures that can be compared, and nothing that looks measured but is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.sinks import StoredEpisode
from experiments.suite import OutcomeKind
from experiments.tracking_cells import cell_params, headline_metrics
from geode.llm.binding import Effort, ModelOptions
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


def unpriced(episode: StoredEpisode) -> StoredEpisode:
    """The same episode, of one call of which nobody knows the cost."""
    usage = {role: used.model_copy(update={"unpriced_calls": 1}) for role, used in episode.record.usage.items()}
    return replace(episode, record=episode.record.model_copy(update={"usage": usage}))


def test_each_role_has_its_tokens_and_its_cost(tmp_path: Path) -> None:
    """Who asks what a judge costs beside its target must not take a sum apart."""
    experiment = make_experiment()
    maker, variant, task = EpisodeMaker(tmp_path, rounds=4), experiment.variants[0], experiment.ruler.tasks[0]
    metrics = headline_metrics([maker.episode(experiment, variant, task, repetition=n) for n in range(2)])
    assert metrics["cost_usd.target"] == pytest.approx(2 * 4 * 0.0042)
    tokens = {kind: metrics[f"tokens.target.{kind}"] for kind in ("input", "cached", "output", "reasoning")}
    assert tokens == {"input": 12_000, "cached": 4_000, "output": 960, "reasoning": 0}
    assert "unpriced_calls.target" not in metrics


def test_an_unknown_cost_is_counted_and_is_no_zero(tmp_path: Path) -> None:
    """A model without a price would look like the cheapest one."""
    experiment = make_experiment()
    maker, variant, task = EpisodeMaker(tmp_path, rounds=4), experiment.variants[0], experiment.ruler.tasks[0]
    episodes = [maker.episode(experiment, variant, task, repetition=n) for n in range(2)]
    metrics = headline_metrics([episodes[0], unpriced(episodes[1])])
    assert metrics["unpriced_calls.target"] == 1
    assert metrics["cost_usd_known.target"] == pytest.approx(2 * 4 * 0.0042)
    assert not {"cost_usd.target", "cost_usd_per_episode"} & metrics.keys()


def test_how_a_model_is_asked_is_a_param() -> None:
    """Two cells that differ in the effort of their model alone must not look alike."""
    experiment = make_experiment()
    variant = experiment.variants[0].model_copy(update={"options": {"target": ModelOptions(effort=Effort.LOW)}})
    assert cell_params(experiment, variant)["options.target"] == '{"effort": "low"}'
