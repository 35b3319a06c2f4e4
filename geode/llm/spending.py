"""Money is held before a request is sent, and settled when it has ended: how caps on spending are kept.

What a request costs is known when it is over. So whoever sends one has the most that it can cost set aside before, and
is refused if that would pass a cap. Whoever keeps the accounts (`geode.records.spend`) knows the caps and who spends.
"""

from dataclasses import dataclass
from typing import Protocol

from geode.llm.errors import ProviderError
from geode.llm.routes import Route
from geode.llm.usage import CostOrigin, Usage

_PERHAPS_BILLED = frozenset({408, 499, 500, 502, 504, 520, 522, 524})
"""Replies of somebody who gave up on work that had begun."""


_FREE = (f"{Route.SIMULATED}/", f"{Route.RECORDED}/")


def is_billed(model: str) -> bool:
    """Whether somebody may be billed for calls of `route/id`. For those of the others no account is kept."""
    return not model.startswith(_FREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is held for one request. `entry` is the purse's own name for it."""

    model: str
    most_usd: float | None
    entry: int = 0


class Purse(Protocol):
    """Who is asked before each request that may be billed, and told after it: once each, whatever happens between.

    Neither waits long, nor raises anything but what is said here: the caller asks right before it sends.
    """

    def reserve(self, model: str, most_usd: float | None) -> Reservation:
        """Hold the most that a request to `model` (`route/id`) can cost; None if nobody knows its price.

        Raises:
            BudgetReached: if it could pass a cap; it must not be sent. The text names the cap, what is spent, what the
                request may cost and what to do.
        """
        ...

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Count what the request was billed for instead of what was held.

        None, or a usage without a cost, counts as the most that was held: nobody knows what a request cost that was
        cancelled, cut or lost. `billed_for` says what is known of one that failed.
        """
        ...


class NoPurse:
    """Keeps no account, and allows everything."""

    def reserve(self, model: str, most_usd: float | None) -> Reservation:
        """Hold nothing."""
        return Reservation(model=model, most_usd=most_usd)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Count nothing."""


NOT_BILLED = Usage(uncached_input_tokens=0, output_tokens=0, cost_usd=0.0, cost_origin=CostOrigin.COMPUTED)
"""What a request used that the provider turned away."""


def billed_for(error: BaseException) -> Usage | None:
    """Return what a failed request was billed for; None where nobody knows.

    Providers do not bill a request that they turned away by its status before they began. A time-out, a broken stream
    and an error inside of one come after that.
    """
    if not isinstance(error, ProviderError):
        return None
    if error.usage is not None:
        return error.usage
    status = error.facts.status or 0
    return NOT_BILLED if status >= 400 and status not in _PERHAPS_BILLED else None
