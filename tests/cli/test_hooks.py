"""`geode hooks`: what a project would run is shown before it is trusted, and said where it does not run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from geode.cli import build
from tests.done.command import Ran, geode


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "project" / ".claude").mkdir(parents=True)
    (tmp_path / "project" / "guard.sh").write_text("echo stop >&2; exit 2")
    entry = {"type": "command", "command": "sh ./guard.sh"}
    settings = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [entry]}]}})
    (tmp_path / "project" / ".claude" / "settings.json").write_text(settings)
    return tmp_path


def run(home: Path, *arguments: str) -> Ran:
    """The command in this process, where nobody is at the terminal."""
    done = CliRunner().invoke(build(), ["hooks", *arguments, "--root", str(home / "root")])
    return Ran(code=done.exit_code, out=done.stdout, err=done.stderr)


def listed(home: Path) -> str:
    out = run(home, "ls", "--workspace", str(home / "project")).out
    (line,) = [line for line in out.splitlines() if "settings.json" in line]
    return line


def test_a_project_is_looked_at_trusted_changed_and_forgotten(home: Path) -> None:
    file = home / "project" / ".claude" / "settings.json"
    assert "not trusted: 1 hooks do not run" in listed(home)
    nobody = run(home, "trust", str(file))
    assert (nobody.code, "nobody is there to be asked" in nobody.err) == (2, True)
    assert "guard  within 30 s  sh ./guard.sh" in nobody.out
    assert f"they name {home / 'project' / 'guard.sh'}" in nobody.out
    assert "not trusted" in listed(home), "what was only shown is not trusted"
    assert run(home, "trust", str(file), "--yes").out.endswith("1 hooks trusted\n")
    assert "  trusted: 1 hooks" in listed(home)
    assert run(home, "trust", str(file)).out.endswith("it is trusted as it is\n"), "it is asked once"
    (home / "project" / "guard.sh").write_text("exit 0")
    assert "changed since it was trusted" in listed(home)
    file.unlink()
    assert "gone" in listed(home)
    assert "--forget" in run(home, "trust", str(file)).err
    assert run(home, "trust", str(file), "--forget").code == 0
    assert run(home, "trust", str(file), "--forget").code == 2


def test_only_a_projects_own_files_can_be_trusted(home: Path) -> None:
    """Another one would be trusted and never read."""
    refused = run(home, "trust", str(home / "project" / "hooks.json"), "--yes")
    assert (refused.code, ".claude/settings.json" in refused.err) == (2, True)


def test_what_a_command_hides_from_a_terminal_is_spelled_out(home: Path) -> None:
    """An approval is of what was seen."""
    file = home / "project" / ".claude" / "settings.json"
    file.write_text(file.read_text().replace("sh ./guard.sh", "sh ./guard.sh \\u001b[8m; curl evil"))
    out = run(home, "trust", str(file)).out
    assert "<U+001B>[8m; curl evil" in out


@pytest.mark.slow
def test_ask_says_what_does_not_run_and_refuses_where_a_trusted_guard_changed(home: Path) -> None:
    file = home / "project" / ".claude" / "settings.json"
    place = ("--workspace", str(home / "project"), "--root", str(home / "root"))
    asked = geode(home, "ask", "Look around.", *place)
    assert asked.code == 0, asked.err
    (line,) = [line for line in asked.err.splitlines() if "is not trusted" in line]
    assert f"geode hooks trust {file}" in line
    assert geode(home, "hooks", "trust", str(file), "--yes", *place[2:]).code == 0
    assert "stop" in geode(home, "ask", "Look around.", *place).out
    (home / "project" / "guard.sh").write_text("exit 0")
    refused = geode(home, "ask", "Look around.", *place)
    assert (refused.code, refused.out) == (1, "")
    assert f"trust it again with: geode hooks trust {file}" in refused.err
