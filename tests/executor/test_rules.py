"""Facts of `geode.executor.rules`: what a policy file may say, and how a bad one is refused."""

import os
from pathlib import Path

import pytest

from geode.authority import DataClass, SafetyLevel
from geode.executor.policy import Authority, Mode
from geode.executor.rules import (
    PROJECT_FILE,
    PolicyError,
    PolicyFile,
    Rules,
    parse_policy,
    read_policy,
    read_project_policy,
)
from geode.tools.workspace import Workspace

HEAD = "schema: geode.policy/1\n"


def parsed(text: str) -> PolicyFile:
    return parse_policy((HEAD + text).encode(), "policy.yaml")


def test_an_empty_file_changes_nothing() -> None:
    for mode in Mode:
        rules = Rules.of(mode, ("policy.yaml", parsed("")))
        assert (rules.placed, rules.denied_tools, rules.data_paths) == ((), (), ())
        assert {*rules.levels.values(), *rules.data.values()} == {Authority.ALLOW}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file: Input should be"),
        ("schema: geode.policy/2", "schema: Input should be 'geode.policy/1'"),
        (HEAD + "rule: []", "rule: Extra inputs are not permitted"),
        (HEAD + "rules: [{deny: shell, comand: x}]", "rules.0.comand: Extra inputs are not permitted"),
        (HEAD + "rules: [{deny: a}, {command: x}]", "rules.1: a rule says exactly one of allow, ask and deny"),
        (HEAD + "rules: [{deny: a, allow: a}]", "rules.0: a rule says exactly one of"),
        (HEAD + "rules: [{deny: a, command: x, path: y}]", "rules.0: a rule has at most one of"),
        (HEAD + "rules: [{allow: '*'}]", "rules.0: an allowing rule names one tool"),
        (HEAD + "rules: [{allow: shell}]", "rules.0: an allowing rule for the shell needs a command"),
        (HEAD + "rules: [{allow: shell, command: '*'}]", "rules.0: an allowing rule names one program"),
        (HEAD + "rules: [{allow: shell, command: '* -x'}]", "rules.0: an allowing rule names one program"),
        (HEAD + 'rules: [{deny: shell, command: "x \'y"}]', 'rules.0: "x \'y" is no command pattern'),
        (HEAD + "rules: [{deny: shell, command: ' '}]", "rules.0: a command pattern needs at least a program"),
        (HEAD + "rules: [{deny: a, modes: [repl, night]}]", "rules.0.modes.1: Input should be 'repl', 'ipc'"),
        (HEAD + "modes: {repl: {levels: {write: allow}}}", "modes.repl.levels.write: Input should be"),
        (HEAD + "modes: {repl: {levels: {wrote: deny}}}", "modes.repl.levels.wrote"),
        (HEAD + "modes: {night: {}}", "modes.night"),
        (HEAD + "data_classes: {none: [x]}", "data_classes.none"),
        (HEAD + "rules: [{deny: a}]\nrules: []", "the key 'rules' stands twice"),
        (HEAD + "rules: &x [*x]", "an alias"),
        (HEAD + "rules: [", "at line 2, column 9"),
        (HEAD + "rules: [{deny: a}" + ", {deny: a}" * 500 + "]", "rules: "),
        ("# " + "x" * 300_000, "at most 256000 are read"),
        ("schema: !!python/object:os.system x", "could not determine a constructor"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_file_is_an_error_that_names_the_file_and_the_key(text: str, said: str) -> None:
    """A typing error in a rule must not become a rule that never holds."""
    with pytest.raises(PolicyError) as raised:
        parse_policy(text.encode(), "policy.yaml")
    assert str(raised.value).startswith("policy.yaml: ")
    assert said in str(raised.value)


def test_a_file_that_is_no_text_is_an_error() -> None:
    with pytest.raises(PolicyError, match="no UTF-8 text"):
        parse_policy(b"\xff", "policy.yaml")


def test_what_may_go_without_asking_holds_only_where_somebody_attends_unless_it_names_another_mode() -> None:
    """A rule that spares a prompt at the terminal must not open the daemon that strangers reach."""
    file = parsed(
        "rules: [{allow: a}, {ask: b}, {deny: c}, {allow: d, modes: [daemon]}, {deny: e, modes: [experiment]}]"
    )
    holding = {mode: "".join(p.rule.tool for p in Rules.of(mode, ("f", file)).placed) for mode in Mode}
    assert holding == {
        Mode.REPL: "abc",
        Mode.IPC: "abc",
        Mode.DAEMON: "bcd",
        Mode.MCP: "bc",
        Mode.EXPERIMENT: "e",
    }


def test_what_is_said_of_a_level_holds_for_all_above_it_and_the_stricter_file_counts() -> None:
    """More power never needs less permission, whichever file says so."""
    own = parsed("modes: {daemon: {levels: {write: ask, external: deny}, data: {personal: deny}}}")
    project = parsed("modes: {daemon: {levels: {execute: deny}, denied_tools: [x]}}")
    rules = Rules.of(Mode.DAEMON, ("own", own), ("project", project))
    assert [rules.levels[level].value for level in SafetyLevel] == ["allow", "ask", "deny", "deny", "deny"]
    assert [rules.data[kind].value for kind in DataClass] == ["allow", "deny", "deny"]
    assert rules.denied_tools == ("x",)
    assert Rules.of(Mode.REPL, ("own", own)).levels[SafetyLevel.ADMIN] is Authority.ALLOW


def test_rules_have_a_name_by_what_they_say_in_a_mode() -> None:
    """The record of a session says which rules held in it; those that say nothing of its mode are none."""
    texts = [
        "rules: [{deny: a}]",
        "rules: [{deny: b}]",
        "rules: [{deny: a, why: x}]",
        "data_classes: {secret: [x]}",
        "modes: {repl: {denied_tools: [a]}}",
        "modes: {repl: {levels: {write: deny}}}",
    ]
    digests = [Rules.of(Mode.REPL, ("f", parsed(text))).digest for text in texts]
    assert len({*digests, ""}) == len(texts) + 1
    assert Rules.of(Mode.REPL, ("f", parsed(texts[0]))).digest == digests[0]
    assert {Rules.of(Mode.EXPERIMENT, ("f", parsed(text))).digest for text in texts} == {""}


def test_a_rule_is_shown_with_its_place_and_its_reason() -> None:
    """Whoever is refused looks for the line that did it."""
    file = parsed("rules: [{deny: a}, {ask: shell, command: git push, why: it is public}]")
    (_, placed) = Rules.of(Mode.REPL, ("policy.yaml", file)).placed
    assert placed.shown == "policy.yaml, rules.1: ask shell command 'git push' (it is public)"


# Files


def test_no_file_is_no_rules_and_one_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    assert read_policy(tmp_path / "policy.yaml") is None
    (tmp_path / "policy.yaml").mkdir()
    with pytest.raises(PolicyError, match=r"policy\.yaml: Is a directory"):
        read_policy(tmp_path / "policy.yaml")


def written(folder: Path, text: str) -> Workspace:
    (folder / ".geode").mkdir()
    (folder / PROJECT_FILE).write_text(HEAD + text)
    return Workspace(folder)


def test_a_project_may_deny_and_ask(tmp_path: Path) -> None:
    assert read_project_policy(Workspace(tmp_path)) is None
    file = read_project_policy(written(tmp_path, "rules: [{deny: shell, command: curl}, {ask: write_file}]"))
    assert file is not None
    assert [rule.says for rule in file.rules] == [Authority.DENY, Authority.ASK]


def test_a_project_may_allow_nothing(tmp_path: Path) -> None:
    """A17: a repository that brings its own permissions has none."""
    workspace = written(tmp_path, "rules: [{deny: a}, {allow: shell, command: ls}]")
    with pytest.raises(PolicyError, match=r"\.geode/policy\.yaml: rules\.1: a project's file can only deny and ask"):
        read_project_policy(workspace)


def test_a_projects_file_is_not_followed_out_of_the_project(tmp_path: Path) -> None:
    """A18: it would be read with our rights, and a pipe in its place would hold us up for ever."""
    workspace, outside = tmp_path / "ws", tmp_path / "outside.yaml"
    (workspace / ".geode").mkdir(parents=True)
    outside.write_text(HEAD)
    (workspace / PROJECT_FILE).symlink_to(outside)
    with pytest.raises(PolicyError, match="leads out of the workspace"):
        read_project_policy(Workspace(workspace))
    (workspace / PROJECT_FILE).unlink()
    os.mkfifo(workspace / PROJECT_FILE)
    with pytest.raises(PolicyError, match="no regular file"):
        read_project_policy(Workspace(workspace))
