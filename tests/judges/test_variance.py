"""The spread of a judge's values is taken apart by what was repeated, and by nothing else."""

import numpy as np
import pytest

from judges.judgment import Unscored
from judges.ratings import Judge
from judges.resampling import Estimate, Figure, NotEstimated, Resampling
from judges.variance import Origin, Variance, variance_components
from tests.judges.rated import judgment_of, rubric_of

WIDE = rubric_of(lowest=-100, highest=100)
QUICK = Resampling(draws=300, confidence=0.99)


def drawn(
    scenarios: int = 80, runs: int = 4, repetitions: int = 3, *, sd: tuple[float, float, float], unbalanced: bool = True
) -> tuple[Judge, dict[str, Origin]]:
    """Judgments whose scenario, run and judge noise have these standard deviations; two scenarios a family."""
    generator = np.random.default_rng(4)
    judgments, origins = [], {}
    for scenario in range(scenarios):
        level = generator.normal(0, sd[0])
        for run in range(generator.integers(1, runs + 1) if unbalanced else runs):
            episode, lived = f"s{scenario}r{run}", level + generator.normal(0, sd[1])
            origins[episode] = Origin(scenario=f"s{scenario}", family=f"f{scenario // 2}")
            for repetition in range(generator.integers(1, repetitions + 1) if unbalanced else repetitions):
                value = float(lived + generator.normal(0, sd[2]))
                judgments.append(judgment_of(episode, value, rubric=WIDE, repetition=repetition))
    return Judge(name="j", judgments=tuple(judgments)), origins


def components(
    scenarios: int = 80, runs: int = 4, repetitions: int = 3, *, sd: tuple[float, float, float], unbalanced: bool = True
) -> Variance:
    judge, origins = drawn(scenarios, runs, repetitions, sd=sd, unbalanced=unbalanced)
    found = variance_components(judge, "risk", origins, QUICK)
    assert isinstance(found, Variance)
    return found


def known(figure: Figure) -> Estimate:
    assert isinstance(figure, Estimate), figure
    return figure


@pytest.mark.parametrize("unbalanced", [False, True])
def test_each_component_is_found_again_within_its_interval(*, unbalanced: bool) -> None:
    """Also where scenarios have other numbers of runs, and runs of judgments, as they always do."""
    found = components(sd=(3.0, 2.0, 1.0), unbalanced=unbalanced)
    for figure, true in ((found.scenario, 9.0), (found.run, 4.0), (found.repetition, 1.0)):
        interval = known(figure).interval
        assert interval is not None
        assert interval.low < true < interval.high
        assert known(figure).value == pytest.approx(true, rel=0.4)


def test_balanced_data_give_the_textbook_mean_squares() -> None:
    """Two scenarios of two runs of two judgments: within runs 0.5, between runs 2, between scenarios 98."""
    runs = {"a0": (0, 1), "a1": (2, 1), "b0": (7, 8), "b1": (8, 9)}
    judgments = [
        judgment_of(episode, value, rubric=WIDE, repetition=place)
        for episode, values in runs.items()
        for place, value in enumerate(values)
    ]
    origins = {episode: Origin(scenario=episode[0], family=episode[0]) for episode in runs}
    found = variance_components(Judge(name="j", judgments=tuple(judgments)), "risk", origins, QUICK)
    assert isinstance(found, Variance)
    assert known(found.repetition).value == 0.5
    between_runs = (2 * (0.5 - 1) ** 2 * 2 + 2 * (7.5 - 8) ** 2 * 2) / 2
    assert known(found.run).value == (between_runs - 0.5) / 2
    assert known(found.scenario).value == (4 * 2 * 3.5**2 / 1 - between_runs) / 4


def test_a_judge_that_is_always_of_the_same_mind_has_no_noise() -> None:
    found = components(sd=(3.0, 2.0, 0.0))
    assert known(found.repetition).value == pytest.approx(0)
    assert known(found.run).value > 2


def test_a_small_component_is_never_shown_below_zero() -> None:
    """Chance gives a negative estimate where there is no scenario noise, and a variance has no such value."""
    shown = [components(6, 3, 2, sd=(0.0, 2.0, 1.0)).scenario, components(40, 3, 2, sd=(0.0, 0.0, 1.0)).run]
    for figure in map(known, shown):
        assert figure.value >= 0
        assert figure.interval is None or figure.interval.low == 0


def test_what_was_not_repeated_is_not_told_apart() -> None:
    """It is inside the component above it, and that figure is larger for it."""
    once = components(runs=4, repetitions=1, sd=(3.0, 2.0, 2.0))
    assert once.repetition == NotEstimated(reason="nothing was judged twice: its noise is inside the run's")
    assert known(once.run).value == pytest.approx(8.0, rel=0.4)
    alone = components(runs=1, repetitions=3, sd=(3.0, 2.0, 1.0))
    assert alone.run == NotEstimated(reason="no scenario ran twice: its noise is inside the scenario's")
    assert known(alone.scenario).value == pytest.approx(13.0, rel=0.4)
    assert known(alone.repetition).value == pytest.approx(1.0, rel=0.4)


def test_one_scenario_has_no_components() -> None:
    judge, origins = drawn(1, sd=(1.0, 1.0, 1.0))
    reason = "1 scenarios with a value, and two are needed"
    assert variance_components(judge, "risk", origins, QUICK) == NotEstimated(reason=reason)


def test_unscored_and_unknown_episodes_are_no_values() -> None:
    judge, origins = drawn(4, sd=(1.0, 1.0, 1.0))
    more = (judgment_of("s0r0", Unscored.REFUSED, rubric=WIDE, repetition=9), judgment_of("elsewhere", 50, rubric=WIDE))
    with_more = Judge(name="j", judgments=(*judge.judgments, *more))
    assert variance_components(with_more, "risk", origins, QUICK) == variance_components(judge, "risk", origins, QUICK)
