"""Error rates are measured, not promised: a sweep of placebos keeps one in at most 5 %, in bad weather too.

Here scaled down. `make calibrate` runs the whole: 200 sweeps of real episodes in still and in bad weather, thousands
by outcome. LOG.md has the figures.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import binom

from benchmarks.error_rates import APPRENTICE, BOTH, STILL, Line
from experiments.calibration.sweeps import Arrangement
from experiments.calibration.tally import Rule, Tally
from experiments.calibration.weather import Weather
from experiments.gate import (
    GateSpec,
    PairedEvidence,
    TaskPairs,
    Verdict,
    VerdictKind,
    paired_fixed,
    promoted_by_point_estimate,
)
from tests.done.command import geode

SWEEPS = 100
MARGIN = int(binom.ppf(0.999, SWEEPS, 0.05))
"""At a true rate of 5 % more sweeps than this happen with a probability below 0.1 %."""

PLACEBOS = [APPRENTICE] * 9


def line(rule: Rule = paired_fixed, weather: Weather = STILL, **more: Arrangement) -> Tally:
    """Sweeps of eight placebos on six tasks x 10, by outcome."""
    return Line(
        rates=PLACEBOS, repeats=10, sweeps=SWEEPS, seed=5, weather=weather, rule=rule, look_for_drift=not more, **more
    ).tally()


def is_held(found: Tally) -> bool:
    return found.some_keep.count <= MARGIN and found.decided.count <= MARGIN


@pytest.mark.slow
@pytest.mark.parametrize("weather", [STILL, BOTH])
def test_a_sweep_of_placebos_rarely_decides_anything(weather: Weather) -> None:
    """Drift and bursts hit all arms of a block alike, and the drift is reported. Point estimates promote anyway."""
    found = line(weather=weather)
    assert is_held(found)
    assert found.naive.count >= 70
    assert found.large_gain.count >= 15
    reported = found.drift.count
    assert reported >= 95 if weather.drift_sd else reported <= MARGIN


@pytest.mark.slow
def test_without_pairs_the_same_weather_decides_nearly_every_sweep() -> None:
    """So the weather bites, and it is the interleaving that keeps it out."""
    found = line(weather=BOTH, arrangement=Arrangement.ONE_AFTER_ANOTHER)
    assert found.decided.count >= 90
    assert found.some_keep.count >= 30


@pytest.mark.slow
def test_what_truly_helps_is_kept() -> None:
    """A gate that never says KEEP would pass every test above. All three hooks together are worth 33 points."""
    better = [min(1.0, rate + 0.33) for rate in APPRENTICE]
    rates = [APPRENTICE, better, *[APPRENTICE] * 7]
    found = Line(rates=rates, repeats=10, sweeps=40, seed=6, first_is_better=True).tally()
    assert found.improvements["c1"].count >= 30


def one_by_one(evidence: PairedEvidence, spec: GateSpec) -> tuple[Verdict, ...]:
    """The gate without simultaneity: each candidate is judged as if it were the only one."""
    verdicts = []
    for place, candidate in enumerate(evidence.candidates, start=1):
        tasks = tuple(
            TaskPairs(
                task_id=task.task_id, family=task.family, outcomes=tuple((row[0], row[place]) for row in task.outcomes)
            )
            for task in evidence.tasks
        )
        alone = PairedEvidence(baseline=evidence.baseline, candidates=(candidate,), tasks=tasks)
        verdicts += paired_fixed(alone, spec)
    return tuple(verdicts)


def by_point_estimate(evidence: PairedEvidence, spec: GateSpec) -> tuple[Verdict, ...]:
    """No gate at all: whatever lies above the baseline is kept."""
    del spec
    kept = promoted_by_point_estimate(evidence)
    return tuple(
        Verdict(
            candidate=name,
            kind=VerdictKind.KEEP if name in kept else VerdictKind.UNDECIDED,
            reasons=(),
            difference=None,
        )
        for name in evidence.candidates
    )


@pytest.mark.slow
@pytest.mark.parametrize("rule", [one_by_one, by_point_estimate])
def test_a_gate_that_errs_is_caught(rule: Callable[[PairedEvidence, GateSpec], tuple[Verdict, ...]]) -> None:
    """By the very measurement that the shipped rule passes."""
    assert not is_held(line(rule))


@pytest.mark.slow
def test_real_sweeps_are_measured_by_one_command(tmp_path: Path) -> None:
    """Every sweep by seeds of its own, through the production loop; nothing of them stays but outcomes."""
    asked = ("--sweeps", "4", "--repeats", "2", "--tasks", "config_port,csv_totals", "--drift", "1", "--heavy-tails")
    here = ("--workers", "1", "--root", str(tmp_path / "root"))
    ran = geode(tmp_path, "gate", "calibrate", *asked, "--json", *here)
    assert ran.code == 0, ran.err
    studies = ran.json["studies"]
    assert isinstance(studies, dict)
    assert {name: study["sweeps"] for name, study in studies.items()} == {"placebos": 4, "control": 1, "no_pairs": 1}
    assert len(studies["placebos"]["variants"]) == 9
    assert studies["placebos"]["some_placebo"]["keep"]["count"] == 0
    assert studies["placebos"]["some_placebo"]["above_baseline"]["count"] >= 1
    assert {path.suffix for path in (tmp_path / "root" / "calibrations").iterdir()} == {"", ".jsonl"}
    assert not (tmp_path / "root" / "episodes").exists()
