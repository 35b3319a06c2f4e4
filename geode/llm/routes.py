"""Routes to models, and the exact form of a model's name: `route/id`, split at the first slash, never upgraded."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from geode.llm.errors import ConfigurationError


class Route(StrEnum):
    """The ways to a model. A model is reached only by a route that admits it."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    OPENAI_CODEX = "openai-codex"
    ZAI = "zai"
    OPENROUTER = "openrouter"
    TYPESAFE = "typesafe"
    SIMULATED = "simulated"
    RECORDED = "recorded"


SIMULATED = ("simulated/apprentice",)
"""The models that ask nobody."""

ARCHIVED: Mapping[str, str] = {"openai-codex/gpt-5.5": "run-2606", "anthropic/claude-opus-4-8": "run-2606"}
"""Models that played a role in records of the past, and in which. Their bindings are kept as recorded."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model by route and exact id."""

    route: Route
    model_id: str

    def __str__(self) -> str:
        return f"{self.route}/{self.model_id}"

    @property
    def wire_id(self) -> str:
        """What the provider calls the model: the selector `auto` of OpenRouter has its maker's name before it there."""
        return "openrouter/auto" if self == ModelName(Route.OPENROUTER, "auto") else self.model_id


def parse_model(text: str) -> ModelName:
    """Read `route/id`.

    Raises:
        ConfigurationError: if there is no slash, no id, or no such route; it names the routes.
    """
    route, slash, model_id = text.partition("/")
    if not slash or not model_id:
        raise ConfigurationError(f"{text!r} is no model name; write route/id, such as {SIMULATED[0]!r}")
    if route not in {known.value for known in Route}:
        raise ConfigurationError(
            f"{text!r} names the route {route!r}; there are {', '.join(known.value for known in Route)}"
        )
    return ModelName(Route(route), model_id)
