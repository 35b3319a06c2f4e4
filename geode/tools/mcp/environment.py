"""What a server gets of our environment: a short list that holds no key, and what its settings name."""

from collections.abc import Mapping

from geode.tools.mcp.settings import BadServerSettings, HttpServer, StdioServer

# What programs need to find themselves and their caches. A server is the owner's program, so it keeps the owner's HOME.
INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "USER")


def server_environment(server: StdioServer, ours: Mapping[str, str]) -> dict[str, str]:
    """All that the child inherits.

    Raises:
        BadServerSettings: if the settings name a variable that is not set.
    """
    return {
        **{name: ours[name] for name in INHERITED if name in ours},
        **server.environment,
        **_taken(server.environment_from, ours),
    }


def server_headers(server: HttpServer, ours: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request.

    Raises:
        BadServerSettings: if the settings name a variable that is not set.
    """
    return {**server.headers, **_taken(server.headers_from, ours)}


def given_values(server: StdioServer | HttpServer, ours: Mapping[str, str]) -> tuple[str, ...]:
    """The values of ours that the server is given: secrets, whatever their variables are called."""
    wanted = server.environment_from if isinstance(server, StdioServer) else server.headers_from
    return tuple(ours[variable] for variable in wanted.values() if variable in ours)


def _taken(wanted: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    if missing := sorted({variable for variable in wanted.values() if variable not in ours}):
        raise BadServerSettings(f"its settings take {', '.join(missing)} from the environment, where it is not set")
    return {name: ours[variable] for name, variable in wanted.items()}
