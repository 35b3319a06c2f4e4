"""The owner of retries: what is sent again, how often, after which wait, and who pays for it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.clock import ManualClock
from geode.llm.binding import Binding, ModelOptions
from geode.llm.errors import (
    AuthenticationFailed,
    BudgetReached,
    ConnectionFailed,
    ContextTooLarge,
    Facts,
    LLMError,
    Overloaded,
    PaymentRequired,
    ProviderError,
    RateLimited,
    RequestInvalid,
    StreamCut,
    UnknownStop,
    WaitTooLong,
)
from geode.llm.messages import (
    BoundsCost,
    Delta,
    DeltaKind,
    ModelResponse,
    StepSnapshot,
    TextBlock,
)
from geode.llm.prices import Prices
from geode.llm.retry import RetryBudget, Retrying, RetryPolicy, Shown
from geode.llm.routes import parse_model
from geode.llm.spending import NOT_BILLED
from geode.llm.usage import Attempt, Usage
from tests.doubles.models import Reply, ScriptedModel, says
from tests.doubles.purses import OpenPurse
from tests.doubles.snapshots import asked

pytestmark = pytest.mark.anyio

PRICES = Prices(input=4.0, output=20.0, cache_write=5.0, as_of="2030-01-01", source="test")
BINDING = Binding(
    model=parse_model("zai/glm-5.3"),
    key="key-of-a-test",
    base_url="http://127.0.0.1:9",
    served_as=frozenset(),
    context_tokens=100_000,
    output_tokens_max=8_000,
    prices=PRICES,
)
STEADY = RetryPolicy(jitter=0)


def turned_away(*, retry_after_s: float | None = None) -> RateLimited:
    return RateLimited("too many", Facts(provider="zai", status=429, retry_after_s=retry_after_s, request_id="r"))


def cut(usage: Usage | None = None) -> StreamCut:
    return StreamCut("cut", Facts(provider="zai", status=200), usage=usage)


class Bench:
    """A wire that does what a script says, the owner of retries around it, and a clock that sleep moves."""

    def __init__(self, replies: Sequence[Reply], **parts: object) -> None:
        self.clock = ManualClock()
        self.slept: list[float] = []
        self.wire = ScriptedModel(replies)
        self.purse = OpenPurse()
        self.retrying = replace(
            Retrying(
                inner=self.wire,
                binding=BINDING,
                policy=STEADY,
                purse=self.purse,
                clock=self.clock,
                sleep=self.sleep,
                draw=lambda: 0.0,
            ),
            **parts,
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)


RETRYABLE = (
    ConnectionFailed("lost", Facts(provider="zai")),
    Overloaded("for now", Facts(provider="zai", status=529)),
    Overloaded("in a stream", Facts(provider="anthropic", status=200, type="overloaded_error")),
    turned_away(),
    RateLimited("in flight", Facts(provider="openrouter", status=402, code="openrouter_in_flight_budget")),
    cut(),
)
FINAL = (
    PaymentRequired("no balance", Facts(provider="zai", status=429, code="1113")),
    AuthenticationFailed("no", Facts(provider="zai", status=401)),
    ContextTooLarge("long", Facts(provider="zai", status=400)),
    RequestInvalid("no", Facts(provider="zai", status=400)),
    UnknownStop("odd", Facts(provider="zai", status=200)),
    RateLimited("the provider says never", Facts(provider="openrouter", status=429), retryable=False),
)


@pytest.mark.parametrize("error", RETRYABLE, ids=str)
async def test_a_request_is_sent_again_if_its_error_says_so(error: ProviderError) -> None:
    """PROVIDERS 2: nothing but the error's own answer decides."""
    bench = Bench([error, says("here")])
    response = await bench.retrying.acomplete(asked())
    assert (response.blocks, len(bench.wire.asked)) == ((TextBlock(text="here"),), 2)


@pytest.mark.parametrize("error", FINAL, ids=str)
async def test_a_request_is_sent_once_if_its_error_says_so(error: ProviderError) -> None:
    """PROVIDERS 2: a loop over every 429 would burn itself on an empty balance."""
    bench = Bench([error, says("never asked")])
    with pytest.raises(type(error)) as caught:
        await bench.retrying.acomplete(asked())
    assert (caught.value, caught.value.attempts, len(bench.wire.asked)) == (error, (), 1)


