"""The gate's answer as figures and words: the same names in every cell, and none where nothing is known."""

from experiments.comparison import ComparisonTable, comparison_table
from experiments.tracking_names import TEXT_CHARS
from experiments.tracking_verdicts import drift_text, experiment_verdict_tags, points, verdict_figures, verdict_tags
from tests.doubles.cells import Letters, make_cells

FAMILIES = "abcdefghijkl"


def table(letters: Letters) -> ComparisonTable:
    return comparison_table(make_cells(letters))


def many_families(hook: str) -> ComparisonTable:
    """Twelve tasks of a family each; the candidate passes more in all, and in half of them by one more."""
    one_more = {name: hook.replace("F", "P", place % 2) for place, name in enumerate(FAMILIES)}
    return table({"baseline": dict.fromkeys(FAMILIES, "FFFFPPFF"), "hook": one_more})


def test_every_cell_has_the_same_figures() -> None:
    """MLflow's compare page leaves holes otherwise, and its charts leave out runs."""
    found = many_families("PPPPPPFF")
    baseline, hook = (
        {name: value for name, value in verdict_figures(found, row).items() if value is not None} for row in found.rows
    )
    assert baseline.keys() == hook.keys()
    assert (hook["diff_vs_baseline"], hook["family_diff_vs_baseline"]) == (0.5625, 0.5625)
    assert hook["family_diff_low"] > 0
    assert (hook["families_better"], hook["families_worse"]) == (12, 0)
    assert (hook["tasks_better"], hook["tasks_worse"], hook["pairs"], hook["pairs_won"]) == (12, 0, 96, 54)
    zero = {name: baseline[name] for name in baseline if name not in {"pairs", "mcnemar_p"}}
    assert set(zero.values()) == {0.0}
    assert baseline["mcnemar_p"] == 1.0


def test_what_is_not_known_has_no_figure() -> None:
    """One pair has no error, three families say nothing of others: a zero there would be a measurement."""
    found = table({"baseline": {"a": "F"}, "hook": {"a": "P"}})
    figures = verdict_figures(found, found.candidates[0])
    unknown = {name for name, value in figures.items() if value is None}
    assert {"diff_vs_baseline", "diff_low", "diff_high", "family_diff_low", "drift_p"} <= unknown
    assert drift_text(found) == "not tested: nothing varies in time"


def test_the_words_give_the_verdict_and_why() -> None:
    """Nobody should have to know the rule by heart."""
    found = many_families("PPPPPPFF")
    tags = verdict_tags(found, found.candidates[0])
    assert tags["verdict"] == "KEEP"
    assert "lies above zero" in tags["verdict_reasons"]
    assert tags["generalises"].startswith("generalises: the whole interval")
    assert tags["generalises"].endswith("12 of 12 families better, 0 worse")
    assert tags["tasks_better"].startswith("b (+5 -0), d (+5 -0)")
    assert tags["tasks_worse"] == "none"
    assert verdict_tags(found, found.baseline)["verdict"] == "baseline"
    assert experiment_verdict_tags(found)["verdicts"] == "1 KEEP"


def test_more_tasks_than_a_tag_shows_are_counted() -> None:
    """A list that ends without a word looks complete."""
    names = [f"a_task_with_a_long_name_{number}" for number in range(40)]
    found = table({"baseline": dict.fromkeys(names, "FF"), "hook": dict.fromkeys(names, "PP")})
    text = verdict_tags(found, found.candidates[0])["tasks_better"]
    assert len(text) <= TEXT_CHARS
    shown = text.count("(+2 -0)")
    assert text.endswith(f", and {40 - shown} more")


def test_a_difference_of_rounding_alone_is_no_difference() -> None:
    """-0.0 points would look like a loss."""
    assert [points(share) for share in (-1e-17, 0.0, 0.125, -0.5)] == ["+0.0", "+0.0", "+12.5", "-50.0"]
