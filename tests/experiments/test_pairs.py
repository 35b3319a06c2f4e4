"""Pairs are counted by how both ends fell, and every task that moved names a pair that fell that way."""

import pytest
from scipy import stats as scipy_stats

from experiments.pairs import PairTable, pair_table
from tests.doubles.cells import Letters, make_cells

LETTERS: Letters = {
    "baseline": {"a": "FFFPPF", "b": "PPPFFF", "c": "PFPFI."},
    "hook": {"a": "PPFPPP", "b": "FPPFFF", "c": "FPPFPP"},
}


def table(letters: Letters = LETTERS) -> PairTable:
    return pair_table(*make_cells(letters))


def test_every_block_falls_in_one_field() -> None:
    """Counted by hand; a block that lacks an end is in none of the four, and said."""
    found = table()
    assert (found.both, found.only_baseline, found.only_candidate, found.neither) == (5, 2, 4, 5)
    assert found.unmeasured == 2


def test_p_is_that_of_the_exact_binomial_test() -> None:
    """Concordant pairs say nothing of a difference: only 4 against 2 counts."""
    assert table().p == pytest.approx(scipy_stats.binomtest(4, 6, 0.5).pvalue)
    assert table({"baseline": {"a": "PF"}, "hook": {"a": "PF"}}).p == 1.0


def test_a_task_that_won_as_often_as_it_lost_has_not_moved() -> None:
    """`c` lost one pair and won one."""
    found = table()
    assert [(task.task_id, task.won, task.lost) for task in found.better] == [("a", 3, 0)]
    assert [(task.task_id, task.won, task.lost) for task in found.worse] == [("b", 0, 1)]


def test_the_named_pair_is_of_one_block_and_fell_that_way() -> None:
    """Two transcripts side by side are worth reading only if nothing but the scaffold differs."""
    baseline, hook = make_cells(LETTERS)
    records = {stored.record.episode_key: stored.record for cell in (baseline, hook) for stored in cell.episodes}
    found = pair_table(baseline, hook)
    for task, kinds in ((found.better[0], ("PASS", "FAIL")), (found.worse[0], ("FAIL", "PASS"))):
        ours, theirs = records[task.candidate_key], records[task.baseline_key]
        assert (ours.task_id, ours.seed, ours.repetition) == (theirs.task_id, theirs.seed, theirs.repetition)
        assert (ours.outcome.kind, theirs.outcome.kind) == kinds
        assert ours.scaffold_id == hook.variant.scaffold_id


def test_what_moved_most_comes_first() -> None:
    """A reader looks at the first one or two."""
    found = table({"baseline": {"a": "FPP", "b": "FFF", "c": "FFP"}, "hook": {"a": "PPP", "b": "PPP", "c": "PPP"}})
    assert [task.task_id for task in found.better] == ["b", "c", "a"]