async def test_waits_double_up_to_the_longest() -> None:
    """PROVIDERS 1: this is the one loop that waits between requests."""
    bench = Bench([turned_away()] * 5 + [says("here")], policy=STEADY.model_copy(update={"wait_max_s": 5.0}))
    await bench.retrying.acomplete(asked())
    assert bench.slept == [1.0, 2.0, 4.0, 5.0, 5.0]


async def test_a_wait_is_made_longer_at_random_and_never_shorter() -> None:
    """Two hundred sessions that were told `1 s` must not come back in the same instant, nor earlier."""
    bench = Bench([turned_away(retry_after_s=8.0), says("here")], policy=RetryPolicy(jitter=0.5), draw=lambda: 0.5)
    await bench.retrying.acomplete(asked())
    assert bench.slept == [10.0]


async def test_a_day_of_waiting_fails_at_once() -> None:
    """PROVIDERS 3: one header must not park a worker until tomorrow."""
    error = turned_away(retry_after_s=86_400.0)
    bench = Bench([turned_away(), error, says("never asked")])
    with pytest.raises(WaitTooLong, match="86400 s") as caught:
        await bench.retrying.acomplete(asked())
    assert bench.slept == [1.0]
    assert (caught.value.facts, caught.value.retryable) == (error.facts, False)
    assert [attempt.error for attempt in caught.value.attempts] == ["RateLimited"]


async def test_the_longest_wait_that_is_asked_for_is_waited() -> None:
    """PROVIDERS 3: the cap is a cap, not a rule against waiting."""
    bench = Bench([turned_away(retry_after_s=60.0), says("here")])
    await bench.retrying.acomplete(asked())
    assert bench.slept == [60.0]


async def test_a_wait_beyond_what_the_session_has_left_fails_at_once() -> None:
    """PROVIDERS 3: the budget in all is held as well as the cap of one wait."""
    bench = Bench([turned_away(retry_after_s=40.0), says("never asked")], budget=RetryBudget(wait_s=39.0))
    with pytest.raises(WaitTooLong, match="at most 39 s"):
        await bench.retrying.acomplete(asked())
    assert bench.slept == []


async def test_calls_of_a_session_share_their_budget() -> None:
    """Each call within its own limit, a session would still wait for hours."""
    budget = RetryBudget(retries=3)
    bench = Bench([turned_away(), turned_away(), says("first"), turned_away()], budget=budget)
    await bench.retrying.acomplete(asked())
    with pytest.raises(RateLimited) as caught:
        await bench.retrying.acomplete(asked())
    assert (budget.retries, len(bench.slept), len(caught.value.attempts)) == (0, 3, 1)
    assert "used up its retries" in caught.value.__notes__[0]


async def test_what_failed_stands_in_the_response_with_what_it_was_billed_for() -> None:
    """PROVIDERS 25: a stream that was cut is billed like one that was not."""
    said = Usage(uncached_input_tokens=9, output_tokens=1, cost_usd=0.25)
    bench = Bench([turned_away(), cut(said), says("here")])
    response = await bench.retrying.acomplete(asked())
    assert response.attempts == (
        Attempt(error="RateLimited", status=429, request_id="r", waited_ms=1_000, usage=NOT_BILLED),
        Attempt(error="StreamCut", status=200, waited_ms=2_000, usage=said),
    )


async def test_what_failed_before_the_last_failure_stands_in_the_error() -> None:
    """PROVIDERS 25: a call that gave nothing cost something all the same."""
    last = turned_away()
    bench = Bench([cut(), turned_away(), last], policy=STEADY.model_copy(update={"requests": 3}))
    with pytest.raises(RateLimited, match="3 attempts") as caught:
        await bench.retrying.acomplete(asked())
    assert caught.value is last
    assert [(attempt.error, attempt.usage) for attempt in last.attempts] == [
        ("StreamCut", None),
        ("RateLimited", NOT_BILLED),
    ]


async def test_a_purse_that_refuses_a_retry_ends_the_call_and_loses_nothing() -> None:
    """PROVIDERS 25: what was spent until the cap was reached is spent."""
    bench = Bench([cut(), says("never asked")], purse=OpenPurse(allowed=1))
    with pytest.raises(BudgetReached) as caught:
        await bench.retrying.acomplete(asked())
    assert ([attempt.error for attempt in caught.value.attempts], len(bench.wire.asked)) == (["StreamCut"], 1)


