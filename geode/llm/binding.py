"""What an adapter is bound to: one exact model on one route, with its key, its address and its options."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from geode.llm.prices import Prices
from geode.llm.routes import ModelName

_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
"""How providers name a dated snapshot of a model: its id, and a day."""


class Effort(StrEnum):
    """How much a model may think. Which of them a model takes, the catalogue says."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class ModelOptions(BaseModel):
    """What a configuration may say about how a model is asked. What is not said is the provider's default.

    `upstream` names who runs the model behind OpenRouter; it is then asked of nobody else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    effort: Effort | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    upstream: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One model, reachable. Made by `geode.llm.opening` from the catalogue and the settings, which checked it.

    `base_url` has the form that the route's SDK wants; `key` is never shown. `served_as` are the ids under which the
    provider may say that it served the model, the bound one among them; empty if any will do, for a selector.
    `prices` are None where nobody knows them.
    """

    model: ModelName
    key: str = field(repr=False)
    base_url: str
    served_as: frozenset[str]
    context_tokens: int
    output_tokens_max: int
    prices: Prices | None
    options: ModelOptions = field(default_factory=ModelOptions)
    timeout_s: float = 600.0

    def is_served_as(self, served: str) -> bool:
        """Return whether a reply of `served` is one of the bound model: an id of it, or a dated snapshot of one."""
        return not self.served_as or served in self.served_as or _SNAPSHOT.sub("", served) in self.served_as
