"""What judges took stands side by side, and what is not known is not counted as nothing."""

import pytest

from judges.expense import expenses
from judges.judgment import Asked, Unscored, all_unscored
from judges.ratings import Judge
from tests.judges.test_judgment import RUBRIC, judgment

ONE = Asked(engine="jev", model="m", cost_usd=0.002, latency_ms=100)


def test_a_judge_that_asks_nobody_costs_nothing_and_takes_no_time() -> None:
    """Its time is that of our own machine, which no figure here is about."""
    (rules,) = expenses([Judge(name="rules", judgments=(judgment(), judgment()))])
    assert (rules.judgments, rules.requests, rules.cost_usd, rules.latency_ms) == (2, 0, 0.0, None)
    assert rules.usd_per_1000 == 0


def test_a_judgment_takes_as_long_as_its_requests_together() -> None:
    """One that had to ask again was waited for twice; the median is over judgments."""
    twice = judgment(ONE, ONE.model_copy(update={"latency_ms": 300, "failed": "malformed"}))
    (jev,) = expenses([Judge(name="jev", judgments=(judgment(ONE), twice, judgment(ONE)))])
    assert (jev.requests, jev.latency_ms) == (4, 100)
    assert jev.cost_usd == pytest.approx(0.008)
    assert jev.usd_per_1000 == pytest.approx(8 / 3)


def test_a_request_of_unknown_cost_leaves_the_rate_unknown() -> None:
    (llm,) = expenses([Judge(name="llm", judgments=(judgment(ONE, Asked(engine="llm", model="m")),))])
    assert (llm.unpriced, llm.usd_per_1000) == (1, None)


def test_what_has_no_value_is_counted_out_of_all_that_was_asked_for() -> None:
    silent = judgment(dimensions=all_unscored(RUBRIC, Unscored.ABSTAINED))
    (rules,) = expenses([Judge(name="rules", judgments=(judgment(), silent))])
    assert (rules.unscored, rules.entries) == (1, 2)
