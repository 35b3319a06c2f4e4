"""`geode mcp-servers`: what an owner sees before anything may be called, and that nothing is asked where nobody is."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from geode.cli import build
from tests.done.command import Ran, geode
from tests.doubles.mcp_servers import PROJECT

SERVER = [sys.executable, "-S", str(PROJECT / "tests" / "doubles" / "mcp_wire.py")]


def settings(folder: Path, behaviour: str = "plain", tools: object = None) -> str:
    server = {"transport": "stdio", "command": [*SERVER, str(folder), behaviour], "protocol": "2025-11-25"}
    declared = {"echo": {"level": "read", "data_class": "none"}} if tools is None else tools
    return json.dumps({"schema": "geode.mcp/1", "servers": {"wire": {**server, "tools": declared}}})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "project" / ".geode").mkdir(parents=True)
    return tmp_path / "root"


def run(root: Path, *arguments: str) -> Ran:
    """The command in this process, where nobody is at the terminal."""
    options = ("--root", str(root), "--workspace", str(root.parent / "project"))
    done = CliRunner().invoke(build(), ["mcp-servers", *arguments, *options])
    return Ran(code=done.exit_code, out=done.stdout, err=done.stderr)


def test_an_owner_sees_what_is_missing_and_approves_it(root: Path) -> None:
    """From a settings file to a tool that can be called, by what each command says to do next."""
    assert f"name one in {root / 'mcp.yaml'}" in run(root, "ls").err
    (root / "mcp.yaml").write_text(settings(root.parent, tools={}))
    assert run(root, "ls").out.startswith("wire  ")
    undeclared = run(root, "check")
    assert "wire  echo  not declared  as wire__echo" in undeclared.out
    assert 'servers.wire.tools:\n    "echo": {level: ' in undeclared.out
    assert undeclared.code == 0, "it is no mistake to leave a tool undeclared"

    (root / "mcp.yaml").write_text(settings(root.parent))
    unapproved = run(root, "check")
    assert unapproved.code == 1
    assert "wire  echo  not approved" in unapproved.out
    assert "it says: Echo." in unapproved.out
    assert 'it takes: {"type": "object"' in unapproved.out, "A11: what a schema holds is looked at, too"
    nobody = run(root, "trust")
    assert (nobody.code, "nobody is there to be asked" in nobody.err) == (2, True)
    assert run(root, "trust", "--yes").out.endswith("1 tools approved\n")
    assert "wire  echo  ready  as wire__echo" in run(root, "check").out
    assert run(root, "trust", "--yes").out == "0 tools approved\n"


def test_a_project_is_shown_before_it_is_trusted(root: Path) -> None:
    """A17: until then its servers do not run, whatever command is used."""
    file = root.parent / "project" / ".geode" / "mcp.yaml"
    file.write_text(settings(root.parent))
    for command in ("ls", "check"):
        told = run(root, command)
        assert "is not trusted, so its servers are left out" in told.err
        assert "wire  " not in told.out
    refused = run(root, "trust")
    assert (refused.code, "would add these servers:" in refused.out) == (2, True)
    assert "mcp_wire.py" in refused.out
    assert run(root, "trust", "--yes").out.endswith("1 tools approved\n")
    assert "wire  echo  ready" in run(root, "check").out
    file.write_text(settings(root.parent) + "\n")
    assert "has changed since it was trusted" in run(root, "ls").err


@pytest.mark.slow
def test_ask_says_which_tools_are_left_out_and_goes_on_without_them(root: Path) -> None:
    """A session is never held up by a server, nor by a question that nobody hears."""
    (root / "mcp.yaml").write_text(settings(root.parent))
    place = ("--root", str(root), "--workspace", str(root.parent / "project"))
    asked = geode(root.parent, "ask", "Look?", *place)
    assert asked.code == 0, asked.err
    assert "1 tools of MCP servers are left out; the reasons: geode mcp-servers check" in asked.err
    (root / "mcp.yaml").write_text("servers: {")
    broken = geode(root.parent, "ask", "Look?", *place)
    assert broken.code == 1
    assert f"{root / 'mcp.yaml'} cannot be read" in broken.err
    assert "Traceback" not in broken.err


def test_what_uses_no_server_does_not_pay_for_the_sdk() -> None:
    """It takes half a second to import; `geode --help` and every episode of a sweep go without."""
    import subprocess

    code = (
        "import sys, geode.cli, geode.serve.services, experiments.job, geode.tools.mcp.sources;"
        "geode.cli.build(); print([name for name in ('mcp', 'mcp_types', 'httpx2') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "[]\n"
