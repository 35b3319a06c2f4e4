"""A comparison counts what is there, says what is not, and cannot be steered by choosing what to show."""

import json

import pytest

from analysis.compare import Comparison, VariantRow, compare, comparison_to_json
from experiments.gate import EvidenceRefused, VerdictKind
from tests.doubles.cells import Letters, drawn, make_cells, make_experiment

LETTERS: Letters = {
    "baseline": {"csv_a": "FFFFPFFFFF" * 2, "csv_b": "PPPPPPPPPP" * 2, "fix_c": "FPFFFFFFPF" * 2},
    "hook": {"csv_a": "PPPFPPPPPP" * 2, "csv_b": "PPPPPPPPPF" * 2, "fix_c": "PLPPPPFPPP" * 2},
    "placebo": {"csv_a": "FFFFFFFFFF" * 2, "csv_b": "PPPPPPPPPP" * 2, "fix_c": "PPFFFFFFPI" * 2},
}


def compared(letters: Letters = LETTERS) -> Comparison:
    return compare(make_cells(letters), next(iter(letters)))


def row(comparison: Comparison, name: str) -> VariantRow:
    return next(row for row in comparison.rows if row.name == name)


def test_the_baseline_comes_first_and_gets_no_verdict() -> None:
    """It is what the others are held against."""
    rows = compared().rows
    assert [found.name for found in rows] == ["baseline", "hook", "placebo"]
    assert rows[0].is_baseline
    assert rows[0].verdict is None
    assert [found.verdict.kind for found in rows[1:] if found.verdict] == [VerdictKind.KEEP, VerdictKind.UNDECIDED]


def test_rates_are_means_over_tasks_of_what_was_measured() -> None:
    """INVALID is no failure: `fix_c` of the placebo is 6 of 18, not 6 of 20."""
    comparison = compared()
    assert row(comparison, "baseline").pass_rate == pytest.approx((0.1 + 1.0 + 0.2) / 3)
    assert row(comparison, "placebo").pass_rate == pytest.approx((0.0 + 1.0 + 6 / 18) / 3)
    assert (row(comparison, "placebo").invalid, row(comparison, "placebo").missing) == (2, 0)


def test_the_difference_is_that_of_the_rates() -> None:
    """With every pair measured the paired difference and the difference of the rates are one number."""
    comparison = compared()
    verdict, baseline = row(comparison, "hook").verdict, row(comparison, "baseline").pass_rate
    assert verdict is not None
    assert verdict.difference is not None
    assert baseline is not None
    assert row(comparison, "hook").pass_rate == pytest.approx(baseline + verdict.difference.estimate)


def test_tasks_better_and_worse_go_by_sign_and_noise_is_marked() -> None:
    """One lost episode of 20 makes a task worse by sign; it does not make it beyond noise."""
    comparison = compared()
    assert row(comparison, "hook").tasks_better == ("csv_a", "fix_c")
    assert row(comparison, "hook").tasks_worse == ("csv_b",)
    marked = {
        task.task_id: cell.beyond_noise for task in comparison.tasks for cell in task.cells if cell.variant == "hook"
    }
    assert marked == {"csv_a": True, "csv_b": False, "fix_c": True}


def test_a_false_claim_is_an_accepted_answer_that_failed() -> None:
    """The check inside the loop said yes, the task's verifier said no: 2 of 60."""
    assert row(compared(), "hook").claimed_falsely == pytest.approx(2 / 60)


def test_means_of_spend_are_an_episodes() -> None:
    """Each built episode costs 0.0125 dollars, 1,000 tokens, 4 s of model time, 2 repairs and 1 refused call."""
    spend = row(compared(), "hook").spend
    assert spend is not None
    assert spend.cost_usd == pytest.approx(0.0125)
    assert (spend.tokens, spend.model_latency_ms, spend.rounds) == (1_000, 4_000, 6)
    assert (spend.repairs_used, spend.refused_calls) == (2, 1)


def test_each_task_names_a_failed_episode_of_each_variant() -> None:
    """From a number in the table one step leads to what happened."""
    cells = make_cells(LETTERS)
    task = compare(cells, "baseline").tasks[0]
    look_at = next(cell.look_at for cell in task.cells if cell.variant == "hook")
    record = next(e.record for e in cells[1].episodes if e.record.episode_key == look_at)
    assert (record.task_id, record.outcome.kind) == ("csv_a", "FAIL")


