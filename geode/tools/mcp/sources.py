"""Where MCP servers come from: the owner's own settings, and a project's, inert until the owner trusts them."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from geode.config.paths import StateRoot
from geode.tools.mcp.settings import BadServerSettings, HttpServer, McpSettings, StdioServer, parse_settings
from geode.tools.mcp.trust import TrustStore

PROJECT_FILE = Path(".geode") / "mcp.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredServer:
    """A server, and the file that names it. `key` is what approvals of its tools go by."""

    name: str
    source: Path
    folder: Path
    settings: StdioServer | HttpServer

    @property
    def key(self) -> str:
        """The server's name over all files."""
        return f"{self.source}#{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """A project's settings file as it is on the disk. `digest` covers it, and what it would start from the project."""

    path: Path
    digest: str
    content: McpSettings
    trusted_digest: str | None

    @property
    def is_trusted(self) -> bool:
        """Whether the owner trusted exactly this."""
        return self.digest == self.trusted_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServers:
    """The servers that may be started, the project's file if there is one, and what was left out, with the reason."""

    servers: tuple[ConfiguredServer, ...]
    project: ProjectFile | None
    problems: tuple[str, ...]


def find_servers(root: StateRoot, workspace: Path | None, trust: TrustStore) -> FoundServers:
    """Read the global settings and those of the project at `workspace`.

    Raises:
        BadServerSettings: if the global file cannot be used. A project's bad file is a problem of its own.
        OSError: if a file cannot be read.
    """
    problems: list[str] = []
    own = parse_settings(root.mcp_settings.read_bytes(), root.mcp_settings) if root.mcp_settings.is_file() else None
    servers = _configured(own, root.mcp_settings, root.path) if own else []
    project: ProjectFile | None = None
    try:
        project = read_project(workspace, root, trust) if workspace else None
    except BadServerSettings as error:
        problems.append(f"{error}; its servers are left out")
    if project is not None and not project.is_trusted:
        state = "is not trusted" if project.trusted_digest is None else "has changed since it was trusted"
        problems.append(
            f"{project.path} {state}, so its servers are left out; look at it with: geode mcp-servers trust"
        )
    elif project is not None and workspace is not None:
        taken = {server.name for server in servers}
        for server in _configured(project.content, project.path, workspace.resolve()):
            if server.name in taken:
                problems.append(f"{project.path} names {server.name!r}, which your own settings name; yours counts")
            else:
                servers.append(server)
    return FoundServers(servers=tuple(servers), project=project, problems=tuple(problems))


def read_project(workspace: Path, root: StateRoot, trust: TrustStore) -> ProjectFile | None:
    """Read the settings file of the project at `workspace`, if it has one.

    Raises:
        BadServerSettings: if it cannot be used.
    """
    path = (workspace / PROJECT_FILE).resolve()
    if not path.is_file() or path == root.mcp_settings.resolve():
        return None
    content = path.read_bytes()
    settings = parse_settings(content, path)
    digest = hashlib.sha256(content)
    # What is hashed is what was parsed. The programs of the project's own that it starts count as a part of it;
    # what those load in turn does not.
    for program in _own_programs(settings, workspace.resolve()):
        digest.update(f"\0{program}\0".encode() + hashlib.sha256(program.read_bytes()).digest())
    return ProjectFile(path=path, digest=digest.hexdigest(), content=settings, trusted_digest=trust.trusted_file(path))


def _own_programs(settings: McpSettings, folder: Path) -> list[Path]:
    words = [
        part
        for server in settings.servers.values()
        if isinstance(server, StdioServer)
        for word in server.command
        for part in {word, word.rpartition("=")[2]}
    ]
    files = {(folder / word).resolve() for word in words if word and "\0" not in word}
    # `os.path` answers for a word that can be no file's name, too.
    return sorted(file for file in files if file.is_relative_to(folder) and os.path.isfile(file))


def _configured(settings: McpSettings, source: Path, folder: Path) -> list[ConfiguredServer]:
    return [
        ConfiguredServer(name=name, source=source, folder=folder, settings=server)
        for name, server in settings.servers.items()
    ]
