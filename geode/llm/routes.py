"""Routes to models, and the exact form of a model's name: `route/id`, split at the first slash, never upgraded."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from geode.llm.errors import ConfigurationError, RouteRefused


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


LAUNCHABLE = ("simulated/apprentice",)
"""The models that a session can be opened on."""

ARCHIVED: Mapping[str, str] = {"openai-codex/gpt-5.5": "run-2606", "anthropic/claude-opus-4-8": "run-2606"}
"""Models that played a role in records of the past, and in which. Their bindings are kept as recorded."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model by route and exact id."""

    route: Route
    model_id: str

    def __str__(self) -> str:
        return f"{self.route}/{self.model_id}"


def parse_model(text: str) -> ModelName:
    """Read `route/id`.

    Raises:
        ConfigurationError: if there is no slash, no id, or no such route; it names the routes.
    """
    route, slash, model_id = text.partition("/")
    if not slash or not model_id:
        raise ConfigurationError(f"{text!r} is no model name; write route/id, such as {LAUNCHABLE[0]!r}")
    if route not in {known.value for known in Route}:
        raise ConfigurationError(
            f"{text!r} names the route {route!r}; there are {', '.join(known.value for known in Route)}"
        )
    return ModelName(Route(route), model_id)


def check_launchable(text: str) -> ModelName:
    """Return the model if a session can be opened on it.

    Raises:
        ConfigurationError: if the name is not well formed.
        RouteRefused: if nothing here can reach it, with what can be used instead.
    """
    model = parse_model(text)
    if str(model) in LAUNCHABLE:
        return model
    if run := ARCHIVED.get(text):
        raise RouteRefused(
            f"{text!r} is bound as {run} has it on record: it can be replayed from those records, not launched, since a"
            " new answer would not be that run, and this version has no adapter that reaches it. Replay: `geode archive"
            f" import PATH`; for new episodes bind the role to one of {', '.join(LAUNCHABLE)}"
        )
    if model.route is Route.RECORDED:
        raise RouteRefused(f"{text!r} can be replayed, not launched; launch one of {', '.join(LAUNCHABLE)}")
    raise RouteRefused(
        f"this version has no adapter that reaches {text!r}; models that can be launched: {', '.join(LAUNCHABLE)}"
    )
