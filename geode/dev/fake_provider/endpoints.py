"""Which path belongs to whom. Every wire has a prefix of its own; paths that do not collide work without it too."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from geode.llm.routes import Route


class Kind(StrEnum):
    """What is served at a path."""

    MESSAGES = "messages"
    RESPONSES = "responses"
    CHAT = "chat"
    DECISIONS = "decisions"
    MODELS = "models"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path of one provider."""

    route: Route
    kind: Kind
    path: str


PREFIXES: Final[Mapping[Route, str]] = {
    Route.ANTHROPIC: "/anthropic",
    Route.OPENAI: "/openai",
    Route.OPENAI_CODEX: "/openai",
    Route.OPENROUTER: "/openrouter",
    Route.ZAI: "/zai",
    Route.TYPESAFE: "/typesafe",
}
BASES: Final[Mapping[Route, str]] = {
    Route.ANTHROPIC: "/anthropic",
    Route.OPENAI: "/openai/v1",
    Route.OPENAI_CODEX: "/openai/v1",
    Route.OPENROUTER: "/openrouter/api/v1",
    Route.ZAI: "/zai/api/paas/v4",
    Route.TYPESAFE: "/typesafe",
}
"""What the SDK of each route wants as its base URL, after the host."""

ENDPOINTS: Final = (
    Endpoint(Route.ANTHROPIC, Kind.MESSAGES, "/v1/messages"),
    Endpoint(Route.ANTHROPIC, Kind.MODELS, "/v1/models"),
    Endpoint(Route.OPENAI, Kind.RESPONSES, "/v1/responses"),
    Endpoint(Route.OPENAI, Kind.MODELS, "/v1/models"),
    Endpoint(Route.OPENROUTER, Kind.CHAT, "/api/v1/chat/completions"),
    Endpoint(Route.OPENROUTER, Kind.DECISIONS, "/api/alpha/decisions"),
    Endpoint(Route.OPENROUTER, Kind.DECISIONS, "/api/v1/systemone"),
    Endpoint(Route.OPENROUTER, Kind.MODELS, "/api/v1/models"),
    Endpoint(Route.ZAI, Kind.CHAT, "/api/paas/v4/chat/completions"),
    Endpoint(Route.TYPESAFE, Kind.DECISIONS, "/v1/systemone"),
    Endpoint(Route.TYPESAFE, Kind.MODELS, "/v1/models"),
    # The host of OpenRouter answers this path with its website, under status 200.
    Endpoint(Route.OPENROUTER, Kind.HTML, "/v1/systemone"),
)


def table() -> dict[str, Endpoint]:
    """Return the endpoint of each path; where two collide without a prefix, the first that is listed has it."""
    served: dict[str, Endpoint] = {}
    for endpoint in ENDPOINTS:
        served[PREFIXES[endpoint.route] + endpoint.path] = endpoint
        served.setdefault(endpoint.path, endpoint)
    return served
