"""What the tests of calibration share: small studies, and sweeps whose letters stand in plain sight."""

import pytest

from experiments.calibration.study import CalibrationSpec, Study, studies
from experiments.calibration.weather import Weather

TASKS = ("config_port", "csv_totals")


@pytest.fixture(scope="session")
def small() -> CalibrationSpec:
    """Two placebos, two tasks, two repeats, in the worst weather."""
    weather = Weather(drift_sd=1.0, heavy_tails=True)
    return CalibrationSpec(sweeps=2, placebos=2, repeats=2, tasks=TASKS, weather=weather, seed=7)


@pytest.fixture(scope="session")
def planned(small: CalibrationSpec) -> tuple[Study, ...]:
    return studies(small)
