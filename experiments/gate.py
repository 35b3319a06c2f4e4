"""The rule that reads paired evidence and answers KEEP, REJECT, UNDECIDED or INVALID, with its reasons.

`paired_fixed` decides once, after the sample that was fixed beforehand. Its intervals hold for all candidates together,
so that the chance of deciding anything when nothing differs stays below 1 - confidence for the whole experiment;
`benchmarks/error_rates.py` measures it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from experiments.overrides import nearest
from experiments.records import Ruler
from experiments.sinks import Cell
from experiments.stats import (
    FAMILIES_NEEDED,
    Floats,
    Interval,
    family_intervals,
    mean_differences,
    simultaneous_intervals,
)
from experiments.suite import OutcomeKind

RULE = "paired_fixed"


class EvidenceRefused(ValueError):  # noqa: N818  (named by what happened)
    """These cells cannot be compared at all."""


class VerdictKind(StrEnum):
    """What a gate answers. INVALID says that the evidence is not what the rule asks for, not that it is against."""

    KEEP = "KEEP"
    REJECT = "REJECT"
    UNDECIDED = "UNDECIDED"
    INVALID = "INVALID"


class ReasonCode(StrEnum):
    """Why. Programs read the code, people the text beside it."""

    BETTER = "better"
    WORSE = "worse"
    INTERVAL_HOLDS_ZERO = "interval_holds_zero"
    ALL_EQUAL = "all_equal"
    TOO_FEW_PAIRS = "too_few_pairs"
    SENSITIVE_TO_INVALID = "sensitive_to_invalid"
    INVALID_SHARE = "invalid_share"
    EPISODES_MISSING = "episodes_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason of a verdict."""

    code: ReasonCode
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The gate's answer for one candidate. `difference` is absent where it cannot be estimated with an error."""

    candidate: str
    kind: VerdictKind
    reasons: tuple[Reason, ...]
    difference: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """How strict the rule is. Shares are of one arm's planned episodes.

    A fixed sample that is looked at early is no fixed sample: by default nothing may be missing.
    """

    confidence: float = 0.95
    invalid_share_max: float = 0.05
    missing_share_max: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPairs:
    """The outcomes of one task: a row for each block, a column for each arm, the baseline first. None: not run."""

    task_id: str
    family: str
    outcomes: tuple[tuple[OutcomeKind | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedEvidence:
    """All that a gate may look at: outcomes on the same blocks."""

    baseline: str
    candidates: tuple[str, ...]
    tasks: tuple[TaskPairs, ...]

    def outcomes(self, arm: int) -> list[OutcomeKind | None]:
        """Return the outcomes of an arm: 0 is the baseline, then the candidates in order."""
        return [row[arm] for task in self.tasks for row in task.outcomes]


def paired_evidence(cells: Sequence[Cell], baseline: str) -> PairedEvidence:
    """Pair the episodes of `cells` by task, seed and repetition; what is planned and not there is None.

    Raises:
        EvidenceRefused: if the cells were measured with different rulers, if none of them is the baseline, or if a cell
            holds an episode that is not in its plan.
    """
    names = [cell.variant.name for cell in cells]
    if baseline not in names:
        raise EvidenceRefused(f"the baseline {baseline!r} is none of the variants{nearest(baseline, names)}")
    if len(rulers := {cell.experiment.ruler.ruler_id for cell in cells}) > 1:
        raise EvidenceRefused(f"measured with different rulers, {', '.join(sorted(rulers))}: run them under one")
    if len(experiments := {cell.experiment.name for cell in cells}) > 1:
        raise EvidenceRefused(f"{', '.join(sorted(experiments))} did not run side by side: their episodes are no pairs")
    ordered = sorted(cells, key=lambda cell: cell.variant.name != baseline)  # stable: the others keep their order
    arms = [_outcomes(cell) for cell in ordered]
    blocks = dict.fromkeys(block for arm in arms for block in arm)
    return PairedEvidence(
        baseline=baseline,
        candidates=tuple(cell.variant.name for cell in ordered[1:]),
        tasks=tuple(
            TaskPairs(
                task_id=task.task_id,
                family=task.family,
                outcomes=tuple(
                    tuple(arm.get(block) for arm in arms) for block in blocks if block.task_hash == task.task_hash
                ),
            )
            for task in ordered[0].experiment.ruler.tasks
        ),
    )


@dataclass(frozen=True, slots=True)
class _Block:
    task_hash: str
    seed: int
    repetition: int


def _outcomes(cell: Cell) -> dict[_Block, OutcomeKind | None]:
    found = {stored.record.episode_key: stored.record.outcome.kind for stored in cell.episodes}
    outcomes = {
        _Block(task.task_hash, seed, repetition): found.pop(key, None)
        for task, seed, repetition, key in cell.experiment.episode_keys(cell.variant)
    }
    if found:
        raise EvidenceRefused(
            f"{len(found)} episodes of {cell.variant.name!r} are not in its plan, the first is {min(found)[:12]}"
        )
    return outcomes


def gate_spec(ruler: Ruler) -> GateSpec:
    """Return the gate that a ruler names.

    Raises:
        EvidenceRefused: if this version does not know its rule.
    """
    if ruler.rule != RULE:
        raise EvidenceRefused(f"the ruler asks for the rule {ruler.rule!r}; this version knows {RULE!r}")
    return GateSpec(confidence=ruler.confidence)


def paired_fixed(evidence: PairedEvidence, spec: GateSpec) -> tuple[Verdict, ...]:
    """Judge every candidate against the baseline, which itself gets no verdict.

    KEEP if the whole simultaneous interval lies above zero, REJECT if below, and only if that stays so when every
    episode without a measurement counts against the verdict.
    """
    seen = differences(evidence)
    intervals = simultaneous_intervals(seen, confidence=spec.confidence)
    against_keep = against_reject = intervals
    if any(not _measured(kind) for arm in range(len(evidence.candidates) + 1) for kind in evidence.outcomes(arm)):
        fill_low, fill_high = differences(evidence, filled=(0.0, 1.0)), differences(evidence, filled=(1.0, 0.0))
        against_keep = simultaneous_intervals(fill_low, confidence=spec.confidence)
        against_reject = simultaneous_intervals(fill_high, confidence=spec.confidence)
    verdicts = []
    for place, candidate in enumerate(evidence.candidates):
        kind, reason = decide(intervals[place], against_keep[place], against_reject[place])
        if reason.code is ReasonCode.INTERVAL_HOLDS_ZERO and not any(np.nansum(abs(task[:, place])) for task in seen):
            reason = Reason(code=ReasonCode.ALL_EQUAL, text="every pair ended alike: nothing tells the two apart")
        reasons: tuple[Reason, ...] = (reason,)
        if unfit := tuple(_unfit(evidence, place + 1, spec)):
            kind, reasons = VerdictKind.INVALID, unfit
        verdicts.append(Verdict(candidate=candidate, kind=kind, reasons=reasons, difference=intervals[place]))
    return tuple(verdicts)


def promoted_by_point_estimate(evidence: PairedEvidence) -> tuple[str, ...]:
    """Return whom a comparison without error bars would have promoted: all above the baseline, the best first."""
    estimates = dict(zip(evidence.candidates, mean_differences(differences(evidence)).tolist(), strict=True))
    return tuple(sorted((name for name, value in estimates.items() if value > 0), key=lambda name: -estimates[name]))


class Beyond(StrEnum):
    """What the families say of tasks that were not measured. DOES_NOT: it is not shown, which is not: it is false."""

    GENERALISES = "generalises"
    DOES_NOT = "does not"
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generalisation:
    """The answer at family level for one candidate: a gain or a loss that families agree on generalises."""

    candidate: str
    kind: Beyond
    families: int
    families_better: int
    families_worse: int
    difference: Interval | None
    reason: str


def generalises(evidence: PairedEvidence, spec: GateSpec) -> tuple[Generalisation, ...]:
    """Test every candidate at family level, by the families' own spread, or say why it is not tested.

    A family is one observation, however many tasks it has. The intervals hold for all candidates together. As in
    `paired_fixed`, evidence that is unfit decides nothing, and what was not measured counts against the answer.
    """
    seen, fill_low, fill_high = (_family_means(evidence, filled) for filled in (None, (0.0, 1.0), (1.0, 0.0)))
    nothing: tuple[Interval | None, ...] = (None,) * len(evidence.candidates)
    intervals = against_keep = against_reject = nothing
    if len(seen) >= FAMILIES_NEEDED:
        intervals, against_keep, against_reject = (
            family_intervals(means, confidence=spec.confidence) for means in (seen, fill_low, fill_high)
        )
    found = []
    for place, candidate in enumerate(evidence.candidates):
        reason = _why_not_tested(evidence, seen, place, spec)
        kind = Beyond.NOT_TESTED
        if not reason:
            decided, why = decide(intervals[place], against_keep[place], against_reject[place])
            kind = Beyond.DOES_NOT if decided is VerdictKind.UNDECIDED else Beyond.GENERALISES
            reason = why.text
        found.append(
            Generalisation(
                candidate=candidate,
                kind=kind,
                families=len(seen),
                families_better=int((seen[:, place] > _ROUNDING).sum()),
                families_worse=int((seen[:, place] < -_ROUNDING).sum()),
                difference=intervals[place],
                reason=reason,
            )
        )
    return tuple(found)


_ROUNDING = 1e-9  # gains that cancel within a family leave some 1e-17 behind, which is no gain


def _family_means(evidence: PairedEvidence, filled: tuple[float, float] | None) -> Floats:
    """Return the mean over each family's tasks of the task's mean difference: a row a family, a column a candidate."""
    tasks = differences(evidence, filled)
    by_family: dict[str, list[Floats]] = {}
    for task, array in zip(evidence.tasks, tasks, strict=True):
        by_family.setdefault(task.family, []).append(array)
    return np.stack([mean_differences(arrays) for arrays in by_family.values()])


def _why_not_tested(evidence: PairedEvidence, means: Floats, place: int, spec: GateSpec) -> str:
    """Return why the families say nothing of a candidate; empty if they do."""
    if len(means) < FAMILIES_NEEDED:
        return f"{len(means)} families, {FAMILIES_NEEDED} needed"
    if unfit := next(_unfit(evidence, place + 1, spec), None):
        return unfit.text
    if np.isnan(means[:, place]).any():
        return "a task has no measured pair, and leaving out its family would choose the sample by its result"
    if np.ptp(means[:, place]) < _ROUNDING:
        return "all families differ by the same amount, which leaves no spread to judge by"
    return ""


def differences(evidence: PairedEvidence, filled: tuple[float, float] | None = None) -> list[Floats]:
    """Return candidate minus baseline: one array a task, a row a block, a column a candidate.

    What was not measured is NaN, or, if `filled` is given, its first value in a candidate, its second in the baseline.
    """
    arrays = []
    for task in evidence.tasks:
        shape = (len(task.outcomes), len(evidence.candidates) + 1)
        scores = np.array([[_SCORES.get(kind, np.nan) for kind in row] for row in task.outcomes]).reshape(shape)
        arrays.append(score_differences(scores, filled))
    return arrays


def score_differences(scores: Floats, filled: tuple[float, float] | None = None) -> Floats:
    """Return candidate minus baseline: a row a block, a column a candidate.

    Args:
        scores: a row a block, a column an arm, the baseline first; NaN where nothing was measured.
        filled: what stands for NaN in a candidate, and what in the baseline.
    """
    candidate_fill, baseline_fill = filled or (np.nan, np.nan)
    fill = np.array([baseline_fill] + [candidate_fill] * (scores.shape[1] - 1))
    complete = np.where(np.isnan(scores), fill, scores)
    return np.asarray(complete[:, 1:] - complete[:, :1])


_SCORES: dict[OutcomeKind | None, float] = {OutcomeKind.PASS: 1.0, OutcomeKind.FAIL: 0.0}


def _measured(kind: OutcomeKind | None) -> bool:
    return kind in _SCORES


def decide(
    seen: Interval | None,
    against_keep: Interval | None,
    against_reject: Interval | None,
    ends: tuple[str, str] = ("failures", "passes"),
) -> tuple[VerdictKind, Reason]:
    """Decide about one candidate by its interval, and by those in which what was not measured counts against it.

    `ends` are the words for the worst and the best that an episode can be.
    """
    if seen is None:
        text = "a task has fewer than two measured pairs, so that no error can be estimated: raise the repeats"
        return VerdictKind.UNDECIDED, Reason(code=ReasonCode.TOO_FEW_PAIRS, text=text)
    shown = f"[{100 * seen.low:+.1f}, {100 * seen.high:+.1f}] points"
    if seen.low > 0 and not (against_keep and against_keep.low > 0):
        return VerdictKind.UNDECIDED, _sensitive(f"better by {shown}", f"{ends[0]} here and {ends[1]} of the baseline")
    if seen.high < 0 and not (against_reject and against_reject.high < 0):
        return VerdictKind.UNDECIDED, _sensitive(f"worse by {shown}", f"{ends[1]} here and {ends[0]} of the baseline")
    if seen.low > 0:
        return VerdictKind.KEEP, Reason(code=ReasonCode.BETTER, text=f"the whole interval {shown} lies above zero")
    if seen.high < 0:
        return VerdictKind.REJECT, Reason(code=ReasonCode.WORSE, text=f"the whole interval {shown} lies below zero")
    text = f"the interval {shown} holds zero"
    return VerdictKind.UNDECIDED, Reason(code=ReasonCode.INTERVAL_HOLDS_ZERO, text=text)


def _sensitive(seen: str, imputed: str) -> Reason:
    text = f"{seen}, but not if the episodes that measured nothing were {imputed}"
    return Reason(code=ReasonCode.SENSITIVE_TO_INVALID, text=text)


def _unfit(evidence: PairedEvidence, arm: int, spec: GateSpec) -> Iterator[Reason]:
    """Yield why the evidence about one candidate is not what the rule asks for."""
    for place, name in ((0, evidence.baseline), (arm, evidence.candidates[arm - 1])):
        outcomes = evidence.outcomes(place)
        invalid, missing = outcomes.count(OutcomeKind.INVALID), outcomes.count(None)
        if missing > spec.missing_share_max * len(outcomes):
            text = f"{missing} of {len(outcomes)} episodes of {name!r} have not run: run the same command again"
            yield Reason(code=ReasonCode.EPISODES_MISSING, text=text)
        if invalid > spec.invalid_share_max * len(outcomes):
            share = f"{invalid} of {len(outcomes)} episodes of {name!r} are INVALID"
            text = f"{share}, more than {spec.invalid_share_max:.0%}: find out what failed around the agent"
            yield Reason(code=ReasonCode.INVALID_SHARE, text=text)
