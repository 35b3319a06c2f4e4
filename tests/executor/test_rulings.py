"""Facts of `geode.executor.rulings`: the mode's table and the rules together, for tools other than the shell."""

from pathlib import Path
from typing import Any

import pytest

from geode.authority import DataClass, SafetyLevel
from geode.executor.policy import Authority, Mode
from geode.executor.rules import PolicyFile, Rules
from geode.executor.rulings import Judged, Policy
from geode.executor.standing import is_own, runs_later
from geode.tools.catalogue import workspace_tools
from geode.tools.spec import ToolSpec
from geode.tools.workspace import Workspace
from tests.doubles.effects import returning, tool

ALLOW, ASK, DENY = Authority.ALLOW, Authority.ASK, Authority.DENY


def policy(mode: Mode = Mode.REPL, *rules: dict[str, Any], own: tuple[str, ...] = (), **more: Any) -> Policy:
    file = PolicyFile.model_validate({"schema": "geode.policy/1", "rules": rules, **more})
    return Policy(mode, Rules.of(mode, ("policy.yaml", file)), own)


def judged(by: Policy, spec: ToolSpec, **arguments: Any) -> Judged:
    return by.judge(spec, arguments, spec.claims(arguments))


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, ToolSpec]:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "docs" / "link").symlink_to("../.git/hooks")
    (tmp_path / "src").mkdir()
    (tmp_path / "docs" / "src").symlink_to("../src")
    (tmp_path / ".env").write_text("")
    (tmp_path / "docs" / "env").symlink_to("../.env")
    return workspace_tools(Workspace(tmp_path))


# Rules


def test_deny_wins_over_ask_and_ask_over_allow(tools: dict[str, ToolSpec]) -> None:
    allow, ask, deny = ({say: "write_file", "path": "docs/*"} for say in ("allow", "ask", "deny"))
    for rules, authority in [
        ((allow,), ALLOW),
        ((allow, ask), ASK),
        ((ask, allow), ASK),
        ((deny, ask, allow), DENY),
        ((allow, ask, deny), DENY),
        ((), ASK),
    ]:
        by = policy(Mode.REPL, *rules)
        assert judged(by, tools["write_file"], path="docs/a", content="").ruling.authority is authority
        assert judged(by, tools["write_file"], path="other/a", content="").ruling.authority is ASK


def test_the_rule_that_decided_is_named(tools: dict[str, ToolSpec]) -> None:
    by = policy(Mode.REPL, {"deny": "write*", "path": "*.lock", "why": "made by the tool"}, {"allow": "edit_file"})
    ruling = judged(by, tools["write_file"], path="uv.lock", content="").ruling
    assert ruling.reason == "a rule forbids it (made by the tool)"
    assert ruling.rule == "policy.yaml, rules.0: deny write* path '*.lock' (made by the tool)"
    assert (
        judged(by, tools["edit_file"], path="a", old="b", new="c").ruling.rule
        == "policy.yaml, rules.1: allow edit_file"
    )


@pytest.mark.parametrize("mode", [Mode.EXPERIMENT, Mode.DAEMON, Mode.MCP])
@pytest.mark.parametrize("level", [SafetyLevel.EXTERNAL, SafetyLevel.ADMIN])
def test_no_rule_allows_what_the_mode_denies(mode: Mode, level: SafetyLevel) -> None:
    by = policy(mode, {"allow": "act", "modes": [mode.value]})
    expected = DENY if mode is Mode.EXPERIMENT else ALLOW
    assert judged(by, tool(returning(""), level=level)).ruling.authority is expected
    secret = tool(returning(""), level=level, data_class=DataClass.SECRET)
    assert judged(by, secret).ruling.authority is DENY


@pytest.mark.parametrize("name", ["shell", "delegate_task", "computer"])
def test_no_rule_gives_an_mcp_caller_what_that_mode_never_has(name: str) -> None:
    command = {"command": "ls"} if name == "shell" else {}
    by = policy(Mode.MCP, {"allow": name, "modes": ["mcp"], **command})
    assert judged(by, tool(returning(""), name=name), command="ls").ruling.authority is DENY


def test_an_allowing_rule_does_not_lift_what_personal_data_asks_for() -> None:
    by = policy(Mode.REPL, {"allow": "act"})
    spec = tool(returning(""), level=SafetyLevel.READ, data_class=DataClass.PERSONAL)
    assert judged(by, spec).ruling.authority is ASK


