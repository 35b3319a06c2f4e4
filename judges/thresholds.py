"""Thresholds: from which answer on a judge's episode counts as good, fitted on labelled ones and bound to the judge.

What was fitted for one served model and one set of questions says nothing of another, and is refused there. Without a
threshold there are only numbers.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sklearn.metrics import balanced_accuracy_score, roc_curve
from sklearn.model_selection import GroupKFold

from geode.clock import Clock, rfc3339
from geode.records.folder import write_atomically
from judges.forecasts import Basis, Forecasts, expected_good
from judges.judgment import Judgment, Value
from judges.resampling import Estimate, Figure, Floats, NotEstimated, Resampling, Rows, estimate
from judges.rubric import Dimension

_FOLDS = 5

Bools = NDArray[np.bool_]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Threshold(BaseModel):
    """A fitted threshold: what is expected at least `threshold` counts as good.

    It holds for `engine` as `served_model` answers `question_set`. `accuracy` is the balanced accuracy on families that
    were held out of the fit, with its interval; None if it could not be estimated, and `no_accuracy` says why.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["geode.threshold/1"] = Field(default="geode.threshold/1", alias="schema")
    engine: str
    served_model: str
    question_set: str
    rubric_id: str
    dimension: str
    basis: Basis
    good_from: Share
    threshold: Share
    against: str
    episodes: int
    families: int
    accuracy: Share | None = None
    accuracy_low: Share | None = None
    accuracy_high: Share | None = None
    no_accuracy: str = ""
    at: str = ""


class NoThreshold(ValueError):  # noqa: N818  (named by what is missing)
    """No threshold can be fitted, or none is stored. The text says why."""


class Changed(StrEnum):
    """What a threshold is bound to."""

    SERVED_MODEL = "served model"
    QUESTION_SET = "question set"


class ThresholdRefused(ValueError):  # noqa: N818  (named by what happened)
    """A threshold was fitted for another judge. `changed` says what differs."""

    def __init__(self, changed: tuple[Changed, ...], text: str) -> None:
        super().__init__(text)
        self.changed = changed


def fit(found: Forecasts, *, engine: str, rubric_id: str, how: Resampling, clock: Clock) -> Threshold:
    """Fit the threshold with the largest balanced accuracy, and measure it on families that the fit did not see.

    The figure comes from five-fold cross-validation by family: each fold's episodes are judged by the threshold of the
    others. The stored threshold is fitted on all.

    Raises:
        NoThreshold: if the labels are all alike, the answers do not tell them apart, or several models or sets of
            questions gave them.
    """
    expected = np.array([forecast.expected for forecast in found.forecasts], dtype=np.float64)
    good = np.array([forecast.good for forecast in found.forecasts], dtype=bool)
    if len(set(good.tolist())) < 2:
        raise NoThreshold(f"{len(good)} labelled episodes are not of both kinds: a threshold needs good and bad ones")
    if len(found.question_sets) > 1 or len(found.served_models) > 1:
        several = " and ".join((*found.served_models, *found.question_sets))
        raise NoThreshold(f"the answers come from several judges, {several}: name one of them")
    best = _best(expected, good)
    if best is None:
        raise NoThreshold(f"no threshold on {found.dimension!r} is better than chance for {len(good)} episodes")
    accuracy = _held_out(found, expected, good, how)
    known = accuracy if isinstance(accuracy, Estimate) else None
    return Threshold(
        engine=engine,
        served_model="".join(found.served_models),
        question_set="".join(found.question_sets),
        rubric_id=rubric_id,
        dimension=found.dimension,
        basis=found.basis,
        good_from=found.good_from,
        threshold=best,
        against=found.against,
        episodes=len(good),
        families=len({forecast.family for forecast in found.forecasts}),
        accuracy=known.value if known else None,
        accuracy_low=known.interval.low if known and known.interval else None,
        accuracy_high=known.interval.high if known and known.interval else None,
        no_accuracy=accuracy.reason if isinstance(accuracy, NotEstimated) else accuracy.no_interval,
        at=rfc3339(clock.now()),
    )


def _best(expected: Floats, good: Bools) -> float | None:
    """Return the threshold in the middle between the two answers that it parts; None if none is better than chance."""
    false_good, true_good, steps = roc_curve(good, expected, drop_intermediate=False)
    gain = true_good - false_good
    place = int(np.argmax(gain))
    if gain[place] <= 0:
        return None
    below = expected[expected < steps[place]]
    return float((steps[place] + below.max()) / 2)


def _held_out(found: Forecasts, expected: Floats, good: Bools, how: Resampling) -> Figure:
    families = [forecast.family for forecast in found.forecasts]
    if len(set(families)) < 2:
        return NotEstimated(reason="one family, so that none can be held out")
    said = np.zeros(len(good), dtype=bool)
    folds = GroupKFold(n_splits=min(_FOLDS, len(set(families))))
    for seen, unseen in folds.split(expected, good, groups=families):
        if len(set(good[seen].tolist())) < 2:
            return NotEstimated(reason="without one fifth of the families the labels are all alike")
        best = _best(expected[seen], good[seen])
        said[unseen] = False if best is None else expected[unseen] >= best

    def accuracy(rows: Rows) -> float:
        if len(set(good[rows].tolist())) < 2:
            return float("nan")
        return float(balanced_accuracy_score(good[rows], said[rows]))

    return estimate(accuracy, families, how, undefined="")


def counts_as_good(threshold: Threshold, dimension: Dimension, judgment: Judgment) -> bool | None:
    """Return whether a judgment counts as good; None if it has no value, or not what the threshold was fitted on.

    Raises:
        ThresholdRefused: if another model answered, or other questions.
    """
    hold_against(threshold, served_model=judgment.served_model, question_set=judgment.question_set)
    entry = judgment.dimensions.get(dimension.name)
    if not isinstance(entry, Value):
        return None
    expected = expected_good(dimension, entry, threshold.basis, threshold.good_from)
    return None if expected is None else expected >= threshold.threshold


def hold_against(threshold: Threshold, *, served_model: str, question_set: str) -> None:
    """Check that a threshold was fitted for this judge.

    Raises:
        ThresholdRefused: if it was not; it says which of the two changed.
    """
    pairs = (
        (Changed.SERVED_MODEL, threshold.served_model, served_model),
        (Changed.QUESTION_SET, threshold.question_set, question_set),
    )
    differing = [(what, fitted, given) for what, fitted, given in pairs if fitted != given]
    if differing:
        told = ", ".join(f"the {what} is {given!r}, it was fitted for {fitted!r}" for what, fitted, given in differing)
        raise ThresholdRefused(
            tuple(what for what, _, _ in differing),
            f"the threshold of {threshold.engine} on {threshold.dimension!r} does not hold here: {told}; fit it anew"
            " (geode judge calibration --fit)",
        )


def threshold_path(folder: Path, *, engine: str, rubric: str, dimension: str) -> Path:
    """Return where a judge's threshold is stored: not by its model, so that another model finds it and is refused."""
    return folder / f"{rubric}.{dimension}.{engine}.json"


def write_threshold(path: Path, threshold: Threshold) -> None:
    """Store a threshold in place of an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, threshold.model_dump_json(by_alias=True, indent=1) + "\n")


def read_threshold(path: Path) -> Threshold:
    """Read a stored threshold.

    Raises:
        NoThreshold: if there is none, or it cannot be read.
    """
    try:
        return Threshold.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NoThreshold(f"no threshold is stored at {path}; geode judge calibration --fit fits one") from None
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise NoThreshold(f"{path} holds no threshold of this version ({error})") from error