async def test_a_request_that_may_have_been_billed_is_sent_again_twice_at_the_most() -> None:
    """What a call can cost is bounded only if the number of bills is."""
    bench = Bench([cut(), turned_away(), cut(), turned_away(), cut(), says("never asked")])
    with pytest.raises(StreamCut):
        await bench.retrying.acomplete(asked())
    assert len(bench.wire.asked) == 5


async def test_a_cancelled_call_is_not_sent_again() -> None:
    """Whoever cancels wants no second request; the first one counts as what it may have cost."""
    entered = asyncio.Event()

    async def hangs(_: StepSnapshot) -> ModelResponse:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    bench = Bench([hangs, says("never asked")])
    call = asyncio.create_task(bench.retrying.acomplete(asked()))
    await entered.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (len(bench.wire.asked), bench.slept) == (1, [])
    assert [usage for _, usage in bench.purse.settled] == [None]


async def test_a_cancellation_that_a_wire_turns_into_an_error_is_not_retried() -> None:
    """A library that reports its cancelled connection as a broken one must not earn a second request."""
    entered = asyncio.Event()

    async def swallows(_: StepSnapshot) -> ModelResponse:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionFailed("broken", Facts(provider="zai")) from None
        raise AssertionError

    bench = Bench([swallows, says("never asked")])
    call = asyncio.create_task(bench.retrying.acomplete(asked()))
    await entered.wait()
    call.cancel()
    with pytest.raises(ConnectionFailed):
        await call
    assert len(bench.wire.asked) == 1


async def test_a_call_that_is_cancelled_while_it_waits_is_not_sent_again() -> None:
    """The wait is as good a moment to stop as any."""

    async def cancelled(_: float) -> None:
        raise asyncio.CancelledError

    bench = Bench([turned_away(), says("never asked")], sleep=cancelled)
    with pytest.raises(asyncio.CancelledError):
        await bench.retrying.acomplete(asked())
    assert len(bench.wire.asked) == 1


async def test_what_was_shown_is_taken_back_before_it_is_shown_again() -> None:
    """A reader must not take the halves of two replies for one."""
    seen: list[Delta] = []
    shown = Shown(seen.append)

    def half(_: StepSnapshot) -> ModelResponse:
        shown(Delta(kind=DeltaKind.TEXT, text="Hel"))
        raise cut()

    def whole(_: StepSnapshot) -> ModelResponse:
        shown(Delta(kind=DeltaKind.TEXT, text="Hello"))
        return says("Hello")

    bench = Bench([turned_away(), half, whole, turned_away(), whole], shown=shown)
    await bench.retrying.acomplete(asked())
    await bench.retrying.acomplete(asked())
    text, again = DeltaKind.TEXT, DeltaKind.AGAIN
    assert [delta.kind for delta in seen] == [text, again, text, text]


def test_it_offers_a_bound_of_what_a_call_costs() -> None:
    """The loop finds the bound by this protocol."""
    assert isinstance(Bench([]).retrying, BoundsCost)


def test_the_bound_holds_every_bill_that_a_call_can_bring() -> None:
    """Three requests may be billed: the first, and two more after failures that may have been billed."""
    bench = Bench([])
    snapshot = asked("word " * 1_000)
    one = bench.retrying._request_usd_max(snapshot)
    assert one is not None
    assert one > PRICES.cost_usd_max(input_tokens=1_000, output_tokens=1_000)
    assert bench.retrying.cost_usd_max(snapshot) == 3 * one
    assert Bench([], policy=RetryPolicy(requests=1)).retrying.cost_usd_max(snapshot) == one
    assert Bench([], budget=RetryBudget(retries=0)).retrying.cost_usd_max(snapshot) == one


def test_without_a_price_nobody_knows_the_bound() -> None:
    """None is no promise; 0 would be one."""
    assert Bench([], binding=replace(BINDING, prices=None)).retrying.cost_usd_max(asked()) is None


