"""How often the gate decides when nothing differs, and how often it sees a real gain.

The limit for a null sweep is 1 - confidence = 5 %, for the whole sweep of six candidates. Beside it stands how often a
comparison by point estimate promotes something in the same sweeps.

    python benchmarks/error_rates.py [--sweeps 4000]
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from experiments.gate import GateSpec, PairedEvidence, TaskPairs, VerdictKind, paired_fixed, promoted_by_point_estimate
from experiments.suite import OutcomeKind

CANDIDATES = 6
MIXED = (0.0, 0.2, 0.5, 0.7, 0.9, 1.0)

NULLS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "rates 0 to 1": (MIXED, MIXED),
    "all at 0.5": ([0.5] * 6, [0.5] * 6),
    "all at 0.95": ([0.95] * 6, [0.95] * 6),
    "one task informs": ((0, 0, 0, 1, 1, 0.5), (0, 0, 0, 1, 1, 0.5)),
    "gains cancel losses": ((0.5, 0.5, 0.3, 0.7, 0.5, 0.5), (0.8, 0.2, 0.6, 0.4, 0.8, 0.2)),
}
"""name -> (pass rates of the baseline, of every candidate), a rate a task; the means are equal."""

GAINS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "rates 0 to 1, +10": (MIXED, (0.1, 0.35, 0.65, 0.8, 1.0, 1.0)),
    "all at 0.5, +10": ([0.5] * 6, [0.6] * 6),
    "all at 0.85, +10": ([0.85] * 6, [0.95] * 6),
    "all at 0.5, +20": ([0.5] * 6, [0.7] * 6),
}
"""name -> (pass rates of the baseline and of five candidates, of the first candidate)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sweeps, and in how many of them what happened. `kept_first` counts the first candidate alone."""

    sweeps: int
    decided: int
    kept: int
    kept_first: int
    naive: int


def tally(rates: Sequence[Sequence[float]], *, repeats: int, sweeps: int, seed: int) -> Tally:
    """Simulate sweeps whose arms (baseline first) pass with `rates`, and judge each with the real gate."""
    random = np.random.default_rng(seed)
    decided = kept = kept_first = naive = 0
    for _ in range(sweeps):
        evidence = _draw(rates, repeats, random)
        kinds = [verdict.kind for verdict in paired_fixed(evidence, GateSpec())]
        decided += any(kind is not VerdictKind.UNDECIDED for kind in kinds)
        kept += VerdictKind.KEEP in kinds
        kept_first += kinds[0] is VerdictKind.KEEP
        naive += bool(promoted_by_point_estimate(evidence))
    return Tally(sweeps=sweeps, decided=decided, kept=kept, kept_first=kept_first, naive=naive)


def _draw(rates: Sequence[Sequence[float]], repeats: int, random: np.random.Generator) -> PairedEvidence:
    by_task = np.array(rates).T
    passes = random.random((len(by_task), repeats, len(rates))) < by_task[:, None, :]
    return PairedEvidence(
        baseline="baseline",
        candidates=tuple(f"c{number}" for number in range(1, len(rates))),
        tasks=tuple(
            TaskPairs(
                task_id=f"t{number}",
                family=f"f{number}",
                outcomes=tuple(tuple(OutcomeKind.PASS if cell else OutcomeKind.FAIL for cell in row) for row in task),
            )
            for number, task in enumerate(passes.tolist())
        ),
    )


def _shown(count: int, sweeps: int) -> str:
    interval = binomtest(count, sweeps).proportion_ci(0.95)
    return f"{count / sweeps:6.1%} [{interval.low:5.1%}, {interval.high:5.1%}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=400, help="simulated sweeps for each line")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(
        f"{asked.sweeps} sweeps a line, {CANDIDATES} candidates, 6 tasks, confidence 95 %; [95 % binomial interval]\n"
    )
    print(f"{'nothing differs':22} repeats  {'decides anything':22} {'keeps anything':22} naive promotes something")
    for name, (baseline, candidate) in NULLS.items():
        for repeats in (30, 5):
            found = tally([baseline, *[candidate] * CANDIDATES], repeats=repeats, sweeps=asked.sweeps, seed=asked.seed)
            shown = [_shown(count, found.sweeps) for count in (found.decided, found.kept, found.naive)]
            print(f"{name:22} {repeats:7}  {'  '.join(shown)}", flush=True)
    print(f"\n{'one candidate is better':22} repeats  kept")
    for name, (baseline, better) in GAINS.items():
        for repeats in (30, 5):
            arms = [baseline, better, *[baseline] * (CANDIDATES - 1)]
            found = tally(arms, repeats=repeats, sweeps=asked.sweeps, seed=asked.seed)
            print(f"{name:22} {repeats:7}  {_shown(found.kept_first, found.sweeps)}", flush=True)


if __name__ == "__main__":
    main()
