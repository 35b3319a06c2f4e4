"""Keys: the made-up one of each route, and what a missing or wrong one is answered with."""

from collections.abc import Mapping
from typing import Final

from geode.dev.fake_provider import failures
from geode.dev.fake_provider.log import bare_key
from geode.dev.fake_provider.script import Failure, HttpReply
from geode.dev.fake_provider.wire import Refused, json_reply
from geode.llm.routes import Route

FAKE_KEYS: Final[Mapping[Route, str]] = {
    Route.ANTHROPIC: "sk-ant-fake-0000000000000000",
    Route.OPENAI: "sk-fake-0000000000000000",
    Route.OPENAI_CODEX: "fake-chatgpt-token-0000000000000000",
    Route.OPENROUTER: "sk-or-fake-0000000000000000",
    Route.ZAI: "fake-zai-0000000000000000",
    Route.TYPESAFE: "fake-typesafe-0000000000000000",
}
EXPIRED: Final = "fake-chatgpt-token-expired"
"""A subscription token that is always refused as expired."""


def admitted(route: Route, headers: Mapping[str, str], keys: Mapping[Route, str]) -> Route:
    """Return whose key a request to `route` carries: a subscription token has rules of its own.

    Raises:
        Refused: if there is no key, or one of nobody or of another provider.
    """
    key = bare_key(headers.get("authorization", ""))
    if not key and route is Route.ANTHROPIC:
        key = headers.get("x-api-key", "")
    if not key:
        raise Refused(_missing(route))
    if route is Route.OPENAI and key == keys[Route.OPENAI_CODEX]:
        return Route.OPENAI_CODEX
    if key == keys[route]:
        return route
    if route is Route.OPENAI and key == EXPIRED:
        raise Refused(failures.openai(Failure.TOKEN_EXPIRED, ""))
    raise Refused(_wrong(route, key))


def _missing(route: Route) -> HttpReply:
    match route:
        case Route.ANTHROPIC:
            error = {"type": "authentication_error", "message": "x-api-key header is required"}
            return json_reply(401, {"type": "error", "error": error, "request_id": "req_fake"})
        case Route.OPENROUTER:
            return json_reply(401, {"error": {"message": "Missing Authentication header", "code": 401}})
        case Route.ZAI:
            message = "Authentication parameter not received in Header, unable to authenticate"
            return json_reply(401, {"error": {"code": "1001", "message": message}})
        case Route.TYPESAFE:
            return failures.typesafe(Failure.FORBIDDEN, "")  # 403 for a missing key, 401 for a wrong one
    message = "Missing bearer authentication in header"
    return json_reply(
        401, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
    )


def _wrong(route: Route, key: str) -> HttpReply:
    match route:
        case Route.ANTHROPIC:
            return failures.anthropic(Failure.BAD_KEY, "req_fake", "")
        case Route.OPENROUTER:
            return failures.openrouter(Failure.BAD_KEY, "")
        case Route.ZAI:
            return failures.zai(Failure.BAD_KEY, "")
        case Route.TYPESAFE:
            return failures.typesafe(Failure.BAD_KEY, "")
    return failures.openai(Failure.BAD_KEY, f"{key[:3]}***{key[-4:]}" if len(key) > 12 else "***")
