"""Thresholds part what they were fitted on, are measured on what they were not, and hold for one judge only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from geode.clock import ManualClock
from judges.forecasts import Basis
from judges.judgment import Asked, Unscored
from judges.resampling import Resampling
from judges.thresholds import (
    Changed,
    NoThreshold,
    Threshold,
    ThresholdRefused,
    counts_as_good,
    fit,
    hold_against,
    read_threshold,
    threshold_path,
    write_threshold,
)
from tests.judges.foreseen import drawn, forecasts_of
from tests.judges.rated import RUBRIC, judgment_of

QUICK = Resampling(draws=100)
CLOCK = ManualClock()
PARTED = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9] * 3)


def fitted(**more: object) -> Threshold:
    found = forecasts_of(PARTED, (PARTED > 0.65).tolist(), families=5)
    return fit(found, engine="jev", rubric_id="r1", how=QUICK, clock=CLOCK).model_copy(update=more)


def test_it_lies_between_the_answers_that_it_parts() -> None:
    threshold = fitted()
    assert threshold.threshold == pytest.approx(0.65)
    assert (threshold.accuracy, threshold.accuracy_low, threshold.accuracy_high) == (1, 1, 1)
    assert (threshold.episodes, threshold.families, threshold.engine) == (24, 5, "jev")


def test_its_accuracy_is_that_on_families_it_did_not_see() -> None:
    """A judge that knows nothing looks better than chance where it was fitted, and must not look so here."""
    generator = np.random.default_rng(11)
    blind = forecasts_of(generator.random(60), (generator.random(60) < 0.5).tolist(), families=15)
    threshold = fit(blind, engine="jev", rubric_id="r1", how=QUICK, clock=CLOCK)
    assert threshold.accuracy is not None
    assert threshold.accuracy_low is not None
    assert threshold.accuracy_high is not None
    assert threshold.accuracy_low < 0.5 < threshold.accuracy_high
    good = np.array([forecast.good for forecast in blind.forecasts])
    said = np.array([forecast.expected >= threshold.threshold for forecast in blind.forecasts])
    assert (said[good].mean() + (~said[~good]).mean()) / 2 > 0.55 > threshold.accuracy


def test_one_family_holds_nothing_out() -> None:
    threshold = fit(drawn(30, families=1), engine="jev", rubric_id="r1", how=QUICK, clock=CLOCK)
    assert (threshold.accuracy, threshold.no_accuracy) == (None, "one family, so that none can be held out")


def test_there_is_none_without_both_kinds_or_without_a_difference() -> None:
    with pytest.raises(NoThreshold, match="not of both kinds"):
        fit(forecasts_of(PARTED, [True] * 24), engine="jev", rubric_id="r1", how=QUICK, clock=CLOCK)
    upside_down = forecasts_of(PARTED, (PARTED < 0.5).tolist())
    with pytest.raises(NoThreshold, match="better than chance"):
        fit(upside_down, engine="jev", rubric_id="r1", how=QUICK, clock=CLOCK)


def test_one_is_fitted_for_one_judge() -> None:
    two = replace(drawn(30), served_models=("jev-1", "jev-2"))
    with pytest.raises(NoThreshold, match="several judges, jev-1 and jev-2"):
        fit(two, engine="jev", rubric_id="r1", how=QUICK, clock=CLOCK)


@pytest.mark.parametrize(
    ("served_model", "question_set", "changed"),
    [
        ("jev-2", "q1", (Changed.SERVED_MODEL,)),
        ("jev-1", "q2", (Changed.QUESTION_SET,)),
        ("jev-2", "q2", (Changed.SERVED_MODEL, Changed.QUESTION_SET)),
    ],
)
def test_it_is_refused_where_the_judge_is_another(
    served_model: str, question_set: str, changed: tuple[Changed, ...]
) -> None:
    """Another model or other words make other numbers of the same episode."""
    with pytest.raises(ThresholdRefused, match="does not hold here") as refusal:
        hold_against(fitted(), served_model=served_model, question_set=question_set)
    assert refusal.value.changed == changed
    hold_against(fitted(), served_model="jev-1", question_set="q1")


def test_a_judgment_counts_as_good_from_the_threshold_on() -> None:
    threshold = fitted(basis=Basis.VALUE, served_model="judge-1")
    verdicts = [
        counts_as_good(threshold, RUBRIC.dimensions[0], judgment_of("e0", given))
        for given in (1, 4, 5, 10, Unscored.REFUSED)
    ]
    assert verdicts == [True, True, False, False, None]
    other = judgment_of("e0", 1, asked=(Asked(engine="test", model="m", served_model="judge-2"),))
    with pytest.raises(ThresholdRefused, match="the served model is 'judge-2', it was fitted for 'judge-1'"):
        counts_as_good(threshold, RUBRIC.dimensions[0], other)


def test_an_answer_without_what_it_was_fitted_on_is_not_decided() -> None:
    """A value in place of a probability would be another measure on the same scale."""
    threshold = fitted(served_model="judge-1")
    assert counts_as_good(threshold, RUBRIC.dimensions[0], judgment_of("e0", 1)) is None


def test_it_is_stored_where_another_model_finds_it(tmp_path: Path) -> None:
    path = threshold_path(tmp_path / "deep", engine="jev", rubric="r", dimension="risk")
    with pytest.raises(NoThreshold, match="no threshold is stored"):
        read_threshold(path)
    write_threshold(path, fitted())
    assert read_threshold(path) == fitted()
    path.write_text(path.read_text().replace("geode.threshold/1", "geode.threshold/2"))
    with pytest.raises(NoThreshold, match="no threshold of this version"):
        read_threshold(path)
