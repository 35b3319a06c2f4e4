"""How often the gate decides when nothing differs, and how often it sees a real gain: thousands of sweeps by outcome.

No episode is run here: outcomes are drawn at given pass rates. `geode gate calibrate` measures the same with real ones.
The limit for a sweep in which nothing differs is 1 - confidence = 5 %, whatever the number of candidates. Beside it
stands how often a comparison by point estimate promotes something in the same sweeps.

    python benchmarks/error_rates.py [--sweeps 4000]
"""

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from experiments.calibration.sweeps import Arrangement, Sweep, SweptTask
from experiments.calibration.tally import Rule, Tally, judge
from experiments.calibration.tally import tally as count
from experiments.calibration.weather import Sky, Weather, forecast
from experiments.gate import GateSpec, paired_fixed

Rates = Sequence[Sequence[float]]
"""Pass rates: one row an arm, the baseline first, one column a task."""

CANDIDATES = 6
MIXED = (0.0, 0.2, 0.5, 0.7, 0.9, 1.0)
APPRENTICE = (0.55, 0.57, 0.64, 0.62, 0.63, 0.63)
"""About what `simulated/apprentice` reaches on the six tasks of the demo, without a hook."""

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

PLACEBOS = 8
STILL, DRIFT, BURSTS = Weather(), Weather(drift_sd=1.0), Weather(heavy_tails=True)
BOTH = Weather(drift_sd=1.0, heavy_tails=True)
WEATHERS: dict[str, tuple[Weather, Arrangement]] = {
    "still": (STILL, Arrangement.INTERLEAVED),
    "drift of 1 sd": (DRIFT, Arrangement.INTERLEAVED),
    "heavy tails": (BURSTS, Arrangement.INTERLEAVED),
    "both": (BOTH, Arrangement.INTERLEAVED),
    "drift, no pairs": (DRIFT, Arrangement.ONE_AFTER_ANOTHER),
    "heavy tails, no pairs": (BURSTS, Arrangement.ONE_AFTER_ANOTHER),
    "both, no pairs": (BOTH, Arrangement.ONE_AFTER_ANOTHER),
}
"""name -> what befalls eight placebos, and whether they run side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Sweeps that are tallied together; candidates whose rates differ from the baseline's are none of the placebos."""

    rates: Rates
    repeats: int
    sweeps: int
    seed: int
    weather: Weather = STILL
    arrangement: Arrangement = Arrangement.INTERLEAVED
    first_is_better: bool = False
    look_for_drift: bool = False
    rule: Rule = paired_fixed

    def tally(self) -> Tally:
        """Draw the sweeps, and have each judged."""
        random = np.random.default_rng(self.seed)
        better = ("c1",) if self.first_is_better else ()
        sweeps = (self.draw(number, random) for number in range(self.sweeps))
        judged = (
            judge(sweep, improvements=better, spec=GateSpec(), rule=self.rule, drift=self.look_for_drift)
            for sweep in sweeps
        )
        return count(judged, better)

    def draw(self, number: int, random: np.random.Generator) -> Sweep:
        """Draw one sweep: outcomes by the rates, changed as the weather has it in the order in which they would run."""
        by_task = np.array(self.rates).T
        tasks, arms = by_task.shape
        blocks = random.permutation(tasks * self.repeats)  # in the order of time; block b is of task b // repeats
        letters = np.where(random.random((len(blocks), arms)) < by_task[blocks // self.repeats], "P", "F")
        if self.arrangement is Arrangement.INTERLEAVED:
            turn = random.permuted(np.tile(np.arange(arms), (len(blocks), 1)), axis=1)
            places = [(block, arm) for block, row in enumerate(turn.tolist()) for arm in row]
        else:
            places = [(block, arm) for arm in random.permutation(arms).tolist() for block in range(len(blocks))]
        for place, sky in zip(places, forecast(self.weather, len(places), random), strict=True):
            if sky is not Sky.CLEAR:
                letters[place] = {Sky.STRONG: "P", Sky.WEAK: "F", Sky.BROKEN: "I"}[sky]
        by_block = dict(zip(blocks.tolist(), map("".join, letters.tolist()), strict=True))
        return Sweep(
            number=number,
            arms=("baseline", *(f"c{candidate}" for candidate in range(1, arms))),
            tasks=tuple(
                SweptTask(
                    task_id=f"t{task}",
                    family=f"f{task}",
                    blocks=tuple(by_block[task * self.repeats + repeat] for repeat in range(self.repeats)),
                )
                for task in range(tasks)
            ),
            order=tuple(divmod(block, self.repeats) for block in blocks.tolist()),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=400, help="simulated sweeps for each line")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        _show(pool, asked.sweeps, asked.seed)


def _show(pool: ProcessPoolExecutor, sweeps: int, seed: int) -> None:
    nulls, gains, weathers = {}, {}, {}
    for repeats in (30, 5):
        for name, (baseline, candidate) in NULLS.items():
            line = Line(rates=[baseline, *[candidate] * CANDIDATES], repeats=repeats, sweeps=sweeps, seed=seed)
            nulls[name, repeats] = pool.submit(line.tally)
        for name, (baseline, better) in GAINS.items():
            rates = [baseline, better, *[baseline] * (CANDIDATES - 1)]
            line = Line(rates=rates, repeats=repeats, sweeps=sweeps, seed=seed, first_is_better=True)
            gains[name, repeats] = pool.submit(line.tally)
    for name, (weather, arrangement) in WEATHERS.items():
        line = Line(
            rates=[APPRENTICE] * (PLACEBOS + 1),
            repeats=10,
            sweeps=sweeps,
            seed=seed,
            weather=weather,
            arrangement=arrangement,
            look_for_drift=arrangement is Arrangement.INTERLEAVED,
        )
        weathers[name] = pool.submit(line.tally)
    print(f"{sweeps} sweeps a line, 6 tasks, confidence 95 %; [exact binomial 95 % interval]")
    print(f"\n{CANDIDATES} candidates, nothing differs", _HEADINGS)
    for (name, repeats), future in nulls.items():
        _print(name, repeats, future.result())
    print(f"\n{CANDIDATES} candidates, the first is better     KEEP")
    for (name, repeats), future in gains.items():
        print(f"{name:24} x {repeats:2}  {future.result().improvements['c1']}", flush=True)
    print(f"\n{PLACEBOS} placebos in all weathers   ", _HEADINGS)
    for name, future in weathers.items():
        _print(name, 10, future.result())


_HEADINGS = "  some KEEP               KEEP or REJECT          INVALID   above   gain 10   drift reported"
"""Above: the rule that promotes what lies above the baseline; gain 10: it lies ten points above, or more."""


def _print(name: str, repeats: int, found: Tally) -> None:
    drift = str(found.drift) if found.drift.of else ""
    shares = f"{found.some_invalid.share:6.1%}  {found.naive.share:6.1%}  {found.large_gain.share:6.1%}"
    print(f"{name:24} x {repeats:2}  {found.some_keep}  {found.decided}  {shares}   {drift}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
