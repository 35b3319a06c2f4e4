"""What tokens of a model cost, and what a call can cost at the most."""

from pydantic import BaseModel, ConfigDict, Field

from geode.llm.usage import Usage

_MILLION = 1_000_000


class LongRequests(BaseModel):
    """What a request costs, as a whole, that reads more than so many tokens: times the usual prices."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    above_input_tokens: int = Field(gt=0)
    input_factor: float = Field(ge=1)
    output_factor: float = Field(ge=1)


class Prices(BaseModel):
    """US dollars for a million tokens of each class, from when they hold and who says so.

    A class without a price of its own costs what uncached input costs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    cache_write_1h: float | None = Field(default=None, ge=0)
    long: LongRequests | None = None
    as_of: str
    source: str

    def cost_usd(self, usage: Usage) -> float | None:
        """Return what `usage` costs; None if the provider did not say how much it read or wrote."""
        if usage.uncached_input_tokens is None or usage.output_tokens is None:
            return None
        written, written_1h = usage.cache_write_tokens or 0, usage.cache_write_1h_tokens or 0
        write = self.input if self.cache_write is None else self.cache_write
        read = (
            (usage.uncached_input_tokens, self.input),
            (usage.cache_read_tokens or 0, self.input if self.cache_read is None else self.cache_read),
            (written - written_1h, write),
            (written_1h, write if self.cache_write_1h is None else self.cache_write_1h),
        )
        factors = self._factors(sum(tokens for tokens, _ in read))
        cost = sum(tokens * price for tokens, price in read) * factors[0]
        return (cost + usage.output_tokens * self.output * factors[1]) / _MILLION

    def cost_usd_max(self, *, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a call with so many tokens can cost, whatever a cache does with its input."""
        dearest = max(self.input, self.cache_write or 0.0, self.cache_write_1h or 0.0)
        factors = self._factors(input_tokens)
        return (input_tokens * dearest * factors[0] + output_tokens * self.output * factors[1]) / _MILLION

    def _factors(self, input_tokens: int) -> tuple[float, float]:
        """Return by what input and output are dearer in a request that reads so many tokens."""
        if self.long is None or input_tokens <= self.long.above_input_tokens:
            return 1.0, 1.0
        return self.long.input_factor, self.long.output_factor
