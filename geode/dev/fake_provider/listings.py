"""`GET .../models` of each provider."""

from collections.abc import Iterable
from typing import Any, Final

from geode.dev.fake_provider.models import DECISION_MODELS, JEV, KNOWN
from geode.dev.fake_provider.script import HttpReply
from geode.dev.fake_provider.wire import json_reply
from geode.llm.routes import Route

_ALIASES: Final = ("jev-latest", "jev-preview")  # all that TypeSafe lists; exact ids are served all the same
_CREATED: Final = 1_790_200_001


def listing(route: Route, more: Iterable[str], *, decisions: bool = False) -> HttpReply:
    """Return the listing of `route`. OpenRouter's has decision models only if it is asked for them."""
    if route is Route.TYPESAFE:
        told = {"description": "General-purpose system one model.", "release_date": "2026-09-15"}
        return json_reply(200, {"models": [{"name": name, **told} for name in _ALIASES]})
    if route is Route.OPENROUTER and decisions:
        names = sorted(DECISION_MODELS[route])
    else:
        names = sorted(name for name in {*KNOWN[route], *more} if not JEV.match(name))
    return json_reply(200, _body(route, names))


def _body(route: Route, names: list[str]) -> dict[str, Any]:
    match route:
        case Route.ANTHROPIC:
            made = "2026-10-21T00:00:00Z"
            models = [{"type": "model", "id": name, "display_name": name, "created_at": made} for name in names]
            return {"data": models, "has_more": False, "first_id": names[0], "last_id": names[-1]}
        case Route.OPENROUTER:
            price = {"prompt": "0.000001", "completion": "0.000005"}
            return {"data": [{"id": name, "name": name, "context_length": 200_000, "pricing": price} for name in names]}
    listed = [{"id": name, "object": "model", "created": _CREATED, "owned_by": "openai"} for name in names]
    return {"object": "list", "data": listed}
