"""What a plan says to be detectable rests on the best that is known of each task, and says on what."""

from collections.abc import Mapping

import pytest

from experiments.detectable import Detectable, Source, detectable
from experiments.episode import EpisodeRecord
from experiments.past import Past
from experiments.power import Design, TaskOdds, smallest_difference
from experiments.records import ExperimentRecord
from tests.doubles.cells import Letters, drawn, make_cells, make_experiment

TASKS = [f"{family}_{n}" for family in "abc" for n in (1, 2)]
ARMS = ("base", "one", "two")


def planned(repeats: int = 30, tasks: list[str] = TASKS) -> ExperimentRecord:
    """An experiment of three variants whose last repetition is planned and nothing else matters."""
    return make_experiment({arm: dict.fromkeys(tasks, "." * repeats) for arm in ARMS})


def found(letters: Letters, experiment: ExperimentRecord, others: tuple[EpisodeRecord, ...] = ()) -> Detectable:
    answer = detectable(experiment, Past(cells=tuple(make_cells(letters, experiment)), others=others))
    assert answer is not None
    return answer


def rates(rate: float, tasks: list[str] = TASKS) -> Mapping[str, Mapping[str, float]]:
    return {arm: dict.fromkeys(tasks, rate) for arm in ARMS}


NOTHING = {arm: dict.fromkeys(TASKS, "") for arm in ARMS}


def test_without_a_past_half_of_all_passes_is_assumed() -> None:
    """It is the conservative assumption: nothing varies more."""
    answer = found(NOTHING, planned())
    assert answer.sources == {Source.ASSUMED: 6}
    assert (answer.candidates, answer.pairs, answer.tasks, answer.families) == (2, 30, 6, 3)
    half = Design(
        tasks=tuple(TaskOdds(family=task[0], rate=0.5) for task in TASKS), pairs=30, candidates=2, confidence=0.95
    )
    assert answer.on_tasks == smallest_difference(half)
    assert answer.largest == pytest.approx(0.5)
    assert answer.beyond is answer.spread is None


def test_pass_rates_of_the_same_roles_come_before_the_assumption() -> None:
    """Elsewhere these tasks pass in nine of ten cases, which varies less than one half."""
    elsewhere = make_cells({"else": dict.fromkeys(TASKS, "PPPPPPPPPF" * 3)})[0]
    past = tuple(stored.record for stored in elsewhere.episodes)
    answer = found(NOTHING, planned(), past)
    assert answer.sources == {Source.RATES: 6}
    assert answer.largest == pytest.approx(1 - 27.5 / 31)
    other_roles = tuple(record.model_copy(update={"roles": {"target": "anthropic/other"}}) for record in past)
    assert found(NOTHING, planned(), other_roles).sources == {Source.ASSUMED: 6}


def test_past_pairs_come_before_pass_rates() -> None:
    """Arms that end alike in each block, as on a task that depends on its seed, differ in hardly any pair."""
    alike = {arm: dict.fromkeys(TASKS, "PF" * 10) for arm in ARMS}
    answer, independent = found(alike, planned()), found(drawn(rates(0.5), 20, seed=1), planned())
    assert answer.sources == independent.sources == {Source.PAIRS: 6}
    assert answer.on_tasks is not None
    assert independent.on_tasks is not None
    assert answer.on_tasks < 0.6 * independent.on_tasks
    assert independent.on_tasks == pytest.approx(found(NOTHING, planned()).on_tasks or 0, abs=0.015)


def test_each_task_rests_on_the_best_that_is_known_of_it() -> None:
    partly = {arm: {task: "PFPF" * 5 if task[0] == "a" else "" for task in TASKS} for arm in ARMS}
    assert found(partly, planned()).sources == {Source.PAIRS: 2, Source.ASSUMED: 4}


def test_episodes_that_measured_nothing_are_no_past() -> None:
    invalid = {arm: dict.fromkeys(TASKS, "I" * 20) for arm in ARMS}
    assert found(invalid, planned()).sources == {Source.ASSUMED: 6}


def test_repeats_are_told_for_ten_and_for_five_points() -> None:
    needed = found(NOTHING, planned()).repeats
    assert list(needed) == [0.10, 0.05]
    assert needed[0.10] is not None
    assert needed[0.05] is not None
    assert 3.5 < needed[0.05] / needed[0.10] < 4.5


def test_one_variant_compares_nothing() -> None:
    alone = {"base": {"a_1": "PPPP"}}
    experiment = make_experiment(alone)
    assert detectable(experiment, Past(cells=tuple(make_cells(alone, experiment)), others=())) is None


MANY = [f"f{n}_1" for n in range(11)]


def test_the_spread_of_families_is_estimated_from_past_pairs() -> None:
    """Eleven families in which the candidates gain nothing or forty points spread by twenty, and noise is no spread."""
    gains = {arm: {task: 0.3 + 0.4 * (n % 2) * (arm != "base") for n, task in enumerate(MANY)} for arm in ARMS}
    apart = found(drawn(gains, 200, seed=1), planned(30, MANY))
    same = found(drawn(rates(0.4, MANY), 200, seed=1), planned(30, MANY))
    assert apart.spread == pytest.approx(0.21, abs=0.03)
    assert same.spread == pytest.approx(0.0, abs=0.03)
    assert apart.beyond is not None
    assert same.beyond is not None
    assert apart.beyond > 1.3 * same.beyond


def test_without_past_pairs_the_spread_of_families_is_unknown_and_the_best_case_is_told() -> None:
    answer = found({arm: dict.fromkeys(MANY, "") for arm in ARMS}, planned(30, MANY))
    assert answer.families == 11
    assert answer.spread is None
    assert answer.beyond is not None
