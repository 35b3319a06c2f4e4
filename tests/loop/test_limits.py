"""Facts of `geode.loop.limits`: each limit ends a turn by its own name, and a cap can only lower one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.authority import SafetyLevel
from geode.llm.messages import LLMAdapter, ModelResponse, StepSnapshot
from geode.loop.limits import effective, passed
from geode.loop.turn import TurnStop
from geode.records.checkpoint import Progress
from geode.scaffold import LoopLimits
from geode.tools.spec import ToolOutput
from tests.doubles.effects import returning, tool
from tests.doubles.models import PricedModel, ScriptedModel, calls
from tests.doubles.sessions import open_bench

LIMITS = LoopLimits(rounds=3, tokens=1_000, seconds=60, cost_usd=0.5)


@pytest.mark.parametrize(
    ("progress", "elapsed_s", "stop", "words"),
    [
        (Progress(round=2), 0.0, None, ""),
        (Progress(round=3), 0.0, TurnStop.ROUND_LIMIT, "3 rounds"),
        (Progress(round=10, turn_first_round=8), 0.0, TurnStop.ROUND_LIMIT, "3 rounds"),
        (Progress(round=10, turn_first_round=9), 0.0, None, ""),
        (Progress(output_tokens=999), 0.0, None, ""),
        (Progress(cache_read_tokens=600, output_tokens=400), 0.0, TurnStop.TOKEN_LIMIT, "1000 of 1000 tokens"),
        (Progress(), 59.9, None, ""),
        (Progress(), 60.0, TurnStop.TIME_LIMIT, "60.0 of 60 seconds"),
        (Progress(cost_usd=0.49), 0.0, None, ""),
        (Progress(cost_usd=0.5), 0.0, TurnStop.COST_LIMIT, "0.5000 of 0.5 US dollars"),
    ],
)
def test_a_limit_that_is_reached_allows_no_further_call_and_gives_its_figures(
    progress: Progress, elapsed_s: float, stop: TurnStop | None, words: str
) -> None:
    over = passed(LIMITS, progress, elapsed_s)
    assert (over is None) is (stop is None)
    if over is not None:
        assert over[0] is stop
        assert words in over[1]


def test_no_money_allows_only_what_is_free() -> None:
    """A simulated model costs nothing and must run under a limit of nothing."""
    free = LoopLimits(cost_usd=0)
    assert passed(free, Progress(cost_usd=0.0), 0.0) is None
    over = passed(free, Progress(cost_usd=0.0001), 0.0)
    assert over is not None
    assert over[0] is TurnStop.COST_LIMIT


CAPS = st.builds(
    LoopLimits,
    rounds=st.integers(1, 100),
    tokens=st.integers(1, 10**6),
    seconds=st.floats(1, 1_000),
    cost_usd=st.floats(0, 10),
)


@given(CAPS, CAPS)
def test_a_cap_lowers_what_a_prompt_may_use_and_raises_nothing(limits: LoopLimits, caps: LoopLimits) -> None:
    """Caps are the ruler's: a scaffold cannot buy itself a better score with a larger budget."""
    both = effective(limits, caps)
    for name in ("rounds", "tokens", "seconds", "cost_usd"):
        assert getattr(both, name) == min(getattr(limits, name), getattr(caps, name))
    for name in ("calls_per_round", "empty_answers_in_a_row", "cut_answers_in_a_row", "context_tokens"):
        assert getattr(both, name) == getattr(limits, name)


def test_without_caps_the_scaffold_has_its_own_limits() -> None:
    assert effective(LIMITS, None) is LIMITS


LOOK = tool(returning(ToolOutput(text="ok")), name="look", level=SafetyLevel.READ)


def costing(cost_usd: float) -> Callable[[StepSnapshot], ModelResponse]:
    def reply(snapshot: StepSnapshot) -> ModelResponse:
        asked = calls((f"c{snapshot.round}", "look", "{}"))
        return replace(asked, usage=replace(asked.usage, cost_usd=cost_usd))

    return reply


async def spent(folder: Path, model: LLMAdapter, limit: float) -> tuple[TurnStop, int, float]:
    bench = open_bench(folder, model, {"look": LOOK}, limits=LoopLimits(cost_usd=limit))
    result = await bench.loop.arun("go on for ever")
    bench.close()
    return result.stop, result.rounds, result.usage.cost_usd


@pytest.mark.parametrize(("limit", "rounds"), [(1.0, 8), (0.3, 1), (0.299, 0), (0.0, 0)])
async def test_where_prices_are_known_the_limit_on_cost_is_never_passed(
    tmp_path: Path, limit: float, rounds: int
) -> None:
    """A call costs 0.1 and might have cost 0.3: it is made only if 0.3 is left, and one not made is no round."""
    stop, made, cost_usd = await spent(tmp_path, PricedModel([costing(0.1)], 0.3), limit)
    assert (stop, made) == (TurnStop.COST_LIMIT, rounds)
    assert cost_usd <= limit


async def test_without_prices_the_last_call_may_pass_the_limit_on_cost(tmp_path: Path) -> None:
    """What a call costs is then known only when it is paid for; the account of a sweep says so."""
    assert await spent(tmp_path, ScriptedModel([costing(0.75)]), 1.0) == (TurnStop.COST_LIMIT, 2, 1.5)


async def test_a_model_whose_price_nobody_knows_is_asked_until_its_cost_is_known(tmp_path: Path) -> None:
    """No bound is no reason to stop: the limit is then held against what was paid."""
    stop, made, _ = await spent(tmp_path, PricedModel([costing(0.6)], None), 1.0)
    assert (stop, made) == (TurnStop.COST_LIMIT, 2)


async def test_a_bound_that_is_no_number_allows_no_call(tmp_path: Path) -> None:
    stop, made, _ = await spent(tmp_path, PricedModel([costing(0.1)], float("nan")), 1.0)
    assert (stop, made) == (TurnStop.COST_LIMIT, 0)