def test_showing_fewer_variants_changes_no_interval() -> None:
    """Whoever looks at six and then asks for the best one has still looked at six."""
    cells = make_cells(LETTERS)
    some = compare(cells, "baseline", only=["hook"])
    assert [found.name for found in some.rows] == ["baseline", "hook"]
    assert row(some, "hook") == row(compare(cells, "baseline"), "hook")
    assert any("all 2 candidates" in warning for warning in some.warnings)
    assert [cell.variant for cell in some.tasks[0].cells] == ["baseline", "hook"]


def test_another_baseline_is_allowed_and_said() -> None:
    """A baseline that was chosen after the fact is not the one that was planned."""
    comparison = compare(make_cells(LETTERS), "placebo")
    assert [found.name for found in comparison.rows] == ["placebo", "baseline", "hook"]
    assert any("planned with 'baseline'" in warning for warning in comparison.warnings)


def test_an_unknown_variant_is_refused_with_the_nearest_name() -> None:
    """Silence would read as `there is nothing to show`."""
    with pytest.raises(EvidenceRefused, match="did you mean 'placebo'"):
        compare(make_cells(LETTERS), "baseline", only=["placbo"])


def test_missing_episodes_are_counted() -> None:
    """An unfinished experiment shows how much of it is there."""
    comparison = compared({"baseline": {"a": "PFPF"}, "hook": {"a": "PP.."}})
    assert (row(comparison, "hook").finished, row(comparison, "hook").planned, row(comparison, "hook").missing) == (
        2,
        4,
        2,
    )


def test_nothing_measured_gives_no_number() -> None:
    """A rate without a denominator is absent, not zero."""
    found = row(compared({"baseline": {"a": "PFPF"}, "hook": {"a": "...."}}), "hook")
    assert (found.pass_rate, found.claimed_falsely, found.spend) == (None, None, None)


def test_simulated_results_carry_their_label_and_real_ones_do_not() -> None:
    """A table from the simulator must not be read as evidence about a language model."""
    assert "says nothing about a language model" in compared().warnings[0]
    real = compare(make_cells(LETTERS, make_experiment(LETTERS, model="anthropic/claude-opus-5-5")), "baseline")
    assert real.warnings == ()
    assert real.simulated_models == ()


def test_one_scaffold_under_two_names_is_said() -> None:
    """Two names for one scaffold share their episodes: their difference is zero by construction."""
    first, second = make_cells({"baseline": {"a": "PF"}, "twin": {"a": "PF"}})
    variant = second.variant.model_copy(update={"scaffold_id": first.variant.scaffold_id})
    experiment = first.experiment.model_copy(update={"variants": (first.variant, variant)})
    cells = make_cells({"baseline": {"a": "PF"}, "twin": {"a": "PF"}}, experiment)
    comparison = compare(cells, "baseline")
    assert any("'twin' and 'baseline' are one scaffold" in warning for warning in comparison.warnings)


def test_everything_is_json() -> None:
    """What a program reads holds no NaN, and names verdicts and reasons by their codes."""
    body = json.loads(json.dumps(comparison_to_json(compared()), allow_nan=False))
    assert body["schema"] == "geode.comparison/1"
    assert body["rows"][1]["verdict"]["kind"] == "KEEP"
    assert body["rows"][1]["verdict"]["reasons"][0]["code"] == "better"
    assert body["rows"][1]["generalises"]["kind"] == "not tested"
    assert body["rows"][1]["generalises"]["reason"] == "2 families, 10 needed"


def test_the_naive_rule_stands_beside_the_gate() -> None:
    """Of six placebos at 30 repeats some always look better: that is what the gate is for."""
    rates = {name: {"a": 0.5, "b": 0.8} for name in ("baseline", "c1", "c2", "c3", "c4", "c5", "c6")}
    comparison = compared(drawn(rates, repeats=30, seed=3))
    assert comparison.promoted_by_point_estimate
    assert all(found.verdict.kind is VerdictKind.UNDECIDED for found in comparison.rows if found.verdict)
