"""Variants of one experiment compared by what a judge says of their episodes: the gate's rule, on values.

A value is normalised, so that 1 is the good end. What a judge left unscored is no value: it is counted, and the verdict
stands only if it would stand with the worst in its place.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.gate import (
    GateSpec,
    Reason,
    ReasonCode,
    Verdict,
    VerdictKind,
    decide,
    paired_evidence,
    score_differences,
)
from experiments.sinks import Cell
from experiments.stats import Floats, simultaneous_intervals
from experiments.suite import OutcomeKind
from judges.judgment import NoValue, Unscored, Value
from judges.ratings import Judge, first_answers

_ENDS = ("worst scores", "best scores")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedArm:
    """How a judge scored one variant: `mean` is over the `scored` episodes, and None if there is none.

    `invalid` episodes measured nothing, whatever a judge says of them. `not_judged` are planned, and have not run or
    have no judgment.
    """

    name: str
    scored: int
    unscored: Mapping[Unscored, int]
    invalid: int
    not_judged: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedEvidence:
    """All that the rule may look at: values on the same blocks, by task; the baseline first, NaN without a value."""

    dimension: str
    arms: tuple[JudgedArm, ...]
    tasks: tuple[Floats, ...]


def judged_evidence(cells: Sequence[Cell], baseline: str, judge: Judge, dimension: str) -> JudgedEvidence:
    """Pair what a judge said of the episodes of `cells`, by task, seed and repetition.

    Raises:
        EvidenceRefused: if the cells are no variants of one experiment under one ruler, with this baseline.
        ValueError: if the judge gave an answer twice for one repetition of an episode.
    """
    paired_evidence(cells, baseline)  # what it refuses is refused here, too
    ordered = sorted(cells, key=lambda cell: cell.variant.name != baseline)
    answers = first_answers(judge)
    entries = {episode: judgment.dimensions.get(dimension) for episode, judgment in answers.items()}
    invalid = frozenset().union(*(_invalid(cell) for cell in ordered))
    blocks: dict[str, list[list[float]]] = {task.task_hash: [] for task in ordered[0].experiment.ruler.tasks}
    for row in zip(*(cell.experiment.episode_keys(cell.variant) for cell in ordered), strict=True):
        values = [float("nan") if key in invalid else _value(entries.get(key)) for *_, key in row]
        blocks[row[0][0].task_hash].append(values)
    return JudgedEvidence(
        dimension=dimension,
        arms=tuple(_arm(cell, entries) for cell in ordered),
        tasks=tuple(np.array(rows, dtype=np.float64) for rows in blocks.values()),
    )


def judged_fixed(evidence: JudgedEvidence, spec: GateSpec) -> tuple[Verdict, ...]:
    """Judge every candidate against the baseline, which itself gets no verdict.

    KEEP if the whole simultaneous interval of the difference lies above zero, REJECT if below, and only if that stays
    so when everything without a value counts against the verdict; else UNDECIDED. INVALID if planned episodes have not
    been judged. The intervals are for all candidates on this dimension together; another dimension is another question.
    """
    seen, low, high = (
        simultaneous_intervals([score_differences(task, filled) for task in evidence.tasks], confidence=spec.confidence)
        for filled in (None, (0.0, 1.0), (1.0, 0.0))
    )
    verdicts = []
    for place, arm in enumerate(evidence.arms[1:]):
        kind, reason = decide(seen[place], low[place], high[place], _ENDS)
        reasons: tuple[Reason, ...] = (reason,)
        if unfit := tuple(_unfit(evidence.arms[0], spec)) + tuple(_unfit(arm, spec)):
            kind, reasons = VerdictKind.INVALID, unfit
        verdicts.append(Verdict(candidate=arm.name, kind=kind, reasons=reasons, difference=seen[place]))
    return tuple(verdicts)


def _value(entry: Value | NoValue | None) -> float:
    return entry.normalised if isinstance(entry, Value) else float("nan")


def _invalid(cell: Cell) -> frozenset[str]:
    records = (stored.record for stored in cell.episodes)
    return frozenset(record.episode_key for record in records if record.outcome.kind is OutcomeKind.INVALID)


def _arm(cell: Cell, entries: Mapping[str, Value | NoValue | None]) -> JudgedArm:
    planned = [key for *_, key in cell.experiment.episode_keys(cell.variant)]
    invalid = _invalid(cell)
    said = [entries[key] for key in planned if key in entries and key not in invalid]
    values = [entry.normalised for entry in said if isinstance(entry, Value)]
    unscored = Counter(
        entry.reason if isinstance(entry, NoValue) else Unscored.MISSING
        for entry in said
        if not isinstance(entry, Value)
    )
    return JudgedArm(
        name=cell.variant.name,
        scored=len(values),
        unscored=dict(unscored),
        invalid=len(invalid),
        not_judged=len(planned) - len(said) - len(invalid),
        mean=float(np.mean(values)) if values else None,
    )


def _unfit(arm: JudgedArm, spec: GateSpec) -> Iterator[Reason]:
    planned = arm.scored + sum(arm.unscored.values()) + arm.invalid + arm.not_judged
    if arm.not_judged > spec.missing_share_max * planned:
        text = f"{arm.not_judged} of {planned} episodes of {arm.name!r} are not judged: run them, then geode judge"
        yield Reason(code=ReasonCode.EPISODES_MISSING, text=text)
    if arm.invalid > spec.invalid_share_max * planned:
        share = f"{arm.invalid} of {planned} episodes of {arm.name!r} are INVALID"
        text = f"{share}, more than {spec.invalid_share_max:.0%}: find out what failed around the agent"
        yield Reason(code=ReasonCode.INVALID_SHARE, text=text)
