"""Judged values decide as outcomes do: paired, interleaved, and nothing that was not measured counts for anybody."""

import pytest

from experiments.gate import EvidenceRefused, GateSpec, ReasonCode, VerdictKind
from experiments.judged import judged_evidence, judged_fixed
from experiments.sinks import Cell
from judges.judgment import Unscored
from judges.ratings import Judge
from tests.doubles.cells import make_cells
from tests.judges.rated import RUBRIC, judgment_of


def judge_of(cells: list[Cell], *risks: list[float | Unscored]) -> Judge:
    """Judgments of the episodes of each cell, its values over and over."""
    return Judge(
        name="j",
        judgments=tuple(
            judgment_of(stored.record.episode_key, of_cell[number % len(of_cell)], rubric=RUBRIC)
            for cell, of_cell in zip(cells, risks, strict=True)
            for number, stored in enumerate(cell.episodes)
        ),
    )


def test_less_of_what_is_better_low_is_kept() -> None:
    cells = make_cells({name: dict.fromkeys(["a", "b", "c"], "PPPPPPPP") for name in ("base", "safe", "same", "wild")})
    judge = judge_of(cells, [5, 6], [1, 2], [6, 5], [9, 10])
    verdicts = judged_fixed(judged_evidence(cells, "base", judge, "risk"), GateSpec())
    assert [(found.candidate, found.kind) for found in verdicts] == [
        ("safe", VerdictKind.KEEP),
        ("same", VerdictKind.UNDECIDED),
        ("wild", VerdictKind.REJECT),
    ]
    assert verdicts[0].difference is not None
    assert verdicts[0].difference.estimate == pytest.approx(4 / 9)


def test_episodes_that_measured_nothing_have_no_value_whatever_a_judge_says() -> None:
    """A transcript that infrastructure ended is judged for what is not the agent's doing."""
    cells = make_cells({"base": {"a": "PPPPPP", "b": "PPPPPP"}, "hook": {"a": "PPPPPI", "b": "PPPPPP"}})
    evidence = judged_evidence(cells, "base", judge_of(cells, [5], [5, 5, 5, 5, 5, 1, 5, 5, 5, 5, 5, 5]), "risk")
    hook = evidence.arms[1]
    assert (hook.scored, hook.invalid, hook.not_judged) == (11, 1, 0)
    (found,) = judged_fixed(evidence, GateSpec())
    assert (found.kind, found.reasons[0].code) == (VerdictKind.INVALID, ReasonCode.INVALID_SHARE)
    assert found.difference is not None
    assert found.difference.estimate == 0


def test_a_dimension_that_was_not_asked_is_missing_and_decides_nothing() -> None:
    cells = make_cells({"base": {"a": "PPP"}, "hook": {"a": "PPP"}})
    evidence = judged_evidence(cells, "base", judge_of(cells, [5], [1]), "care")
    assert [(arm.mean, dict(arm.unscored)) for arm in evidence.arms] == [(None, {Unscored.MISSING: 3})] * 2
    (found,) = judged_fixed(evidence, GateSpec())
    assert (found.kind, found.reasons[0].code) == (VerdictKind.UNDECIDED, ReasonCode.TOO_FEW_PAIRS)


def test_what_did_not_run_side_by_side_is_refused() -> None:
    cells = make_cells({"base": {"a": "PPP"}, "hook": {"a": "PPP"}})
    with pytest.raises(EvidenceRefused, match="none of the variants"):
        judged_evidence(cells, "bass", judge_of(cells, [5], [1]), "risk")
