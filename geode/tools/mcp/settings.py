"""What the owner says of MCP servers: how each is reached, and what each tool may do. Nothing else gives rights."""

import ipaddress
from collections.abc import Callable
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from geode.authority import DataClass, SafetyLevel
from geode.config.plain_yaml import parse_plain_yaml

_Level = TypeVar("_Level", bound=IntEnum)


class BadServerSettings(ValueError):  # noqa: N818  (it names what is bad)
    """A settings file of MCP servers cannot be used; the text names the place."""


class Access(StrEnum):
    """How a call holds a resource: beside others that share it, or alone."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"


class Protocol(StrEnum):
    """Which revision to speak. `AUTO` asks for the newest, and falls back to the handshake of the older ones."""

    AUTO = "auto"
    HANDSHAKE = "2025-11-25"
    STATELESS = "2026-07-28"


def _by_name(kind: type[_Level]) -> Callable[[object], object]:
    def read(value: object) -> object:
        known = {member.name.lower(): member for member in kind}
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{value!r} is none of {', '.join(known)}")
        return known[value]

    return read


def _safe_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no http or https address")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address holds no user or password; send them in a header")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError(f"{url!r} is not encrypted and leaves this machine; use https")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolPolicy(_Part):
    """What a call of one tool can do, in the owner's judgement, and what it holds while it runs.

    `resources` are names of the owner's own; without any, calls of a server exclude each other, except that two reads
    may run together.
    """

    level: Annotated[SafetyLevel, BeforeValidator(_by_name(SafetyLevel))]
    data_class: Annotated[DataClass, BeforeValidator(_by_name(DataClass))]
    resources: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")], Access] = {}
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0


class _Server(_Part):
    tools: dict[str, ToolPolicy] = {}
    protocol: Protocol = Protocol.AUTO
    start_timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    restarts_max: Annotated[int, Field(ge=0, le=20)] = 3


class StdioServer(_Server):
    """A server that is started as a child, and spoken to over its standard input and output.

    Its environment is a short list (see `geode.tools.mcp.environment`), `environment`, and `environment_from`: the
    values of variables of ours, by the name under which the server gets them.
    """

    transport: Literal["stdio"]
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    environment: dict[str, str] = {}
    environment_from: dict[str, str] = {}


class HttpServer(_Server):
    """A server at an address (streamable HTTP). `headers_from` takes values from variables of ours."""

    transport: Literal["http"]
    url: Annotated[str, AfterValidator(_safe_url)]
    headers: dict[str, str] = {}
    headers_from: dict[str, str] = {}


ServerSettings = Annotated[StdioServer | HttpServer, Field(discriminator="transport")]
# No "_", so that the first "__" of a bound name ends the server's.
ServerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,19}$")]


class McpSettings(_Part):
    """One settings file."""

    schema_: Literal["geode.mcp/1"] = Field(alias="schema")
    servers: dict[ServerName, ServerSettings] = {}


def parse_settings(content: bytes, path: Path) -> McpSettings:
    """Read the content of the settings file at `path`.

    Raises:
        BadServerSettings: naming the file, the place and what is wrong.
    """
    try:
        return McpSettings.model_validate(parse_plain_yaml(content))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise BadServerSettings(f"{path}: {place}: {first['msg']}") from error
    except ValueError as error:
        raise BadServerSettings(f"{path} cannot be read: {error}") from error
