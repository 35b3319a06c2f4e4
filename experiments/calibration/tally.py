"""What many sweeps say of the rule that judged them: counts, each with its exact binomial interval."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from experiments.calibration.sweeps import Sweep
from experiments.drift import find_drift
from experiments.gate import (
    GateSpec,
    PairedEvidence,
    Verdict,
    VerdictKind,
    differences,
    paired_fixed,
    promoted_by_point_estimate,
)
from experiments.stats import Floats, mean_differences

Rule = Callable[[PairedEvidence, GateSpec], tuple[Verdict, ...]]

LARGE_GAIN = 0.10
_CONFIDENCE = 0.95  # of the intervals of the counts; it has nothing to do with that of the gate
_ROUNDING = 1e-9
_SCORES = {"P": 1.0, "F": 0.0, "I": np.nan}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """In how many of how many sweeps."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """The count as a share; NaN of nothing."""
        return self.count / self.of if self.of else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Clopper and Pearson, Biometrika 26 (1934)."""
        if not self.of:
            return 0.0, 1.0  # nothing is known
        found = binomtest(self.count, self.of).proportion_ci(_CONFIDENCE)
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.share:6.1%} [{low:5.1%}, {high:6.1%}]" if self.of else "     -"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One sweep as it was judged. `naive` and `large_gain` are of placebos; no drift was looked for if it is None."""

    verdicts: dict[str, VerdictKind]
    naive: bool
    large_gain: bool
    drift: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of sweeps. The first six are about placebos, `improvements` about each candidate that truly is better."""

    some_keep: Count
    some_reject: Count
    decided: Count
    some_invalid: Count
    naive: Count
    large_gain: Count
    drift: Count
    improvements: dict[str, Count]


def judge(
    sweep: Sweep, *, improvements: Sequence[str], spec: GateSpec, rule: Rule = paired_fixed, drift: bool = True
) -> Judged:
    """Let `rule` judge a sweep, and beside it the rules that people use.

    Args:
        sweep: what was measured.
        improvements: candidates that are no placebos.
        spec: how strict the rule is; a drift is reported at the same confidence.
        rule: the gate.
        drift: whether to look for a drift; without pairs, blocks have no time of their own.
    """
    evidence = sweep.evidence()
    gains = dict(zip(evidence.candidates, mean_differences(differences(evidence)).tolist(), strict=True))
    promoted = promoted_by_point_estimate(evidence)
    placebos = [name for name in evidence.candidates if name not in improvements]
    return Judged(
        verdicts={verdict.candidate: verdict.kind for verdict in rule(evidence, spec)},
        naive=any(name in promoted for name in placebos),
        large_gain=any(gains[name] >= LARGE_GAIN - _ROUNDING for name in placebos),
        drift=_drifts(sweep, spec.confidence) if drift else None,
    )


def tally(judged: Iterable[Judged], improvements: Sequence[str]) -> Tally:
    """Count what happened in how many sweeps."""
    sweeps = list(judged)
    of_placebos = [{kind for name, kind in one.verdicts.items() if name not in improvements} for one in sweeps]

    def some(*kinds: VerdictKind) -> Count:
        return Count(count=sum(not seen.isdisjoint(kinds) for seen in of_placebos), of=len(sweeps))

    drifts = [one.drift for one in sweeps if one.drift is not None]
    return Tally(
        some_keep=some(VerdictKind.KEEP),
        some_reject=some(VerdictKind.REJECT),
        decided=some(VerdictKind.KEEP, VerdictKind.REJECT),
        some_invalid=some(VerdictKind.INVALID),
        naive=Count(count=sum(one.naive for one in sweeps), of=len(sweeps)),
        large_gain=Count(count=sum(one.large_gain for one in sweeps), of=len(sweeps)),
        drift=Count(count=sum(drifts), of=len(drifts)),
        improvements={
            name: Count(count=sum(one.verdicts[name] is VerdictKind.KEEP for one in sweeps), of=len(sweeps))
            for name in improvements
        },
    )


def _drifts(sweep: Sweep, confidence: float) -> bool:
    """Whether a drift is reported: of a block's mean residual, as `geode compare` looks for it."""
    residuals = [_residuals(task.blocks) for task in sweep.tasks]
    values, strata = [], []
    for task, block in sweep.order:
        of_block = residuals[task][block]
        if not np.isnan(of_block).all():
            values.append(float(np.nanmean(of_block)))
            strata.append(task)
    found = find_drift(np.array(values), np.array(strata, dtype=np.int64))
    return found is not None and found.p <= 1 - confidence


def _residuals(blocks: Sequence[str]) -> Floats:
    """Return each outcome minus the mean of its arm; NaN where nothing was measured."""
    scores = np.array([[_SCORES[letter] for letter in block] for block in blocks])
    measured = np.maximum(1, (~np.isnan(scores)).sum(axis=0))
    return np.asarray(scores - np.nansum(scores, axis=0) / measured)
