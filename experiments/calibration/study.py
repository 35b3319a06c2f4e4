"""What is to be measured: sweeps of placebos, sweeps with real improvements among them, and sweeps without pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import geode
from experiments.calibration.placebos import PLACEBOS, refuse_what_counts
from experiments.calibration.sweeps import Arrangement, SweepJob
from experiments.calibration.weather import Weather
from experiments.job import ask
from experiments.overrides import quoted
from experiments.plan import enroll
from experiments.records import ExperimentRecord
from experiments.spec import VariantSpec, compose_spec
from experiments.suites.chosen import select_tasks
from experiments.suites.loader import load_suite
from geode.canonical import content_hash
from geode.llm.apprentice.faults import fault_table_hash, shipped_table

_PRESET = "hook_ablation"  # its tasks, its baseline, and those of its variants that truly are better
IMPROVEMENTS = ("require_test_run", "all_three")
_SHARE_OF_CONTROLS = 5  # one for every so many sweeps of placebos


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSpec:
    """What one command asks for. `tasks` of None are those of the preset."""

    sweeps: int
    placebos: int
    repeats: int
    tasks: tuple[str, ...] | None
    weather: Weather
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Sweeps of one kind. `experiment` is each of them but for its seed, which no two sweeps of any study share."""

    what: str
    experiment: ExperimentRecord
    improvements: tuple[str, ...]
    arrangement: Arrangement
    weather: Weather
    sweeps: int
    first_seed: int

    @property
    def name(self) -> str:
        """What its experiment is called."""
        return self.experiment.name

    @property
    def study_id(self) -> str:
        """Names all that an outcome of this study depends on, so that sweeps on record are taken for nothing else."""
        experiment = self.experiment
        return content_hash(
            {
                "ruler": experiment.ruler.model_dump(mode="json"),
                "variants": {one.name: [one.scaffold_id, one.roles] for one in experiment.variants},
                "repeats": experiment.repeats,
                "arrangement": self.arrangement.value,
                "weather": [self.weather.drift_sd, self.weather.heavy_tails],
                "first_seed": self.first_seed,
                "simulator": fault_table_hash(),
                "geode": geode.__version__,
            }
        )[:12]

    def jobs(self, done: set[int], scratch: Path) -> Iterator[SweepJob]:
        """Yield the sweeps that are not done yet."""
        for number in range(self.sweeps):
            if number not in done:
                ruler = self.experiment.ruler.model_copy(update={"seeds": (self.first_seed + number,)})
                yield SweepJob(
                    number=number,
                    experiment=self.experiment.model_copy(update={"ruler": ruler}),
                    arrangement=self.arrangement,
                    weather=self.weather,
                    scratch=scratch,
                )


def studies(spec: CalibrationSpec) -> tuple[Study, ...]:
    """Plan the studies of one command. Nothing runs, and every placebo is proved to be one.

    Raises:
        ConfigError: if the preset or a placebo does not compose.
        SuiteError: if a task is none of the suite's.
        NoPlacebo: if a placebo counts.
    """
    baseline = _compose("baseline", (), spec)
    placebos = [_compose(name, _placebo(text), spec) for name, text in list(PLACEBOS.items())[: spec.placebos]]
    for placebo in placebos:
        refuse_what_counts(placebo.name, placebo.spec.scaffold, baseline.spec.scaffold, shipped_table())
    better = [_compose(name, baseline.spec.variants[name], spec) for name in IMPROVEMENTS]
    controls = max(1, spec.sweeps // _SHARE_OF_CONTROLS)
    found = [
        _study("placebos", "nothing differs", spec, [baseline, *placebos], spec.sweeps),
        _study(
            "control",
            f"{' and '.join(IMPROVEMENTS)} are real improvements",
            spec,
            [baseline, *better, *placebos[: max(0, spec.placebos - len(better))]],
            controls,
            improvements=IMPROVEMENTS,
        ),
    ]
    if spec.weather != Weather():
        what = "nothing differs, but one variant runs after the other"
        found.append(
            _study("no_pairs", what, spec, [baseline, *placebos], controls, arrangement=Arrangement.ONE_AFTER_ANOTHER)
        )
    return tuple(found)


def _study(
    name: str,
    what: str,
    spec: CalibrationSpec,
    variants: Sequence[VariantSpec],
    sweeps: int,
    *,
    improvements: tuple[str, ...] = (),
    arrangement: Arrangement = Arrangement.INTERLEAVED,
) -> Study:
    first = variants[0].spec
    suite = select_tasks(load_suite(first.suite.name), first.suite.tasks)
    asked = replace(ask(variants, suite), name=name, question="How often does the gate err?")
    return Study(
        what=what,
        experiment=enroll(None, asked, created_at=datetime.now(UTC), geode_version=geode.__version__),
        improvements=improvements,
        arrangement=arrangement,
        weather=spec.weather,
        sweeps=sweeps,
        # No two studies share an episode, whatever their weather.
        first_seed=int(content_hash([spec.seed, name, spec.weather.drift_sd, spec.weather.heavy_tails])[:12], 16),
    )


def _compose(name: str, own: Sequence[str], spec: CalibrationSpec) -> VariantSpec:
    tasks = [f"suite.tasks=[{','.join(spec.tasks)}]"] if spec.tasks else []
    composed = compose_spec([f"experiment={_PRESET}", f"repeats={spec.repeats}", *tasks, *own])
    return VariantSpec(name=name, overrides=tuple(own), spec=composed)


def _placebo(text: str) -> tuple[str, ...]:
    return "+prompt.sources.placebo.kind=inline", f"+prompt.sources.placebo.text={quoted(text)}"
