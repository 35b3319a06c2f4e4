"""Settings are where rights come from, so a file that could be read in two ways is not read at all."""

from pathlib import Path

import pytest

from geode.authority import DataClass, SafetyLevel
from geode.tools.mcp.settings import (
    Access,
    BadServerSettings,
    HttpServer,
    McpSettings,
    StdioServer,
    parse_settings,
)

PATH = Path("mcp.yaml")
WHOLE = """
schema: geode.mcp/1
servers:
  postgres:
    transport: stdio
    command: [postgres-mcp, --access-mode=restricted]
    environment_from: {DATABASE_URI: ORDERS_DB}
    tools:
      execute_sql: {level: read, data_class: personal, resources: {orders: shared}, timeout_s: 5}
  remote:
    transport: http
    url: https://example.com/mcp
    headers_from: {Authorization: REMOTE_TOKEN}
"""


def parsed(text: str) -> McpSettings:
    return parse_settings(text.encode(), PATH)


def test_a_whole_file_says_how_each_server_is_reached_and_what_its_tools_may_do() -> None:
    """What the documentation shows must be what is read."""
    servers = parsed(WHOLE).servers
    postgres, remote = servers["postgres"], servers["remote"]
    assert isinstance(postgres, StdioServer)
    assert postgres.command == ("postgres-mcp", "--access-mode=restricted")
    policy = postgres.tools["execute_sql"]
    assert (policy.level, policy.data_class, policy.timeout_s) == (SafetyLevel.READ, DataClass.PERSONAL, 5)
    assert policy.resources == {"orders": Access.SHARED}
    assert isinstance(remote, HttpServer)
    assert remote.headers_from == {"Authorization": "REMOTE_TOKEN"}


SERVER = "schema: geode.mcp/1\nservers:\n  a: {transport: stdio, command: [x], tools: {t: %s}}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("servers: {}", "schema: Field required"),
        ("schema: geode.mcp/2", "schema: Input should be 'geode.mcp/1'"),
        ("[1, 2]", "the file: Input should be"),
        ("schema: geode.mcp/1\nservers: {A: {transport: stdio, command: [x]}}", "should match pattern"),
        ("schema: geode.mcp/1\nservers: {a_b: {transport: stdio, command: [x]}}", "should match pattern"),
        ("schema: geode.mcp/1\nservers: {a: {transport: smoke}}", "'smoke'"),
        ("schema: geode.mcp/1\nservers: {a: {transport: stdio, command: []}}", "at least 1 item"),
        ("schema: geode.mcp/1\nservers: {a: {transport: http, url: 'http://example.com/x'}}", "use https"),
        ("schema: geode.mcp/1\nservers: {a: {transport: http, url: 'https://me:pw@example.com'}}", "in a header"),
        ("schema: geode.mcp/1\nservers: {a: {transport: http, url: 'file:///etc/passwd'}}", "no http or https"),
        (SERVER % "{level: read}", "data_class: Field required"),
        (SERVER % "{level: harmless, data_class: none}", "'harmless' is none of read, write"),
        (SERVER % "{level: 0, data_class: none}", "0 is none of read"),
        (SERVER % "{level: admin, data_class: none, level: read}", "'level' stands twice"),
        (SERVER % "{level: read, data_class: none, allow: true}", "Extra inputs"),
        (SERVER % "{<<: {level: read}, data_class: none}", "'<<' stands twice"),
        ("schema: &a geode.mcp/1\nservers: *a", "an alias"),
        ("a: !!python/object:os.system {}", "cannot be read"),
        ("[" * 5000, "cannot be read"),
        ("é".encode("latin-1").decode("latin-1"), "the file"),
    ],
)
def test_what_could_mean_something_else_is_refused_with_its_place(text: str, told: str) -> None:
    """A17: a second `level` further down, or an alias, would show one thing and do another."""
    with pytest.raises(BadServerSettings) as refused:
        parsed(text)
    assert told in str(refused.value)
    assert str(refused.value).startswith("mcp.yaml")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/mcp", "http://localhost/mcp", "http://[::1]:9/mcp"])
def test_loopback_needs_no_encryption(url: str) -> None:
    """The twin of the refusal above: a server on this machine is reached as it is."""
    assert parsed(f"schema: geode.mcp/1\nservers: {{a: {{transport: http, url: '{url}'}}}}").servers["a"]
