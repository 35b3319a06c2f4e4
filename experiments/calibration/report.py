"""A calibration as a person reads it, as a program does, and as an exit code."""

from collections.abc import Iterator

from pydantic import JsonValue

from experiments.calibration.calibrate import Calibration, Measured
from experiments.calibration.sweeps import Arrangement
from experiments.calibration.tally import LARGE_GAIN, Count
from experiments.calibration.weather import Weather
from experiments.report import ExitCode

_WIDTH = 46


def exit_code(calibration: Calibration) -> ExitCode:
    """Tell whether the gate was caught: KEEP for placebos in so many sweeps that chance does not explain it."""
    if calibration.interrupted:
        return ExitCode.INTERRUPTED
    caught = any(_limit(found) < found.tally.some_keep.interval[0] for found in calibration.measured if _paired(found))
    return ExitCode.INVALID if caught else ExitCode.DONE


def as_text(calibration: Calibration) -> str:
    """Return the figures of each study, and what they show."""
    return "\n".join(_lines(calibration))


def as_json(calibration: Calibration) -> dict[str, JsonValue]:
    """Return the figures; an interval is [low, high], a count of no sweeps has a share of null."""
    spec = calibration.spec
    return {
        "schema": "geode.calibration_report/1",
        "seed": spec.seed,
        "repeats": spec.repeats,
        "drift_sd": spec.weather.drift_sd,
        "heavy_tails": spec.weather.heavy_tails,
        "interrupted": calibration.interrupted,
        "studies": {found.study.name: _study_as_json(found) for found in calibration.measured},
    }


def _study_as_json(found: Measured) -> dict[str, JsonValue]:
    study, seen = found.study, found.tally
    return {
        "what": study.what,
        "arrangement": study.arrangement.value,
        "variants": [variant.name for variant in study.experiment.variants],
        "tasks": [task.task_id for task in study.experiment.ruler.tasks],
        "limit": round(_limit(found), 6),
        "sweeps": found.sweeps,
        "asked": study.sweeps,
        "some_placebo": {
            "keep": _count_as_json(seen.some_keep),
            "reject": _count_as_json(seen.some_reject),
            "keep_or_reject": _count_as_json(seen.decided),
            "invalid": _count_as_json(seen.some_invalid),
            "above_baseline": _count_as_json(seen.naive),
            "large_gain": _count_as_json(seen.large_gain),
        },
        "improvement_kept": {name: _count_as_json(count) for name, count in seen.improvements.items()},
        "drift_reported": _count_as_json(seen.drift),
    }


def _count_as_json(count: Count) -> dict[str, JsonValue]:
    return {
        "count": count.count,
        "of": count.of,
        "share": count.share if count.of else None,
        "interval": list(count.interval),
    }


def _lines(calibration: Calibration) -> Iterator[str]:
    spec, first = calibration.spec, calibration.measured[0].study.experiment
    tasks = len(first.ruler.tasks)
    yield (
        f"{len(first.variants) - 1} placebos against a baseline on {tasks} tasks x {spec.repeats}, seed {spec.seed};"
        f" simulated/apprentice; gate {first.ruler.rule} at {first.ruler.confidence:.0%}"
    )
    yield f"weather: {_weather(spec.weather)}; [exact binomial 95 % interval]"
    for found in calibration.measured:
        yield ""
        partial = (
            f" ({found.sweeps} of {found.study.sweeps} sweeps: partial)" if found.sweeps < found.study.sweeps else ""
        )
        yield f"{found.study.name}: {found.study.what}{partial}"
        for what, count in _rows(found):
            yield f"  {what:{_WIDTH}} {count}  {count.count} of {count.of}"
        if _paired(found):
            yield f"  {_shown(found)}"
    if calibration.interrupted:
        yield "\ninterrupted: the same command goes on from here"


def _rows(found: Measured) -> Iterator[tuple[str, Count]]:
    seen = found.tally
    yield "some placebo called KEEP", seen.some_keep
    yield "some placebo called REJECT", seen.some_reject
    yield "some placebo called either", seen.decided
    yield "some placebo called INVALID", seen.some_invalid
    yield "naive: some placebo above the baseline", seen.naive
    yield f"naive: the best gains {100 * LARGE_GAIN:.0f} points or more", seen.large_gain
    for name, count in seen.improvements.items():
        yield f"{name}, truly better, called KEEP", count
    if _paired(found):
        yield "drift reported", seen.drift


def _shown(found: Measured) -> str:
    low, high = found.tally.some_keep.interval
    limit = _limit(found)
    if low > limit:
        return f"a placebo is called KEEP in more than {limit:.0%} of such sweeps: the gate errs"
    if high <= limit:
        return f"a placebo is called KEEP in at most {limit:.0%} of such sweeps: shown by these"
    return f"a placebo is called KEEP in at most {limit:.0%} of such sweeps: not refuted, and not shown by so few"


def _weather(weather: Weather) -> str:
    told = []
    if weather.drift_sd:
        told.append(f"all pass rates step down by {100 * weather.step:.0f} points half-way ({weather.drift_sd:g} sd)")
    if weather.heavy_tails:
        told.append("heavy-tailed bursts of failures and of INVALID episodes")
    return ", ".join(told) or "still"


def _limit(found: Measured) -> float:
    return 1 - found.study.experiment.ruler.confidence


def _paired(found: Measured) -> bool:
    return found.study.arrangement is Arrangement.INTERLEAVED
