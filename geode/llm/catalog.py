"""What is known of each model: the routes that reach it, its limits, prices and manners. It decides nothing.

The table is `catalog.toml`. A model that is not in it is not reached, but for OpenRouter: what somebody configures
there explicitly is kept as it is, with limits that hold for nearly all models and without prices.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from geode.llm.binding import Effort
from geode.llm.prices import Prices
from geode.llm.routes import ModelName, Route

_JEV = re.compile(r"^~?(typesafe/)?jev-(latest|preview|\d)")
"""Decision-only models, by PROVIDERS 1.1. `typesafe/jev-router` is none: it is a router for chat."""

_MOVING = re.compile(r":free$|^~|-latest$|jev-preview$|^openrouter/|^auto$|-router$")
"""Ids that lead to another model from one day, or one request, to the next."""

_CLAUDE_AT_OPENROUTER = re.compile(r"^(anthropic/claude)-([a-z]+)-([\d.]+)$")

_UNLISTED_CONTEXT_TOKENS, _UNLISTED_OUTPUT_TOKENS = 128_000, 16_000


class Tier(StrEnum):
    """What a model of a provider is the default for."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    ECONOMY = "economy"


class Sampling(StrEnum):
    """Which temperatures a model takes."""

    NONE = "none"
    WITHOUT_REASONING = "without_reasoning"
    """Any, together with the effort `none` alone."""
    OPEN_UNIT = "open_unit"
    """Between 0 and 1, neither of them."""
    ANY = "any"


class Entry(BaseModel):
    """One model. `routes` say by which ways it is reached, and its exact id there.

    `served_as` are further ids under which the maker says that it served it. `ends` is the last day on the maker's own
    route. Either it has prices, or `no_prices` says why not. Efforts that are not listed are refused by the provider.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    routes: Mapping[Route, str] = Field(min_length=1)
    tier: Tier | None = None
    context_tokens: int = Field(ge=1_000)
    output_tokens_max: int = Field(ge=0)
    efforts: tuple[Effort, ...]
    sampling: Sampling
    served_as: frozenset[str] = frozenset()
    ends: date | None = None
    decision_only: bool = False
    selector: bool = False
    prices: Prices | None = None
    no_prices: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.prices is None) != bool(self.no_prices):
            raise ValueError("either it has prices, or no_prices says why it has none")
        for name in self.names:
            if is_decision_only(name) != self.decision_only or is_moving(name) != self.selector:
                raise ValueError(f"{name}: decision_only or selector is not what its id says")
        return self

    @property
    def names(self) -> tuple[ModelName, ...]:
        """The model by each of its routes, the maker's own first."""
        return tuple(ModelName(route, model_id) for route, model_id in self.routes.items())

    def prices_by(self, route: Route) -> Prices | None:
        """Return what it costs by `route`: a subscription is not paid by the token."""
        return None if route is Route.OPENAI_CODEX else self.prices

    def served_as_by(self, name: ModelName) -> frozenset[str]:
        """Return the ids that a reply of `name` may carry; none if any will do."""
        if is_moving(name):
            return frozenset()
        if name.route is not Route.OPENROUTER:
            return self.served_as | {name.model_id}
        # OpenRouter answers without the variant that was asked for, and with another order of a Claude's name:
        # `anthropic/claude-4.7-opus-20260416` for `anthropic/claude-opus-4.7`.
        plain = name.model_id.partition(":")[0]
        return frozenset({name.model_id, plain, _CLAUDE_AT_OPENROUTER.sub(r"\1-\3-\2", plain)})

    def ends_by(self, route: Route) -> date | None:
        """Return the last day on which `route` serves it, as far as that is known."""
        return None if route is Route.OPENROUTER else self.ends


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["geode.models/1"] = Field(alias="schema")
    model: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All models that are listed, by each of their names."""

    entries: tuple[Entry, ...]
    by_name: Mapping[ModelName, Entry]

    def find(self, name: ModelName) -> Entry | None:
        """Return what is known of exactly this model by exactly this route; None if it does not reach it."""
        if (entry := self.by_name.get(name)) is not None:
            return entry
        # OpenRouter's ids name a maker; without one it knows none but `auto`, which is listed.
        return _unlisted(name) if name.route is Route.OPENROUTER and "/" in name.model_id else None

    def of_route(self, route: Route) -> Iterator[tuple[ModelName, Entry]]:
        """Yield the models that `route` reaches."""
        yield from ((name, entry) for name, entry in self.by_name.items() if name.route is route)

    def default(self, route: Route, tier: Tier = Tier.PRIMARY) -> ModelName | None:
        """Return the model that is the default of a route's tier. OpenRouter has none: it is configured explicitly."""
        reached = () if route is Route.OPENROUTER else self.of_route(route)
        return next((name for name, entry in reached if entry.tier is tier), None)


@cache
def catalog() -> Catalog:
    """Return the catalogue that GEODE comes with; it is read once.

    Raises:
        ValueError: if the file is not such a catalogue.
    """
    return parse_catalog(files("geode.llm").joinpath("catalog.toml").read_text(encoding="utf-8"))


def parse_catalog(text: str) -> Catalog:
    """Read a catalogue.

    Raises:
        ValueError: if it is none, or names a model, or the default of a tier, twice.
    """
    entries = _Table.model_validate(tomllib.loads(text)).model
    by_name: dict[ModelName, Entry] = {}
    tiers: set[tuple[Route, Tier]] = set()
    for entry in entries:
        for name in entry.names:
            if name in by_name:
                raise ValueError(f"{name} is listed twice")
            by_name[name] = entry
            if entry.tier is not None and (name.route, entry.tier) in tiers:
                raise ValueError(f"{name.route} has two defaults of the tier {entry.tier}")
        tiers |= {(route, entry.tier) for route in entry.routes if entry.tier and route is not Route.OPENROUTER}
    return Catalog(entries=entries, by_name=by_name)


def is_decision_only(name: ModelName) -> bool:
    """Return whether the model answers questions about a text, and cannot hold a conversation."""
    return name.route in (Route.TYPESAFE, Route.OPENROUTER) and _JEV.match(name.model_id) is not None


def is_moving(name: ModelName) -> bool:
    """Return whether the id leads to different models at different times (PROVIDERS 26)."""
    return name.route in (Route.TYPESAFE, Route.OPENROUTER) and _MOVING.search(name.model_id) is not None


def _unlisted(name: ModelName) -> Entry:
    """Return what is assumed of an id that somebody configured explicitly."""
    decides = is_decision_only(name)
    return Entry(
        routes={name.route: name.model_id},
        context_tokens=_UNLISTED_CONTEXT_TOKENS,
        output_tokens_max=0 if decides else _UNLISTED_OUTPUT_TOKENS,
        efforts=tuple(Effort),
        sampling=Sampling.NONE if "claude" in name.model_id else Sampling.ANY,
        decision_only=decides,
        selector=is_moving(name),
        no_prices="it is not in the catalogue",
    )
