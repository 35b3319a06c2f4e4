"""What model calls used and cost: one record, whatever the wire counts and however it calls it."""

from dataclasses import dataclass
from enum import StrEnum


class CostOrigin(StrEnum):
    """Where the cost of a call comes from."""

    REPORTED = "reported"
    """The provider said it."""
    COMPUTED = "computed"
    """Tokens times the prices of the catalogue."""
    SIMULATED = "simulated"
    """Nominal prices of a model that nobody bills."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens by class, each counted once, and their cost in US dollars. What was not said is None, never 0.

    `cache_write_tokens` are all of them, `cache_write_1h_tokens` those that are kept for an hour. `output_tokens`
    contain `reasoning_tokens`.
    """

    uncached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    cache_read_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    cost_origin: CostOrigin = CostOrigin.UNKNOWN

    @property
    def input_tokens(self) -> int | None:
        """All input tokens, cached or not; None if the provider did not say how many it read."""
        if self.uncached_input_tokens is None:
            return None
        return self.uncached_input_tokens + (self.cache_write_tokens or 0) + (self.cache_read_tokens or 0)

    @property
    def total_tokens(self) -> int | None:
        """Input and output together; None if either is not known."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A request that gave no response, and that another one followed.

    `usage` is what it was billed for, with figures of 0 if nothing; None where nobody knows. `status` is the HTTP
    status, None where no reply came.
    """

    error: str
    status: int | None = None
    request_id: str = ""
    elapsed_ms: int = 0
    waited_ms: int = 0
    usage: Usage | None = None


def shown_usd(cost_usd: float | None) -> str:
    """Return a cost for people: with its unit, or that it is not known."""
    return "cost unknown" if cost_usd is None else f"{cost_usd:.4f} USD"
