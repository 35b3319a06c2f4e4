"""The ids that each wire knows: GEODE's own list, and newer exact ids that the providers' SDKs name."""

import re
from collections.abc import Mapping
from typing import Final

from geode.dev.fake_provider.wire import words
from geode.llm.catalog import catalog
from geode.llm.routes import Route

JEV: Final = re.compile(r"^~?(typesafe/)?jev-(latest|preview|\d)")
"""Decision-only models. `typesafe/jev-router` is none: it is a router for chat."""

_ANTHROPIC: Final = words(
    "claude-fable-5-2 claude-fable-5-1 claude-fable-5 claude-opus-5-5 claude-opus-5 claude-opus-4-8 claude-opus-4-7"
    " claude-opus-4-6 claude-opus-4-5 claude-sonnet-5-5 claude-sonnet-5 claude-sonnet-4-6 claude-sonnet-4-5-20250929"
    " claude-haiku-5-5 claude-haiku-4-5-20251001 claude-haiku-4-5"
)
_OPENAI: Final = words(
    "gpt-6-astra gpt-6-sol gpt-6-luna gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-5.5 gpt-5.3-codex gpt-5.4"
    " gpt-5.4-mini gpt-5.4-nano gpt-6.2-astra gpt-6.2-sol gpt-6.1-sol gpt-6.1-terra"
)
_CODEX: Final = words("gpt-6-astra gpt-6-sol gpt-6-luna gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna")
_ZAI: Final = words("glm-5.3 glm-5.3-flash glm-5.3-flashx glm-5.2 glm-5.1 glm-5 glm-4.7 glm-4.7-flashx glm-4.7-flash")
_OPENROUTER: Final = words(
    "openrouter/auto openrouter/free openrouter/openrouter/free typesafe/jev-router google/gemini-3-pro"
    " moonshotai/kimi-k2 deepseek/deepseek-v4"
)

KNOWN: Final[Mapping[Route, frozenset[str]]] = {
    Route.ANTHROPIC: _ANTHROPIC,
    Route.OPENAI: _OPENAI,
    Route.OPENAI_CODEX: _CODEX,
    Route.ZAI: _ZAI,
    Route.OPENROUTER: frozenset(
        [
            *_OPENROUTER,
            *(f"anthropic/{name}" for name in _ANTHROPIC),
            *(f"openai/{name}" for name in _OPENAI),
            *(f"z-ai/{name}" for name in _ZAI),
            *(name.model_id for name, entry in catalog().of_route(Route.OPENROUTER) if not entry.decision_only),
        ]
    ),
}

DECISION_MODELS: Final[Mapping[Route, Mapping[str, str]]] = {
    Route.TYPESAFE: {
        "jev-1.13.0": "jev-1.13.0",
        "jev-1.14.0": "jev-1.14.0",
        "jev-latest": "jev-1.14.0",
        "jev-preview": "jev-1.14.0",
    },
    Route.OPENROUTER: {
        "typesafe/jev-1.13": "typesafe/jev-1.13-20260917",
        "typesafe/jev-1.14": "typesafe/jev-1.14-20261016",
        "~typesafe/jev-latest": "typesafe/jev-1.14-20261016",
    },
}
"""By the id that is asked for, the id that is served."""
