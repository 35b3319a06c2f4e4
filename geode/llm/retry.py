"""The one owner of retries: around every wire, and around none of them twice.

A wire sends a request once and says how it failed; whether it is sent again is decided here alone. An SDK that retried
by itself would hide what was billed, wait as long as a header says, and multiply with us.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Final, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from geode.clock import Clock, SystemClock
from geode.llm.binding import Binding
from geode.llm.errors import BudgetReached, ProviderError, WaitTooLong
from geode.llm.messages import Delta, DeltaKind, DeltaObserver, LLMAdapter, ModelResponse, StepSnapshot
from geode.llm.spending import NOT_BILLED, NoPurse, Purse, billed_for
from geode.llm.tokens import InputMeter, output_tokens_max
from geode.llm.usage import Attempt, Usage

_DOUBLINGS_MAX: Final = 30  # further ones change nothing, and a float would overflow at last


class RetryPolicy(BaseModel):
    """How often a call is tried, and how long is waited between two requests.

    Attributes:
        requests: how many one call may send, the first included.
        billed_retries: how often one call may be sent again after a request that may have been billed. It bounds what a
            call can cost; requests that the provider turned away are not billed, and do not count.
        wait_base_s: the first wait; each further one is twice as long.
        wait_max_s: no wait of our own grows longer.
        jitter: by what share a wait is made longer at random, so that many sessions do not come back at once.
        retry_after_max_s: a provider that asks for a longer wait is not waited for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: Annotated[int, Field(ge=1, le=100)] = 6
    billed_retries: Annotated[int, Field(ge=0)] = 2
    wait_base_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    wait_max_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 30.0
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.25
    retry_after_max_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 60.0

    def wait_s(self, failed: int, asked_s: float | None, drawn: float) -> float:
        """Return how long to wait after `failed` requests: our own wait, or longer if the provider asks for that."""
        own_s = min(self.wait_max_s, self.wait_base_s * 2.0 ** min(failed - 1, _DOUBLINGS_MAX))
        return max(own_s, asked_s or 0.0) * (1 + self.jitter * drawn)


@dataclass(slots=True, kw_only=True)
class RetryBudget:
    """What the calls of one session may use for retries in all. One object lives as long as its session is open.

    Without it a provider that fails every other time would make a long session wait for hours, each call within its own
    limit.
    """

    retries: int = 60
    wait_s: float = 900.0

    def allows(self, wait_s: float) -> bool:
        """Return whether one more retry after so long a wait is within what is left."""
        return self.retries > 0 and wait_s <= self.wait_s

    def take(self, wait_s: float) -> None:
        """Use one retry and its wait."""
        self.retries -= 1
        self.wait_s -= wait_s


class Shown:
    """Passes the parts of a reply on to whoever shows them, and knows whether anything of this request was shown."""

    def __init__(self, observer: DeltaObserver) -> None:
        self._observer = observer
        self._anything = False

    def __call__(self, delta: Delta) -> None:
        """See `DeltaObserver`."""
        self._anything = True
        self._observer(delta)

    def take_back(self) -> None:
        """Say that what was shown of this request does not count, if anything was."""
        if self._anything:
            self._anything = False
            self._observer(Delta(kind=DeltaKind.AGAIN))

    def settle(self) -> None:
        """Let what was shown stand."""
        self._anything = False


class Billed(Protocol):
    """What a request gave, and what it is billed for."""

    @property
    def usage(self) -> Usage:
        """What it used and cost, as far as that is known."""
        ...


R = TypeVar("R", bound=Billed)