def test_tools_and_levels_can_be_denied_in_a_mode_but_not_given() -> None:
    modes = {"repl": {"denied_tools": ["gi*"], "levels": {"execute": "deny"}}, "daemon": {"levels": {"read": "ask"}}}
    by = policy(Mode.REPL, {"allow": "git_log"}, {"allow": "act"}, modes=modes)
    ruling = judged(by, tool(returning(""), name="git_log", level=SafetyLevel.READ)).ruling
    assert (ruling.authority, ruling.rule) == (DENY, "modes.repl.denied_tools: gi*")
    assert judged(by, tool(returning(""))).ruling.authority is ALLOW
    assert judged(by, tool(returning(""), level=SafetyLevel.EXECUTE)).ruling.authority is DENY
    assert judged(policy(Mode.DAEMON, modes=modes), tool(returning(""), level=SafetyLevel.READ)).ruling.authority is ASK


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://docs.example.org/a?b#c", ALLOW),
        ("https://docs.example.org", ALLOW),
        ("https://docs.example.org:8443/", ALLOW),
        ("HTTPS://docs.example.org/", ASK),
        ("https://DOCS.example.org/", ALLOW),
        ("https://example.org/", ASK),
        ("https://docs.example.org.evil.net/", ASK),
        ("https://docs.example.org@evil.net/", ASK),
        ("https://docs.example.org\\@evil.net/", ASK),
        ("https://evil.net/#https://docs.example.org/", ASK),
        ("https://docs.example.org/ https://evil.net", ASK),
        ("https://bad.example.org/", DENY),
        ("https://a@bad.example.org:1/", DENY),
        ("ftp://BAD.example.org./", DENY),
        ("file:///etc/passwd", ASK),
    ],
)
def test_a_host_is_allowed_only_by_a_plain_url_and_denied_by_any(url: str, authority: Authority) -> None:
    """A12: what one reader takes for the host is to another the user."""
    by = policy(Mode.REPL, {"allow": "web_fetch", "host": "docs.example.org"}, {"deny": "*", "host": "bad.example.org"})
    assert (
        judged(by, tool(returning(""), name="web_fetch", level=SafetyLevel.EXTERNAL), url=url).ruling.authority
        is authority
    )


def test_a_rule_about_a_command_reads_that_of_another_tool_too() -> None:
    """A11: a server's tool that takes a command is a shell by another name."""
    by = policy(Mode.REPL, {"deny": "srv__*", "command": "rm"}, {"allow": "srv__run"})
    spec = tool(returning(""), name="srv__run", level=SafetyLevel.EXTERNAL)
    assert judged(by, spec, cmd="ls; rm -rf ~").ruling.authority is DENY
    assert judged(by, spec, command="sh -c 'rm x'").ruling.authority is DENY
    assert judged(by, spec, cmd="ls").ruling.authority is ALLOW


# Files that act later, and our own


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        "sub/.git/hooks/x",
        ".envrc",
        "conftest.py",
        "tests/conftest.py",
        "tests/CONFTEST.PY",
        "a/b/sitecustomize.py",
        "x.pth",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".bashrc",
        "home/.profile",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".mcp.json",
        ".ssh/authorized_keys",
    ],
)
def test_a_file_that_acts_later_is_asked_for_even_if_a_rule_allows_writing(
    tools: dict[str, ToolSpec], path: str
) -> None:
    """A16: it runs when nobody asks any more."""
    by = policy(Mode.REPL, {"allow": "write_file"}, {"allow": "edit_file"})
    for name, more in (("write_file", {"content": ""}), ("edit_file", {"old": "a", "new": "b"})):
        made = judged(by, tools[name], path=path, **more)
        assert (made.ruling.authority, made.stakes.level) == (ASK, SafetyLevel.EXECUTE)
        assert f"{path!r} runs later" in made.ruling.reason
    assert judged(by, tools["read_file"], path=path).ruling.authority is ALLOW


@pytest.mark.parametrize(
    "path", ["src/config.py", "hooks/a.py", "docs/git.md", "conftest.md", "ci.yml", "test_conftest.py"]
)
def test_an_ordinary_file_is_not_taken_for_one_that_acts_later(tools: dict[str, ToolSpec], path: str) -> None:
    assert not runs_later(path)
    assert (
        judged(policy(Mode.REPL, {"allow": "write_file"}), tools["write_file"], path=path, content="").ruling.authority
        is ALLOW
    )


def test_it_is_the_file_that_counts_and_not_its_name(tools: dict[str, ToolSpec]) -> None:
    """A18: a link inside the workspace makes another name for the same hook."""
    by = policy(Mode.REPL, {"allow": "write_file", "path": "docs/**"})
    made = judged(by, tools["write_file"], path="docs/link/pre-commit", content="")
    assert (made.ruling.authority, made.stakes.level) == (ASK, SafetyLevel.EXECUTE)
    assert judged(by, tools["write_file"], path="docs/../a", content="").ruling.authority is ASK
    assert judged(by, tools["write_file"], path="./docs//a", content="").ruling.authority is ALLOW


