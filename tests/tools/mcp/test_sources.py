"""A project's servers are inert until the owner trusts exactly what would be started."""

import sys
from pathlib import Path

import pytest

from geode.config.paths import StateRoot
from geode.tools.mcp.settings import BadServerSettings
from geode.tools.mcp.sources import FoundServers, find_servers
from geode.tools.mcp.trust import ApprovedTool, TrustStore, TrustUnreadable

SERVERS = "schema: geode.mcp/1\nservers: {%s: {transport: stdio, command: [%s]}}\n"


@pytest.fixture
def root(tmp_path: Path) -> StateRoot:
    root = StateRoot(tmp_path / "root")
    root.path.mkdir()
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".geode").mkdir(parents=True)
    (folder / ".geode" / "mcp.yaml").write_text(SERVERS % ("tests", "python3, ./serve.py"))
    (folder / "serve.py").write_text("serve()")
    return folder


def found(root: StateRoot, project: Path | None) -> FoundServers:
    return find_servers(root, project, TrustStore(root.mcp_trust))


def trust(root: StateRoot, project: Path) -> None:
    file = found(root, project).project
    assert file is not None
    TrustStore(root.mcp_trust).trust_file(file.path, file.digest)


def names(found: FoundServers) -> list[str]:
    return [server.name for server in found.servers]


def test_the_owners_own_servers_need_no_trust(root: StateRoot) -> None:
    """Who writes under the state root is the owner."""
    root.mcp_settings.write_text(SERVERS % ("own", "x"))
    assert names(found(root, None)) == ["own"]
    assert found(root, None).servers[0].folder == root.path


def test_a_project_is_inert_until_it_is_trusted_and_inert_again_when_it_changes(root: StateRoot, project: Path) -> None:
    """A17: a cloned repository starts nothing, and an update of it starts nothing new."""
    before = found(root, project)
    assert names(before) == []
    assert "is not trusted" in before.problems[0]
    assert "geode mcp-servers trust" in before.problems[0]
    trust(root, project)
    after = found(root, project)
    assert (names(after), after.problems) == (["tests"], ())
    assert after.servers[0].folder == project.resolve()
    settings = project / ".geode" / "mcp.yaml"
    settings.write_text(settings.read_text() + "# one more line\n")
    assert names(found(root, project)) == []
    assert "has changed since it was trusted" in found(root, project).problems[0]


def test_a_program_of_the_project_is_a_part_of_what_is_trusted(root: StateRoot, project: Path) -> None:
    """Else a tool that may write in the workspace could write what runs outside of it in the next session."""
    trust(root, project)
    (project / "serve.py").write_text("import os")
    assert names(found(root, project)) == []


def test_a_copy_of_a_trusted_project_is_not_trusted(root: StateRoot, project: Path, tmp_path: Path) -> None:
    """Trust is of a place and its content: the same settings elsewhere may start other programs."""
    trust(root, project)
    project.rename(tmp_path / "elsewhere")
    assert names(found(root, tmp_path / "elsewhere")) == []


def test_a_project_cannot_take_the_name_of_an_own_server(root: StateRoot, project: Path) -> None:
    """A09: what is declared for one's own server must not be given to another."""
    root.mcp_settings.write_text(SERVERS % ("tests", "own-program"))
    trust(root, project)
    both = found(root, project)
    assert [server.source for server in both.servers] == [root.mcp_settings]
    assert "yours counts" in both.problems[0]


def test_a_bad_file_of_a_project_costs_only_the_project(root: StateRoot, project: Path) -> None:
    """What a repository ships must not keep its user from working."""
    root.mcp_settings.write_text(SERVERS % ("own", "x"))
    (project / ".geode" / "mcp.yaml").write_text("{")
    both = found(root, project)
    assert names(both) == ["own"]
    assert "cannot be read" in both.problems[0]
    root.mcp_settings.write_text("{")
    with pytest.raises(BadServerSettings):
        found(root, None)


def test_the_state_root_in_the_home_folder_is_no_project(tmp_path: Path) -> None:
    """Who works in their home has `.geode/mcp.yaml` there: their own file, which needs no trust."""
    root = StateRoot(tmp_path / ".geode")
    root.path.mkdir()
    root.mcp_settings.write_text(SERVERS % ("own", "x"))
    assert found(root, tmp_path).project is None
    assert names(found(root, tmp_path)) == ["own"]


def test_approvals_are_read_back_and_a_damaged_record_approves_nothing(tmp_path: Path) -> None:
    """Guards fail closed."""
    path = tmp_path / "trust.json"
    tool = ApprovedTool(fingerprint="f", description="d", input_schema="{}")
    TrustStore(path).approve("file#server", {"a": tool})
    TrustStore(path).approve("file#server", {"b": tool})
    again = TrustStore(path)
    assert again.approved("file#server", "a") == again.approved("file#server", "b") == tool
    assert again.approved("other#server", "a") is None
    assert again.approved("file#server", "A") is None
    path.write_text('{"schema": "geode.mcp_trust/2"}')
    with pytest.raises(TrustUnreadable, match="remove it, and approve anew"):
        TrustStore(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["trust.json"], "no half-written file is left"


def test_a_word_that_is_no_file_name_is_no_program(root: StateRoot, project: Path) -> None:
    """Arguments are anything: options, URLs, text of any length."""
    words = f"{sys.executable}, --db=postgres://x, ../outside, '{'x' * 5000}', '', --script=./serve.py"
    (project / ".geode" / "mcp.yaml").write_text(SERVERS % ("tests", words))
    trust(root, project)
    assert names(found(root, project)) == ["tests"]
    (project / "serve.py").write_text("changed")
    assert names(found(root, project)) == []
