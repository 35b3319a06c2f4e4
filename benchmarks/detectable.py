"""Whether the smallest detectable difference of a plan is one: how often the real gate keeps a candidate that has it.

For each design the difference is computed as `geode sweep --plan` does, then sweeps are drawn in which one candidate
has it and the others nothing, and judged by `paired_fixed` or `generalises`. The target is 80 %.

    python benchmarks/detectable.py [--sweeps 2000]
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from experiments.gate import Beyond, GateSpec, PairedEvidence, TaskPairs, VerdictKind, generalises, paired_fixed
from experiments.power import Design, TaskOdds, smallest_difference, smallest_general_difference
from experiments.suite import OutcomeKind

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A design, and what is tested on it: these tasks, or, if `spread` is given, what lies beyond them."""

    design: Design
    spread: float | None = None

    @property
    def difference(self) -> float | None:
        """The smallest that is said to be detectable."""
        if self.spread is None:
            return smallest_difference(self.design)
        return smallest_general_difference(self.design, self.spread)


def _case(
    rates: Sequence[float],
    *,
    pairs: int,
    candidates: int,
    discordant: float | None = None,
    tasks_of_a_family: int = 2,
    spread: float | None = None,
) -> Case:
    tasks = tuple(
        TaskOdds(family=f"f{number // tasks_of_a_family}", rate=rate, discordant=discordant)
        for number, rate in enumerate(rates)
    )
    return Case(design=Design(tasks=tasks, pairs=pairs, candidates=candidates, confidence=CONFIDENCE), spread=spread)


MIXED = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)

DESIGNS: dict[str, Case] = {
    "6 x 30, 6 candidates, rate 0.5": _case([0.5] * 6, pairs=30, candidates=6),
    "6 x 5, 6 candidates, rate 0.5": _case([0.5] * 6, pairs=5, candidates=6),
    "6 x 30, 6 candidates, rates 0.1 to 0.9": _case(MIXED, pairs=30, candidates=6),
    "6 x 10, 8 candidates, rate 0.3": _case([0.3] * 6, pairs=10, candidates=8),
    "6 x 30, 6 candidates, 20 % of pairs differ": _case([0.5] * 6, pairs=30, candidates=6, discordant=0.2),
    "22 x 10, 1 candidate, rate 0.6": _case([0.6] * 22, pairs=10, candidates=1),
    "22 x 5, 3 candidates, rate 0.8": _case([0.8] * 22, pairs=5, candidates=3),
    "1 x 30, 1 candidate, rate 0.5": _case([0.5], pairs=30, candidates=1),
    "11 families, 22 x 10, 1 candidate, no spread": _case([0.6] * 22, pairs=10, candidates=1, spread=0.0),
    "11 families, 22 x 10, 4 candidates, spread 10": _case([0.5] * 22, pairs=10, candidates=4, spread=0.1),
}


def kept_share(case: Case, *, sweeps: int, seed: int) -> float:
    """Return how often the real gate keeps a candidate that has the smallest detectable difference."""
    difference = case.difference
    if difference is None:
        raise ValueError("this design detects nothing")
    random = np.random.default_rng(seed)
    return sum(_kept(case, _drawn(case, difference, random)) for _ in range(sweeps)) / sweeps


def _kept(case: Case, evidence: PairedEvidence) -> bool:
    spec = GateSpec(confidence=case.design.confidence)
    if case.spread is None:
        return paired_fixed(evidence, spec)[0].kind is VerdictKind.KEEP
    answer = generalises(evidence, spec)[0]
    return answer.kind is Beyond.GENERALISES and answer.difference is not None and answer.difference.low > 0


def _drawn(case: Case, difference: float, random: np.random.Generator) -> PairedEvidence:
    """Draw a sweep: the first candidate has the difference, all others pass exactly as often as the baseline."""
    design = case.design
    offsets = {family: random.normal(0, case.spread or 0) for family in design.families}
    tasks = []
    for number, (task, gain) in enumerate(zip(design.tasks, _gains(design, difference), strict=True)):
        gains = [gain + offsets[task.family], *[0.0] * (design.candidates - 1)]
        base = random.random(design.pairs) < task.rate
        arms = [base, *(_candidate(base, task, gain, random) for gain in gains)]
        tasks.append(
            TaskPairs(
                task_id=f"t{number}",
                family=task.family,
                outcomes=tuple(
                    tuple(OutcomeKind.PASS if passed else OutcomeKind.FAIL for passed in row)
                    for row in zip(*arms, strict=True)
                ),
            )
        )
    names = tuple(f"c{number}" for number in range(design.candidates))
    return PairedEvidence(baseline="baseline", candidates=names, tasks=tuple(tasks))


def _gains(design: Design, difference: float) -> list[float]:
    """Give every task the same gain, but none more than it has room for, so that their mean is `difference`."""
    room = np.array([1 - task.rate for task in design.tasks])
    common = difference
    for _ in range(200):
        common += difference - float(np.minimum(common, room).mean())
    return [float(gain) for gain in np.minimum(common, room)]


def _candidate(base: np.ndarray, task: TaskOdds, gain: float, random: np.random.Generator) -> np.ndarray:
    """Draw a candidate's outcomes beside the baseline's: independent, or with the share of pairs that ends apart."""
    rate = min(1.0, max(0.0, task.rate + gain))
    if task.discordant is None:
        return random.random(len(base)) < rate
    apart = max(task.discordant, abs(rate - task.rate))
    if_passed = 1 - (apart - rate + task.rate) / 2 / task.rate
    if_failed = (apart + rate - task.rate) / 2 / (1 - task.rate)
    return random.random(len(base)) < np.where(base, if_passed, if_failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=400, help="for each design")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(
        f"{asked.sweeps} sweeps a design, confidence {CONFIDENCE:.0%}; [95 % binomial interval]; the target is 80 %\n"
    )
    print(f"{'design':48} smallest difference  kept")
    for name, case in DESIGNS.items():
        share = kept_share(case, sweeps=asked.sweeps, seed=asked.seed)
        interval = binomtest(round(share * asked.sweeps), asked.sweeps).proportion_ci(0.95)
        points = 100 * (case.difference or 0.0)
        print(f"{name:48} {points:12.1f} points  {share:6.1%} [{interval.low:5.1%}, {interval.high:5.1%}]", flush=True)


if __name__ == "__main__":
    main()