@dataclass(slots=True, kw_only=True)
class Resending:
    """Sends a request until it is answered, within a policy, a budget and a purse. It knows nothing of what is asked.

    Each request is paid from `purse`: held before it is sent, settled when it has ended, however it does. A cancelled
    call is never sent again.

    Args:
        sleep, draw: replaced in tests; `draw` gives a number in [0, 1).
    """

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    budget: RetryBudget = field(default_factory=RetryBudget)
    purse: Purse = field(default_factory=NoPurse)
    clock: Clock = field(default_factory=SystemClock)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = secrets.SystemRandom().random

    async def answered(
        self,
        model: str,
        most_usd: float | None,
        send: Callable[[], Awaitable[R]],
        *,
        before_again: Callable[[], None] | None = None,
    ) -> tuple[R, tuple[Attempt, ...]]:
        """Return what `send` gave, and the requests that failed before.

        Args:
            model: the `route/id` that is billed.
            most_usd: the most that one request can cost; None if nobody knows.
            send: sends the request once.
            before_again: called before each request but the first.

        Raises:
            LLMError: what `send` raised last, or the purse; those that failed before stand in its `attempts`.
        """
        failed: tuple[Attempt, ...] = ()
        perhaps_billed = 0
        while True:
            began_s = self.clock.monotonic_s()
            try:
                return await self._paid(model, most_usd, send), failed
            except BudgetReached as refusal:
                refusal.attempts = failed
                raise
            except ProviderError as error:
                perhaps_billed += billed_for(error) != NOT_BILLED
                elapsed_ms = round((self.clock.monotonic_s() - began_s) * 1000)
                wait_s = self._wait_s(error, failed, perhaps_billed)
                failed = (*failed, _attempt(error, elapsed_ms, wait_s))
            self.budget.take(wait_s)
            await self.sleep(wait_s)
            if before_again is not None:
                before_again()

    async def _paid(self, model: str, most_usd: float | None, send: Callable[[], Awaitable[R]]) -> R:
        """Send one request, and pay for it."""
        held = self.purse.reserve(model, most_usd)
        billed = None
        try:
            response = await send()
            billed = response.usage
        except BaseException as error:
            billed = billed_for(error)
            raise
        finally:
            self.purse.settle(held, billed)
        return response

    def _wait_s(self, error: ProviderError, failed: tuple[Attempt, ...], perhaps_billed: int) -> float:
        """Return how long to wait before the request is sent again.

        Raises:
            ProviderError: `error`, if it is not; `WaitTooLong` if only the wait that was asked for speaks against it.
        """
        error.attempts = failed
        task = asyncio.current_task()
        if not error.retryable or (task is not None and task.cancelling()):
            raise error
        if len(failed) + 1 >= self.policy.requests or perhaps_billed > self.policy.billed_retries:
            raise error
        asked_s = error.facts.retry_after_s or 0.0
        wait_s = self.policy.wait_s(len(failed) + 1, asked_s, self.draw())
        if self.budget.retries > 0 and (asked_s > self.policy.retry_after_max_s or asked_s > self.budget.wait_s):
            raise self._too_long(error, asked_s) from error
        if not self.budget.allows(wait_s):
            error.add_note(f"the session has used up its retries: {self.budget}")
            raise error
        return wait_s

    def _too_long(self, error: ProviderError, asked_s: float) -> WaitTooLong:
        most_s = min(self.policy.retry_after_max_s, self.budget.wait_s)
        problem = WaitTooLong(
            f"{error.args[0]}; it asks to wait {asked_s:g} s, and at most {most_s:g} s are waited: go on later",
            error.facts,
            usage=error.usage,
        )
        problem.attempts = error.attempts
        return problem


@dataclass(slots=True, kw_only=True)
class Retrying(Resending):
    """Implements `LLMAdapter` and `BoundsCost` around a wire.

    Every request that failed stands in the response's `attempts`, or in those of the error.

    Args:
        inner: the wire; it sends one request a call.
        binding: what the wire is bound to; its prices and limits bound what a call costs.
        shown: the observer that the wire was given, if any.
    """

    inner: LLMAdapter
    binding: Binding
    shown: Shown | None = None
    _meter: InputMeter = field(default_factory=InputMeter, init=False)

    @property
    def model(self) -> str:
        """See `LLMAdapter.model`."""
        return self.inner.model

    def cost_usd_max(self, snapshot: StepSnapshot) -> float | None:
        """See `BoundsCost`."""
        one = self._request_usd_max(snapshot)
        again = min(self.policy.billed_retries, self.policy.requests - 1, self.budget.retries)
        return None if one is None else one * (1 + again)

    def _request_usd_max(self, snapshot: StepSnapshot) -> float | None:
        if self.binding.prices is None:
            return None
        # What is longer than the window is refused, and not billed.
        read = min(self._meter.at_most(snapshot), self.binding.context_tokens)
        return self.binding.prices.cost_usd_max(
            input_tokens=read, output_tokens=output_tokens_max(self.binding, snapshot)
        )

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """See `LLMAdapter.acomplete`."""
        response, failed = await self.answered(
            self.model,
            self._request_usd_max(snapshot),
            partial(self.inner.acomplete, snapshot),
            before_again=None if self.shown is None else self.shown.take_back,
        )
        if self.shown is not None:
            self.shown.settle()
        self._meter.count(snapshot, response.usage)
        return replace(response, attempts=(*failed, *response.attempts))


def _attempt(error: ProviderError, elapsed_ms: int, wait_s: float) -> Attempt:
    return Attempt(
        error=type(error).__name__,
        status=error.facts.status,
        request_id=error.facts.request_id,
        elapsed_ms=elapsed_ms,
        waited_ms=round(wait_s * 1000),
        usage=billed_for(error),
    )
