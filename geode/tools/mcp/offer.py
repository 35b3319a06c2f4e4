"""Which of the tools that servers list are offered to a session, and why the others are not.

A tool needs all of: a policy of the owner's, a usable schema, a name of its own, and an approval of exactly what its
server says of it. Its server's claims about it count for nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from geode.authority import SafetyLevel
from geode.tools.mcp.connection import Connection
from geode.tools.mcp.listing import ListedTool
from geode.tools.mcp.names import ToolAddress, assign_names
from geode.tools.mcp.settings import Access, ToolPolicy
from geode.tools.mcp.sources import ConfiguredServer
from geode.tools.mcp.trust import TrustStore
from geode.tools.spec import ResourceClaim, ToolSpec

# Providers refuse a request with more than 128 tools; a session's own come first.
OFFERED_MAX = 100


class Standing(StrEnum):
    """Where a tool stands. Only `READY` ones are offered."""

    READY = "ready"
    UNDECLARED = "not declared"
    UNAPPROVED = "not approved"
    CHANGED = "changed since it was approved"
    UNUSABLE = "unusable"
    MISSING = "declared, but not listed"
    SURPLUS = "too many"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool of one server. `name` is what a session knows it by; `detail` is the reason for its standing."""

    server: ConfiguredServer
    tool: str
    standing: Standing
    name: str = ""
    detail: str = ""
    listed: ListedTool | None = None
    policy: ToolPolicy | None = None


def judge(
    servers: Sequence[tuple[ConfiguredServer, Mapping[str, ListedTool]]], trust: TrustStore
) -> tuple[ToolRow, ...]:
    """Say of every tool, listed or declared, where it stands."""
    addresses = [
        ToolAddress(server=server.name, tool=tool)
        for server, listed in servers
        for tool in (*(name for name in server.settings.tools if name in listed), *listed)
    ]
    table = assign_names(dict.fromkeys(addresses))
    rows: list[ToolRow] = []
    offered = 0
    for server, listed in servers:
        for tool in dict.fromkeys((*server.settings.tools, *listed)):
            address = ToolAddress(server=server.name, tool=tool)
            problem = table.set_aside.get(address, "")
            standing, detail = _standing(server, tool, listed.get(tool), problem, trust)
            if standing is Standing.READY:
                offered += 1
                if offered > OFFERED_MAX:
                    standing, detail = Standing.SURPLUS, f"at most {OFFERED_MAX} tools of servers are offered"
            rows.append(
                ToolRow(
                    server=server,
                    tool=tool,
                    standing=standing,
                    name=table.names.get(address, ""),
                    detail=detail,
                    listed=listed.get(tool),
                    policy=server.settings.tools.get(tool),
                )
            )
    return tuple(rows)


def _standing(
    server: ConfiguredServer, tool: str, listed: ListedTool | None, name_problem: str, trust: TrustStore
) -> tuple[Standing, str]:
    if listed is None:
        return Standing.MISSING, "its server does not list it"
    if tool not in server.settings.tools:
        return Standing.UNDECLARED, "the settings of its server do not say what it may do"
    if problem := listed.problem or name_problem:
        return Standing.UNUSABLE, problem
    approved = trust.approved(server.key, tool)
    if approved is None:
        return Standing.UNAPPROVED, "nobody has looked at what its server says of it"
    if approved.fingerprint != listed.fingerprint:
        return Standing.CHANGED, listed.difference(approved)
    return Standing.READY, ""


def tool_spec(row: ToolRow, connection: Connection) -> ToolSpec:
    """The tool of a ready row as the host knows it. It is bound to what its server says of it now."""
    assert row.standing is Standing.READY
    assert row.listed is not None
    assert row.listed.input_schema is not None
    assert row.policy is not None
    claims = _claims(row.server.name, row.policy)
    return ToolSpec(
        name=row.name,
        description=row.listed.description or f"The tool {row.tool!r} of the server {row.server.name!r}.",
        input_schema=row.listed.input_schema,
        level=row.policy.level,
        data_class=row.policy.data_class,
        handler=partial(connection.call, row.listed),
        timeout_s=row.policy.timeout_s,
        claims=lambda _: claims,
    )


def _claims(server: str, policy: ToolPolicy) -> tuple[ResourceClaim, ...]:
    resources = policy.resources or {server: Access.SHARED if policy.level is SafetyLevel.READ else Access.EXCLUSIVE}
    # In a namespace of their own, so that no server's calls wait for, or pass, those on the workspace by a name.
    return tuple(
        ResourceClaim(resource=f"mcp:{name}", exclusive=access is Access.EXCLUSIVE)
        for name, access in resources.items()
    )
