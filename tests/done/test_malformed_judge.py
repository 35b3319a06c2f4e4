"""Done line 5: of a judge with 30 % malformed replies exactly those are unscored, no mean moves, and what rests on them
is UNDECIDED.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from experiments.gate import GateSpec, ReasonCode, Verdict, VerdictKind
from experiments.judged import JudgedEvidence, judged_evidence, judged_fixed
from experiments.sinks import Cell
from judges.agreement import agreement
from judges.judgment import Judgment, Unscored
from judges.ratings import Judge
from judges.resampling import Estimate, Resampling
from tests.doubles.cells import make_cells
from tests.doubles.scripted_judge import ScriptedJudge
from tests.judges.rated import rubric_of
from tests.judges.views import view

RUBRIC = rubric_of(name="care", direction="higher", lowest=0, highest=10)
TASKS, REPEATS = [f"t{number}" for number in range(10)], 10
MALFORMED = {
    "GRADE: C": Unscored.PARSE_FAILURE,
    "There are 5 reasons this is a 9": Unscored.PARSE_FAILURE,
    "": Unscored.PARSE_FAILURE,
    "[ERROR] 500": Unscored.PARSE_FAILURE,
    '{"care": 9} {"care": 2}': Unscored.PARSE_FAILURE,
    '{"care": "8/10"}': Unscored.PARSE_FAILURE,
    '{"care": true}': Unscored.PARSE_FAILURE,
    '{"care": NaN}': Unscored.PARSE_FAILURE,
    '{"care": 90}': Unscored.OUT_OF_RANGE,
    '{"other": 3}': Unscored.MISSING,
}


def cells_of(*variants: str) -> list[Cell]:
    """Each variant ran each of ten tasks ten times."""
    return make_cells({variant: dict.fromkeys(TASKS, "P" * REPEATS) for variant in variants})


def keys_of(cell: Cell) -> list[str]:
    return [stored.record.episode_key for stored in cell.episodes]


def malformed(replies: Mapping[str, str]) -> dict[str, str]:
    """Spoil three replies of every ten, by each of the ways in turn."""
    spoilt = dict(replies)
    places = [episode for number, episode in enumerate(replies) if number % 10 in {1, 4, 8}]
    ways = list(MALFORMED)
    return spoilt | {episode: ways[number % len(ways)] for number, episode in enumerate(places)}


def judged(replies: Mapping[str, str]) -> Judge:
    async def ask() -> list[Judgment]:
        engine = ScriptedJudge(replies)
        return [await engine.judge(replace(view(), episode=episode), RUBRIC) for episode in replies]

    return Judge(name="scripted", judgments=tuple(asyncio.run(ask())))


def replies_to(cells: Sequence[Cell], *values: Sequence[int]) -> dict[str, str]:
    """Replies to the episodes of each cell, its values over and over."""
    return {
        key: json.dumps({"care": of_cell[number % len(of_cell)]})
        for cell, of_cell in zip(cells, values, strict=True)
        for number, key in enumerate(keys_of(cell))
    }


def verdict(cells: Sequence[Cell], judge: Judge) -> tuple[JudgedEvidence, Verdict]:
    evidence = judged_evidence(cells, "base", judge, "care")
    (found,) = judged_fixed(evidence, GateSpec())
    return evidence, found


def test_exactly_the_malformed_replies_are_unscored_each_with_its_reason() -> None:
    cells = cells_of("base")
    good = replies_to(cells, [4, 6, 8])
    spoilt = malformed(good)
    broken = {episode for episode in good if spoilt[episode] != good[episode]}
    judge = judged(spoilt)
    assert len(broken) == 30
    assert {judgment.episode for judgment in judge.judgments if not judgment.scored} == broken
    for judgment in judge.judgments:
        if judgment.episode in broken:
            (entry,) = judgment.dimensions.values()
            assert entry.kind == "unscored"
            assert entry.reason is MALFORMED[spoilt[judgment.episode]]


def test_no_mean_moves_because_of_them_and_they_are_counted_beside_it() -> None:
    """The mean is that of the other seventy: not of a hundred with thirty worst, best or middle ones."""
    cells = cells_of("base", "hook")
    good = replies_to(cells, [4, 6, 8], [5, 7, 9])
    spoilt = malformed(good)
    evidence, _ = verdict(cells, judged(spoilt))
    for arm, cell in zip(evidence.arms, cells, strict=True):
        kept = [json.loads(good[key])["care"] / 10 for key in keys_of(cell) if spoilt[key] == good[key]]
        assert (arm.scored, sum(arm.unscored.values()), arm.not_judged) == (70, 30, 0)
        assert arm.mean == pytest.approx(sum(kept) / 70)
    whole = replace(judged(good), name="whole")
    families = dict.fromkeys(good, "f") | {key: key for key in good}
    (dimension,) = agreement([judged(spoilt), whole], RUBRIC, families, Resampling(draws=50)).dimensions
    first, _ = dimension.judges
    assert (first.scored, sum(first.unscored.values())) == (140, 60)
    (pair,) = dimension.pairs
    assert isinstance(pair.bias, Estimate)
    assert (pair.both, pair.bias.value) == (140, 0)


def test_a_difference_that_the_unscored_could_undo_is_undecided() -> None:
    """Two points of ten are kept when all is scored; thirty in a hundred of unknown value could turn them round."""
    cells = cells_of("base", "hook")
    good = replies_to(cells, [4, 5, 6], [6, 7, 8])
    _, whole = verdict(cells, judged(good))
    assert whole.kind is VerdictKind.KEEP
    _, found = verdict(cells, judged(malformed(good)))
    assert found.kind is VerdictKind.UNDECIDED
    (reason,) = found.reasons
    assert reason.code is ReasonCode.SENSITIVE_TO_INVALID
    assert "worst scores here and best scores of the baseline" in reason.text
    assert found.difference is not None
    assert found.difference.low > 0


def test_a_difference_that_they_could_not_undo_stands() -> None:
    """From worst to best, even if all thirty were against it: 0.7 against 0.3."""
    cells = cells_of("base", "hook")
    spoilt = malformed(replies_to(cells, [0], [10]))
    assert verdict(cells, judged(spoilt))[1].kind is VerdictKind.KEEP
    turned = malformed(replies_to(cells, [10], [0]))
    assert verdict(cells, judged(turned))[1].kind is VerdictKind.REJECT


def test_a_judge_that_fails_on_the_bad_ones_alone_keeps_nothing() -> None:
    """A candidate that breaks the judge where it does worst must not look better for it."""
    cells = cells_of("base", "hook")
    replies = replies_to(cells, [5], [6, 6, 6, 6, 6, 6, 6, 0, 0, 0])
    crashed = {episode: "" if reply == '{"care": 0}' else reply for episode, reply in replies.items()}
    evidence, found = verdict(cells, judged(crashed))
    assert evidence.arms[1].mean == pytest.approx(0.6)
    assert found.kind is VerdictKind.UNDECIDED
    assert verdict(cells, judged(replies))[1].kind is not VerdictKind.KEEP


def test_episodes_that_were_not_judged_make_it_invalid_and_are_no_unscored_ones() -> None:
    cells = cells_of("base", "hook")
    replies = replies_to(cells, [0], [10])
    del replies[keys_of(cells[1])[0]]
    evidence, found = verdict(cells, judged(replies))
    assert (evidence.arms[1].not_judged, evidence.arms[1].unscored) == (1, {})
    assert found.kind is VerdictKind.INVALID
    assert "1 of 100 episodes of 'hook' are not judged" in found.reasons[0].text