def test_no_reply_is_longer_than_the_least_of_its_limits() -> None:
    """A bound with another limit than the request's own would be wrong."""
    bounds = [
        Bench([], binding=replace(BINDING, **narrowed)).retrying.cost_usd_max(asked())
        for narrowed in (
            {},
            {"output_tokens_max": 500},
            {"options": ModelOptions(max_output_tokens=500)},
            {"options": ModelOptions(max_output_tokens=50_000)},
        )
    ]
    assert bounds[1] == bounds[2] < bounds[0] == bounds[3]


async def test_after_an_answer_the_providers_own_count_bounds_the_next_request() -> None:
    """An estimate of what was counted already would only grow the bound."""
    long = "word " * 10_000
    bench = Bench([says("short")])  # it says that it read 100 tokens and wrote 10
    before = bench.retrying.cost_usd_max(asked(long))
    await bench.retrying.acomplete(asked(long))
    after = bench.retrying.cost_usd_max(asked(long, "short", "and now?"))
    assert before is not None
    assert after is not None
    assert after < before / 2


@dataclass(frozen=True)
class Failing:
    """One request of a drawn call: None answers."""

    error: Callable[[], LLMError] | None


def _failures() -> st.SearchStrategy[Failing]:
    asked_s = st.none() | st.floats(0, 200)
    return st.one_of(
        st.just(Failing(None)),
        asked_s.map(lambda s: Failing(lambda: turned_away(retry_after_s=s))),
        st.just(Failing(cut)),
        st.just(Failing(lambda: Overloaded("busy", Facts(provider="zai", status=529)))),
        st.just(Failing(lambda: RequestInvalid("no", Facts(provider="zai", status=400)))),
    )


@given(
    calls=st.lists(st.lists(_failures(), min_size=1, max_size=12), min_size=1, max_size=4),
    policy=st.builds(
        RetryPolicy,
        requests=st.integers(1, 8),
        billed_retries=st.integers(0, 4),
        wait_base_s=st.floats(0, 5),
        wait_max_s=st.floats(0, 50),
        jitter=st.floats(0, 1),
        retry_after_max_s=st.floats(0, 100),
    ),
    budget=st.builds(RetryBudget, retries=st.integers(0, 10), wait_s=st.floats(0, 300)),
    allowed=st.integers(1, 20),
    drawn=st.floats(0, 1, exclude_max=True),
)
def test_no_history_passes_a_limit_or_loses_a_bill(
    calls: list[list[Failing]], policy: RetryPolicy, budget: RetryBudget, allowed: int, drawn: float
) -> None:
    """PROVIDERS 1, 3, 25: whatever fails in whatever order, each limit holds and each request is recorded once."""
    purse, retries, wait_s = OpenPurse(allowed), budget.retries, budget.wait_s
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def play(failures: list[Failing]) -> None:
        wire = ScriptedModel([says("here") if f.error is None else f.error() for f in [*failures, Failing(None)]])
        retrying = Retrying(
            inner=wire, binding=BINDING, policy=policy, budget=budget, purse=purse, sleep=sleep, draw=lambda: drawn
        )
        before, held = len(slept), len(purse.held)
        try:
            attempts = (await retrying.acomplete(asked())).attempts
            last = 1
        except BudgetReached as refusal:
            attempts, last = refusal.attempts, 0
        except ProviderError as error:
            attempts, last = error.attempts, 1
        sent = len(wire.asked)
        assert sent <= policy.requests
        assert len(slept) - before == len(attempts) == sent - last  # each failure that was followed, once
        assert len(purse.held) - held == sent
        billed = sum(attempt.usage != NOT_BILLED for attempt in attempts)
        assert billed <= policy.billed_retries
        for wait in slept[before:]:
            longest = max(policy.wait_max_s, policy.retry_after_max_s) * (1 + policy.jitter)
            assert wait <= longest

    for failures in calls:
        asyncio.run(play(failures))
    assert len(slept) <= retries
    assert sum(slept) <= wait_s + 1e-6
    assert budget.retries >= 0
    assert budget.wait_s >= -1e-9
    assert [held for held, _ in purse.settled] == purse.held  # every one once, in order


def test_a_policy_that_makes_no_sense_is_refused() -> None:
    """A call of no requests would answer nothing for ever."""
    with pytest.raises(ValueError, match="requests"):
        RetryPolicy(requests=0)
    with pytest.raises(ValueError, match="wait_base_s"):
        RetryPolicy(wait_base_s=float("inf"))