def test_a_link_may_be_written_where_rules_allow_its_name_and_its_file(tools: dict[str, ToolSpec]) -> None:
    """A18's twin: each of the two by a rule of its own, and neither by the rule of the other."""
    (docs, src), lead = ({"allow": "write_file", "path": f"{name}/**"} for name in ("docs", "src")), "docs/src/a"
    both = judged(policy(Mode.REPL, docs, src), tools["write_file"], path=lead, content="").ruling
    assert both.authority is ALLOW
    assert [name in both.rule for name in ("'docs/**'", "'src/**'")] == [True, True]
    for alone in (docs, src, docs | {"allow": "edit_file"}):
        made = judged(policy(Mode.REPL, alone), tools["write_file"], path=lead, content="").ruling
        assert made.authority is ASK


def test_where_executing_is_allowed_so_is_writing_what_is_executed_later(tools: dict[str, ToolSpec]) -> None:
    """An experiment's workspace is thrown away, and its agent has a shell in it."""
    assert (
        judged(policy(Mode.EXPERIMENT), tools["write_file"], path="conftest.py", content="").ruling.authority is ALLOW
    )
    strict = policy(Mode.EXPERIMENT, modes={"experiment": {"levels": {"execute": "deny"}}})
    assert judged(strict, tools["write_file"], path="conftest.py", content="").ruling.authority is DENY
    assert judged(strict, tools["write_file"], path="a.py", content="").ruling.authority is ALLOW


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "path", [".geode/policy.yaml", ".GEODE/hooks.yaml", "sub/.geode/x", "state/sessions/1/session.db"]
)
def test_our_own_files_are_never_written_by_a_tool(tools: dict[str, ToolSpec], mode: Mode, path: str) -> None:
    by = policy(mode, {"allow": "write_file", "modes": [mode.value]}, own=("state",))
    ruling = judged(by, tools["write_file"], path=path, content="").ruling
    assert ruling.authority is DENY
    assert judged(by, tools["read_file"], path=path).ruling.authority is ALLOW


def test_a_name_that_only_resembles_ours_is_free() -> None:
    assert not is_own("geode/policy.yaml")
    assert not is_own(".geode-demo/x")
    assert not is_own("docs/.geode.md")


def test_a_tool_that_says_nothing_of_its_files_is_judged_by_every_text_it_gets() -> None:
    """A server's file tool knows our paths by other names."""
    spec = tool(returning(""), name="fs__write", level=SafetyLevel.WRITE)
    by = policy(Mode.REPL, {"allow": "fs__write"})
    assert judged(by, spec, file="/home/me/project/.geode/policy.yaml", text="x").ruling.authority is DENY
    assert judged(by, spec, files=[{"at": "/home/me/project/.git/hooks/pre-push"}]).ruling.authority is ASK
    assert judged(by, spec, file="/home/me/project/a.py", text="see .geode and .git").ruling.authority is ALLOW


# Data classes


def test_paths_with_personal_data_raise_the_class_of_a_call(tools: dict[str, ToolSpec]) -> None:
    data = {"secret": [".env", "*.pem"], "personal": ["customers/**"]}
    attended, unattended = policy(Mode.REPL, data_classes=data), policy(Mode.DAEMON, data_classes=data)
    for path, kind in [
        (".env", DataClass.SECRET),
        ("docs/env", DataClass.SECRET),
        ("keys/a.pem", DataClass.SECRET),
        ("customers/a/b.csv", DataClass.PERSONAL),
        ("docs/a.md", DataClass.NONE),
    ]:
        made = judged(attended, tools["read_file"], path=path)
        assert made.stakes.data_class is kind
        assert made.ruling.authority is (ALLOW if kind is DataClass.NONE else ASK)
        elsewhere = judged(unattended, tools["read_file"], path=path).ruling
        assert elsewhere.authority is (ALLOW if kind is DataClass.NONE else DENY)
    assert "holds secret data" in judged(attended, tools["read_file"], path=".env").ruling.reason


def test_a_command_that_names_personal_data_is_of_its_class(tools: dict[str, ToolSpec]) -> None:
    by = policy(Mode.REPL, {"allow": "shell", "command": "cat *"}, data_classes={"secret": [".env"]})
    assert judged(by, tools["shell"], command="cat .env").ruling.authority is ASK
    assert judged(by, tools["shell"], command="cat < .env").ruling.authority is ASK
    assert judged(by, tools["shell"], command="cat a").ruling.authority is ALLOW
