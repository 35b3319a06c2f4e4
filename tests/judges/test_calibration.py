"""Calibration: what a calibrated judge shows, what an overconfident one shows, and what nobody can tell."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from judges.calibration import NoProbabilities, bin_places, calibrate
from judges.forecasts import Basis
from judges.reliability_plot import draw_reliability
from judges.resampling import Estimate, NotEstimated, Resampling
from tests.judges.foreseen import drawn, forecasts_of

QUICK = Resampling(draws=100)


def test_a_calibrated_judge_errs_no_more_than_chance_does() -> None:
    """Its ECE is above 0 all the same, and the figure beside it says how far."""
    found = calibrate(drawn(2_000), QUICK)
    assert isinstance(found.ece, Estimate)
    assert found.ece_by_chance is not None
    assert found.ece.value < 1.6 * found.ece_by_chance < 0.06
    for each in found.bins:
        assert isinstance(each.came_true, Estimate)
        assert each.came_true.value == pytest.approx(each.expected, abs=0.1)


def test_an_overconfident_judge_is_seen_to_be_one() -> None:
    """Above one half less comes true than it says, below one half more."""
    found = calibrate(drawn(2_000, overconfident=3), QUICK)
    assert isinstance(found.ece, Estimate)
    assert found.ece.interval is not None
    assert found.ece_by_chance is not None
    assert found.ece.interval.low > 3 * found.ece_by_chance
    first, last = found.bins[0], found.bins[-1]
    assert isinstance(first.came_true, Estimate)
    assert isinstance(last.came_true, Estimate)
    assert first.came_true.value > first.expected
    assert last.came_true.value < last.expected


def test_the_brier_score_is_the_mean_square_of_the_error() -> None:
    expected, good = np.array([0.9, 0.2, 0.5]), [True, False, True]
    brier = calibrate(forecasts_of(expected, good, families=3), QUICK).brier
    assert isinstance(brier, Estimate)
    assert brier.value == pytest.approx((0.01 + 0.04 + 0.25) / 3)


def test_a_judge_that_is_always_right_and_sure_has_neither_error() -> None:
    good = [number % 2 == 0 for number in range(40)]
    found = calibrate(forecasts_of(np.array(good, dtype=float), good), QUICK)
    assert [figure.value for figure in (found.brier, found.ece) if isinstance(figure, Estimate)] == [0, 0]
    assert [(each.count, each.came_true) for each in found.bins] == [
        (20, Estimate(value=0.0, interval=None, no_interval="all ended alike")),
        (20, Estimate(value=1.0, interval=None, no_interval="all ended alike")),
    ]


def test_bins_are_those_of_the_library() -> None:
    """Equal mass; the library gives the curve, and no counts."""
    found = drawn(240, overconfident=2)
    expected = np.array([forecast.expected for forecast in found.forecasts])
    good = np.array([forecast.good for forecast in found.forecasts])
    came_true, said = calibration_curve(good, expected, n_bins=10, strategy="quantile")
    bins = calibrate(found, QUICK).bins
    assert [each.expected for each in bins] == pytest.approx(said)
    assert [each.came_true.value for each in bins if isinstance(each.came_true, Estimate)] == pytest.approx(came_true)
    assert sum(each.count for each in bins) == 240
    assert max(each.count for each in bins) - min(each.count for each in bins) <= 1


def test_equal_forecasts_share_a_bin() -> None:
    assert len(set(bin_places(np.full(50, 0.7), 10).tolist())) == 1
    places = bin_places(np.repeat([0.1, 0.5, 0.9], 20), 10)
    assert [len(set(part.tolist())) for part in np.split(places, 3)] == [1, 1, 1]
    assert len(set(places.tolist())) == 3
    assert len(set(bin_places(np.repeat([0.2, 0.9], [10, 14]), 2).tolist())) == 2


def test_too_few_forecasts_have_no_calibration_error() -> None:
    found = calibrate(drawn(19), QUICK)
    assert found.ece == NotEstimated(reason="19 forecasts, and 20 are needed")
    assert (found.ece_by_chance, len(found.bins)) == (None, 1)
    assert isinstance(found.brier, Estimate)


def test_without_a_forecast_there_is_nothing() -> None:
    found = calibrate(forecasts_of(np.array([]), []), QUICK)
    assert found.brier == found.base_rate == NotEstimated(reason="no episode")
    assert found.bins == ()


def test_values_are_no_probabilities() -> None:
    with pytest.raises(NoProbabilities, match="neither probabilities nor a certainty for 'risk'"):
        calibrate(forecasts_of(np.array([0.5]), [True], basis=Basis.VALUE), QUICK)


def test_the_picture_says_what_it_shows(tmp_path: Path) -> None:
    """Whose judgments, by which model, of how many episodes, with which errors; equal figures draw equal bytes."""
    found = calibrate(drawn(200, overconfident=2), QUICK)
    for name in ("first.svg", "second.svg", "picture.png"):
        draw_reliability(found, tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    texts = " ".join("".join(ElementTree.parse(tmp_path / "first.svg").getroot().itertext()).split())
    assert isinstance(found.brier, Estimate)
    for said in ("jev, served by jev-1: risk", "n = 200 in 40 families", f"Brier {found.brier.value:.3f}", "ECE"):
        assert said in texts
    for said in ("expected probability that the episode is good", "share of episodes that is good", "95% interval"):
        assert said in texts


def test_a_picture_needs_a_known_suffix_and_something_to_show(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in .png or .svg"):
        draw_reliability(calibrate(drawn(30), QUICK), tmp_path / "picture.gif")
    with pytest.raises(ValueError, match="no forecast"):
        draw_reliability(calibrate(forecasts_of(np.array([]), []), QUICK), tmp_path / "picture.png")
