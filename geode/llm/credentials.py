"""Keys and addresses of the routes, from the settings' environment. A key is never part of a text or of a repr.

Which route is taken is configured by the model's name, never by which key happens to be set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from geode.llm.catalog import catalog
from geode.llm.errors import ConfigurationError, CredentialMissing, RouteRefused
from geode.llm.routes import ModelName, Route


@dataclass(frozen=True, slots=True)
class Access:
    """How a route is opened: the variable that holds its key, the one that may hold another address, and its own."""

    variable: str
    address_variable: str
    address: str


ACCESS: Mapping[Route, Access] = {
    Route.ANTHROPIC: Access("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    Route.OPENAI: Access("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    Route.OPENAI_CODEX: Access("OPENAI_CODEX_TOKEN", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    Route.ZAI: Access("ZAI_API_KEY", "ZAI_BASE_URL", "https://api.z.ai/api/paas/v4"),
    Route.OPENROUTER: Access("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1"),
    Route.TYPESAFE: Access("TYPESAFE_API_KEY", "TYPESAFE_BASE_URL", "https://api.typesafe.ai"),
}
"""The routes that a key opens. The addresses have the form that each route's SDK wants."""

_SUBSCRIPTION_TOKEN = "sk-ant-oat"  # noqa: S105  (how such a token begins, not one)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What opens a route."""

    key: str = field(repr=False)
    base_url: str


def has_key(route: Route, environment: Mapping[str, str]) -> bool:
    """Return whether a key for `route` is set."""
    return bool(environment.get(ACCESS[route].variable, "").strip())


def credentials(model: ModelName, environment: Mapping[str, str]) -> Credentials:
    """Return the key and the address by which `model` is reached.

    Raises:
        CredentialMissing: if there is no key; it names the variable, the route, and the other routes to the model.
        RouteRefused: if the key or the address is of a subscription that may not be used so.
        ConfigurationError: if the key or the address cannot be one. No text shows a key.
    """
    access = ACCESS[model.route]
    key = environment.get(access.variable, "").strip()
    if not key:
        raise CredentialMissing(_how_to_get_in(model, environment))
    if model.route is Route.ANTHROPIC and key.startswith(_SUBSCRIPTION_TOKEN):
        raise RouteRefused(
            f"{access.variable} holds the OAuth token of a Claude subscription; Anthropic admits those for its own"
            " programs alone. Put an API key of platform.claude.com there"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigurationError(f"{access.variable} holds characters that no key has; set it again, without quotes")
    base_url = environment.get(access.address_variable, "").strip().rstrip("/") or access.address
    _check_address(model.route, access.address_variable, base_url)
    # Its SDK adds the version; with one in the address as well each request would end in a 404 (PROVIDERS 3).
    return Credentials(key=key, base_url=base_url.removesuffix("/v1") if model.route is Route.ANTHROPIC else base_url)


def _check_address(route: Route, variable: str, base_url: str) -> None:
    parts = _parts(base_url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{variable} is no address; write it as https://host/path, or unset it")
    if parts.username is not None:
        raise ConfigurationError(f"{variable} holds a name or a password; the key alone opens the route")
    if route is Route.ZAI and "/api/coding/" in f"{parts.path}/":
        raise RouteRefused(
            f"{variable} is the address of the GLM Coding Plan, which Z.ai sells for coding tools that it names; unset"
            f" it, for pay as you go at {ACCESS[route].address}"
        )
    if route is Route.OPENAI_CODEX and "/backend-api" in parts.path:
        raise RouteRefused(
            f"{variable} is an address that only ChatGPT's own programs may use; unset it: a token of Sign in with"
            f" ChatGPT is taken at {ACCESS[route].address}"
        )


def _parts(base_url: str) -> SplitResult | None:
    """Return the parts of an address; None where a client could not read it."""
    try:
        parts = urlsplit(base_url)
        readable = parts.port != 0 and base_url.isprintable() and " " not in base_url
    except ValueError:  # a port, or a host in brackets, that cannot be one
        return None
    return parts if readable else None


def _how_to_get_in(model: ModelName, environment: Mapping[str, str]) -> str:
    variable = ACCESS[model.route].variable
    text = f"no key for {str(model)!r}: the route {model.route} needs {variable}; set it in the environment"
    entry = catalog().find(model)
    others = [name for name in entry.names if name != model] if entry else []
    if others:
        ways = (f"{str(name)!r} ({ACCESS[name.route].variable}{_held(name.route, environment)})" for name in others)
        text += f". The model is also reached as {', '.join(ways)}"
    else:
        text += ". No other route reaches the model"
    return text


def _held(route: Route, environment: Mapping[str, str]) -> str:
    return " is set" if has_key(route, environment) else ""
