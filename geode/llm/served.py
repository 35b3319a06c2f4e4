"""What a reply says of itself, held against what was bound: which model answered, and what it cost."""

from dataclasses import replace

from geode.llm.binding import Binding
from geode.llm.errors import Facts, ServedModelDiffers
from geode.llm.usage import CostOrigin, Usage


def priced(usage: Usage, binding: Binding, reported_usd: float | None = None) -> Usage:
    """Return `usage` with its cost: as the provider reported it, else by the prices of the binding, else unknown."""
    if reported_usd is not None:
        return replace(usage, cost_usd=reported_usd, cost_origin=CostOrigin.REPORTED)
    cost = None if binding.prices is None else binding.prices.cost_usd(usage)
    return usage if cost is None else replace(usage, cost_usd=cost, cost_origin=CostOrigin.COMPUTED)


def check_served(served: str, binding: Binding, facts: Facts, usage: Usage) -> None:
    """Hold the model that answered against the one that is bound.

    Raises:
        ServedModelDiffers: with what the answer cost all the same.
    """
    if not binding.is_served_as(served):
        raise ServedModelDiffers(
            f"{served!r} answered, but {binding.model} is bound, which is served as"
            f" {', '.join(map(repr, sorted(binding.served_as)))}; the answer does not count",
            facts,
            usage=usage,
        )
