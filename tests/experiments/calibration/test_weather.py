"""The weather is what it is said to be: a step of a known size half-way, bursts of heavy tails."""

from itertools import groupby

import numpy as np
import pytest

from experiments.calibration.weather import Sky, Weather, forecast

EPISODES = 540


def many(weather: Weather, forecasts: int = 200) -> list[tuple[Sky, ...]]:
    return [forecast(weather, EPISODES, np.random.default_rng(seed)) for seed in range(forecasts)]


def test_still_weather_changes_nothing() -> None:
    """The default measures the product's own model."""
    assert set(forecast(Weather(), EPISODES, np.random.default_rng(1))) == {Sky.CLEAR}


def test_a_drift_exchanges_the_model_half_way_for_a_share_that_is_its_step() -> None:
    """Half of the episodes at one sd: any pass rate p is p + (1 - p) / 2 before and p / 2 after, 50 points less."""
    skies = [sky for one in many(Weather(drift_sd=1.0)) for sky in one[: EPISODES // 2]]
    later = [sky for one in many(Weather(drift_sd=1.0)) for sky in one[EPISODES // 2 :]]
    assert (set(skies), set(later)) == ({Sky.CLEAR, Sky.STRONG}, {Sky.CLEAR, Sky.WEAK})
    assert skies.count(Sky.STRONG) / len(skies) == pytest.approx(Weather(drift_sd=1.0).step, abs=0.01)
    assert later.count(Sky.WEAK) / len(later) == pytest.approx(0.5, abs=0.01)


def test_two_sd_are_all_there_is() -> None:
    """A pass rate cannot fall by more than from one to zero."""
    assert set(forecast(Weather(drift_sd=3.0), 4, np.random.default_rng(1))) == {Sky.STRONG, Sky.WEAK}


def test_bursts_have_heavy_tails() -> None:
    """Most are of one episode, some as long as a tenth of a sweep: no average of few sweeps would tell."""
    skies = many(Weather(heavy_tails=True))
    bursts = [(sky, len(list(run))) for one in skies for sky, run in groupby(one) if sky is not Sky.CLEAR]
    lengths = [length for _, length in bursts]
    assert np.median(lengths) == 1
    assert max(lengths) > EPISODES // 10
    assert sum(lengths) / (200 * EPISODES) == pytest.approx(0.09, abs=0.02)
    assert sum(sky is Sky.BROKEN for sky, _ in bursts) / len(bursts) == pytest.approx(0.1, abs=0.02)


def test_a_forecast_is_a_function_of_its_seed() -> None:
    """The same sweep meets the same weather when it is run again."""
    weather = Weather(drift_sd=1.0, heavy_tails=True)
    assert many(weather, 3) == many(weather, 3)
    assert len(set(many(weather, 3))) == 3
