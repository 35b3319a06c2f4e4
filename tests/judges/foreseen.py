"""Forecasts whose truth is drawn from a known probability."""

import numpy as np

from judges.forecasts import Basis, Forecast, Forecasts
from judges.resampling import Floats


def forecasts_of(
    expected: Floats, good: list[bool], *, families: int = 40, basis: Basis = Basis.PROBABILITIES
) -> Forecasts:
    """Forecasts of the episodes e0, e1, ..., which take turns in their families."""
    return Forecasts(
        judge="jev",
        served_models=("jev-1",),
        question_sets=("q1",),
        dimension="risk",
        against="outcomes",
        good_from=0.5,
        basis=basis,
        forecasts=tuple(
            Forecast(episode=f"e{n}", family=f"f{n % families}", expected=float(chance), good=bool(true))
            for n, (chance, true) in enumerate(zip(expected, good, strict=True))
        ),
        left_out={},
    )


def drawn(count: int, *, overconfident: float = 1.0, families: int = 40, seed: int = 5) -> Forecasts:
    """Forecasts whose log odds are so many times as large as the true ones: 1 is a calibrated judge."""
    generator = np.random.default_rng(seed)
    odds = generator.normal(0, 1.5, count)
    true = 1 / (1 + np.exp(-odds))
    return forecasts_of(
        1 / (1 + np.exp(-overconfident * odds)), (generator.random(count) < true).tolist(), families=families
    )
