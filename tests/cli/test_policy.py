"""`geode policy`: what would be answered, and why; and a bad file stops every command that would run something."""

from pathlib import Path
from textwrap import dedent

import pytest
from typer.testing import CliRunner, Result

from geode.cli import build

POLICY = """schema: geode.policy/1
rules:
  - {allow: shell, command: git status *}
  - {deny: shell, command: curl, why: nothing leaves}
  - {ask: write_file, path: "*.lock"}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "policy.yaml").write_text(POLICY)
    (tmp_path / "ws").mkdir()
    return tmp_path


def policy(folder: Path, *arguments: str) -> Result:
    places = ("--root", str(folder / "root"), "--workspace", str(folder / "ws"))
    return CliRunner().invoke(build(), ["policy", *arguments, *places])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("check", "git status -s"), 0, "ALLOW in repl mode, level execute"),
        (("check", "git status -s", "--mode", "daemon"), 3, "where nobody attends, asking is refusing"),
        (
            ("check", "git status && curl x"),
            4,
            "rule     policy.yaml, rules.1: deny shell command 'curl' (nothing leaves)",
        ),
        (("check", "ls > x"), 3, "it writes 'x'"),
        (("check", "sh -c 'ls; cat a'"), 3, "runs     cat a"),
        (("check", "uv.lock", "--tool", "write_file"), 3, "rules.2: ask write_file path '*.lock'"),
        (("check", ".geode/policy.yaml", "--tool", "write_file"), 4, "own files"),
        (("check", "conftest.py", "--tool", "write_file"), 3, "runs later"),
        (("check", "a", "--tool", "read_file"), 0, "level read"),
        (("check", "ls", "--tool", "nothing"), 2, "there is no tool 'nothing'; there are list_files"),
        (("check", "ls", "--mode", "night"), 2, "there is no mode 'night'; there are repl"),
        (("ls",), 0, "policy.yaml, rules.0: allow shell command 'git status *'"),
        (("ls", "--mode", "experiment"), 0, "no rule holds in experiment mode"),
    ],
)
def test_the_answer_its_reason_and_the_exit_code(root: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    """Whoever writes a rule can try it before an agent does."""
    ran = policy(root, *arguments)
    assert ran.exit_code == code, ran.output
    assert said in ran.output


def test_the_same_for_programs(root: Path) -> None:
    ran = policy(root, "check", "curl x", "--json")
    assert ran.exit_code == 4
    assert '"answer": "deny"' in ran.output
    assert '"runs": [\n  "curl x"\n ]' in ran.output


def test_what_the_project_forbids_counts_and_what_it_allows_is_an_error(root: Path) -> None:
    """A17."""
    (root / "ws" / ".geode").mkdir()
    file = root / "ws" / ".geode" / "policy.yaml"
    file.write_text("schema: geode.policy/1\nrules: [{deny: shell, command: git}]\n")
    assert policy(root, "check", "git status").exit_code == 4
    file.write_text("schema: geode.policy/1\nrules: [{allow: shell, command: whoami}]\n")
    ran = policy(root, "check", "git status")
    assert (ran.exit_code, "rules.0: a project's file can only deny and ask" in ran.output) == (2, True)


@pytest.mark.slow
def test_the_readmes_example_means_what_it_says(root: Path) -> None:
    """It is what people copy."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = readme[readme.index("    schema: geode.policy/1") :].split("\n\n", 1)[0]
    (root / "root" / "policy.yaml").write_text(dedent(block))
    for command, mode, code in [
        ("git status -s", "repl", 0),
        ("git status; whoami", "repl", 3),
        ("rm -r -f x", "repl", 4),
        ("env rm -fr x", "repl", 4),
        ("sh -c 'ls; rm -rf x'", "repl", 4),
        ("git status", "daemon", 4),
    ]:
        assert policy(root, "check", command, "--mode", mode).exit_code == code, command
    for tool, path, code in [
        ("write_file", "docs/a/b.md", 0),
        ("write_file", "docs/uv.lock", 3),
        ("read_file", "uv.lock", 3),
        ("read_file", "keys/a.pem", 3),
        ("read_file", "a", 0),
    ]:
        assert policy(root, "check", path, "--tool", tool).exit_code == code, (tool, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("policy", "ls"), ("ask", "hello"), ("run", "experiment=quickstart", "tracking=none")]
)
def test_with_a_bad_policy_file_nothing_runs(
    root: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule with a typing error must not be a rule that is missing."""
    monkeypatch.chdir(root)
    (root / "root" / "policy.yaml").write_text(POLICY + "  - {dney: shell}\n")
    ran = CliRunner().invoke(build(), [command[0], *command[1:], "--root", str(root / "root")])
    assert ran.exit_code == 2, ran.output
    assert "policy.yaml: rules.3.dney: Extra inputs are not permitted" in ran.output
    assert not list((root / "root").glob("sessions/*"))
    assert not list((root / "root").glob("episodes/*/*/episode.json"))
