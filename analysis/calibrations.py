"""A judge held against what is known of episodes: its calibration, and the thresholds that were fitted for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.labels import read_labels
from analysis.on_record import OnRecord
from geode.clock import Clock
from judges.calibration import Calibration, NoProbabilities, calibrate
from judges.forecasts import Forecasts, forecasts
from judges.reliability_plot import draw_reliability
from judges.resampling import Resampling
from judges.rubric import Dimension, Rubric
from judges.thresholds import (
    NoThreshold,
    Threshold,
    ThresholdRefused,
    fit,
    hold_against,
    read_threshold,
    threshold_path,
    write_threshold,
)

OUTCOMES = "outcomes"


class CalibrationRefused(ValueError):  # noqa: N818  (named by what happened)
    """There is nothing to hold the judge against, or nothing to draw. The text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One dimension. `calibration` and `threshold` are None where `no_calibration` and `no_threshold` say why.

    `counted_good` is how many of the forecasts the threshold lets count as good. `refused` says that one is stored, and
    was fitted for another judge.
    """

    forecasts: Forecasts
    calibration: Calibration | None
    no_calibration: str
    threshold: Threshold | None
    no_threshold: str
    refused: bool
    counted_good: int


def measure(
    record: OnRecord,
    rubric: Rubric,
    dimensions: Sequence[Dimension],
    *,
    against: str,
    good_from: float,
    how: Resampling,
    thresholds: Path,
    fitted_at: Clock | None,
) -> tuple[Measured, ...]:
    """Hold the one judge on record against the truth, on each dimension on which both have said something.

    Args:
        record: with one judge.
        rubric: of its judgments.
        dimensions: which of the rubric's are meant.
        against: `outcomes`, or the path of a file of labels.
        good_from: from which normalised value on a value, or a label, is good.
        how: confidence, draws and seed of the intervals.
        thresholds: the folder in which thresholds are stored.
        fitted_at: given, thresholds are fitted and stored.

    Raises:
        CalibrationRefused: if no episode has both a value and a truth.
        LabelsError: if the labels cannot be used.
        ValueError: if the judge gave an answer twice for one repetition.
    """
    (judge,) = record.judges
    truths = _truths(record, rubric, against, good_from)
    called = "outcomes of verifiers" if against == OUTCOMES else Path(against).name
    all_found = [
        forecasts(judge, of, truths[of.name], record.families, against=called, good_from=good_from) for of in dimensions
    ]
    engine = judge.name.partition("@")[0]
    measured = [
        _measure(found, rubric, how, engine=engine, thresholds=thresholds, fitted_at=fitted_at)
        for found in all_found
        if found.forecasts
    ]
    if not measured:
        known = len({episode for of in truths.values() for episode in of})
        raise CalibrationRefused(
            f"no episode has both a value of {judge.name} and a truth: {len(judge.judgments)} judgments,"
            f" {known} episodes in {called}; --against FILE takes labels that people gave"
        )
    return tuple(measured)


def draw(measured: Sequence[Measured], path: Path) -> None:
    """Draw the reliability diagram of the one dimension that has a calibration.

    Raises:
        CalibrationRefused: if none has, or several have.
        ValueError: if `path` is no name of a picture.
    """
    found = [of.calibration for of in measured if of.calibration is not None]
    if not found:
        raise CalibrationRefused("; ".join(of.no_calibration for of in measured))
    if len(found) > 1:
        names = ", ".join(of.forecasts.dimension for of in found)
        raise CalibrationRefused(f"a picture shows one dimension, and there are {names}: name one with --dimension")
    draw_reliability(found[0], path)


def _truths(record: OnRecord, rubric: Rubric, against: str, good_from: float) -> Mapping[str, Mapping[str, bool]]:
    if against == OUTCOMES:
        return {dimension.name: record.outcomes for dimension in rubric.dimensions}
    labels = read_labels(Path(against).expanduser(), rubric)
    return {name: {episode: value >= good_from for episode, value in given.items()} for name, given in labels.items()}


def _measure(
    found: Forecasts, rubric: Rubric, how: Resampling, *, engine: str, thresholds: Path, fitted_at: Clock | None
) -> Measured:
    calibration, no_calibration = None, ""
    try:
        calibration = calibrate(found, how)
    except NoProbabilities as error:
        no_calibration = str(error)
    path = threshold_path(thresholds, engine=engine, rubric=rubric.name, dimension=found.dimension)
    threshold, no_threshold, refused = None, "", False
    try:
        if fitted_at is not None:
            fitted = fit(found, engine=engine, rubric_id=rubric.rubric_id, how=how, clock=fitted_at)
            write_threshold(path, fitted)
        threshold = _held(read_threshold(path), found)
    except ThresholdRefused as error:
        no_threshold, refused = str(error), True
    except NoThreshold as error:
        no_threshold = str(error)
    return Measured(
        forecasts=found,
        calibration=calibration,
        no_calibration=no_calibration,
        threshold=threshold,
        no_threshold=no_threshold,
        refused=refused,
        counted_good=sum(each.expected >= threshold.threshold for each in found.forecasts) if threshold else 0,
    )


def _held(threshold: Threshold, found: Forecasts) -> Threshold:
    """Return the threshold if it holds for whoever gave the forecasts; one of several models is another one, too."""
    hold_against(threshold, served_model=", ".join(found.served_models), question_set=", ".join(found.question_sets))
    if threshold.basis is not found.basis:
        raise NoThreshold(f"the stored threshold is on {threshold.basis}, and these answers give {found.basis}")
    return threshold
