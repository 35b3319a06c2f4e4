"""What the sinks are told of an experiment: every variant, whatever limits the reading, and nothing guessed."""

from experiments.comparison import ComparisonTable, comparison_table
from experiments.suite import OutcomeKind
from tests.doubles.cells import Letters, make_cells, make_experiment

LETTERS: Letters = {
    "baseline": {"a": "FFFFPP", "b": "PPPPPP"},
    "hook": {"a": "PPPPPI", "b": "PPPP.."},
}


def table(letters: Letters = LETTERS) -> ComparisonTable:
    return comparison_table(make_cells(letters))


def test_each_task_is_counted_apart_and_names_an_episode_to_look_at() -> None:
    """Passes, failures, INVALID and not run are four different things; a failure is worth a look before a pass."""
    baseline, hook = table().rows
    assert [(t.passes, t.measured, t.invalid, t.missing) for t in baseline.tasks] == [(2, 6, 0, 0), (6, 6, 0, 0)]
    assert [(t.passes, t.measured, t.invalid, t.missing) for t in hook.tasks] == [(5, 5, 1, 0), (4, 4, 0, 2)]
    assert (hook.invalid, hook.missing) == (1, 2)
    kinds = [task.look_at.outcome.kind for row in (baseline, hook) for task in row.tasks if task.look_at]
    assert kinds == [OutcomeKind.FAIL, OutcomeKind.PASS, OutcomeKind.INVALID, OutcomeKind.PASS]


def test_the_baseline_comes_first_and_is_its_own_pair() -> None:
    """It is compared with nothing, but its figures stand under the same names."""
    cells = make_cells(LETTERS)
    found = comparison_table(cells[::-1])
    assert [row.variant for row in found.rows] == ["baseline", "hook"]
    assert found.baseline.verdict is None
    assert found.baseline.generalises is None
    pairs = found.baseline.pairs
    assert (pairs.both, pairs.neither, pairs.only_candidate, pairs.only_baseline, pairs.p) == (8, 4, 0, 0, 1.0)


def test_what_limits_the_reading_is_told() -> None:
    """A table without it would be believed."""
    assert [warning.split(":")[0] for warning in table().warnings] == [
        "simulated",
        "episodes that measured nothing are INVALID and in no rate",
        "planned episodes have not run",
    ]
    clean = {name: {"a": "PF"} for name in ("baseline", "hook")}
    assert comparison_table(make_cells(clean, make_experiment(clean, model="zai/glm"))).warnings == ()


def test_a_variant_alone_has_its_tasks_and_no_verdict() -> None:
    """One cell is no comparison, and its transcripts are worth reading all the same."""
    (row,) = table({"baseline": {"a": "PF"}}).rows
    assert row.verdict is None
    assert row.tasks[0].passes == 1
