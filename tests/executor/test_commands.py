"""Facts of how shell commands are judged: a table of commands, and what holds for any command."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from geode.executor.policy import Authority, Mode, Ruling
from geode.executor.rules import PolicyFile, Rules
from geode.executor.rulings import Policy
from geode.executor.shell.command import read_command
from geode.executor.shell.syntax import COMMANDS_MAX, TEXT_CHARS_MAX
from geode.tools.shell import shell_tool
from geode.tools.workspace import Workspace

TABLE = yaml.safe_load((Path(__file__).parent / "commands.yaml").read_text(encoding="utf-8"))
SHELL = shell_tool(Workspace(Path(__file__).parent))


def policy(rules: list[dict[str, Any]], mode: Mode = Mode.REPL, *, confined: bool = True) -> Policy:
    file = PolicyFile.model_validate({"schema": "geode.policy/1", "rules": rules})
    return Policy(mode, Rules.of(mode, ("policy.yaml", file)), confined=confined)


REPL = policy(TABLE["rules"])


def judged(command: str, by: Policy = REPL) -> Ruling:
    return by.judge(SHELL, {"command": command}, SHELL.claims({"command": command})).ruling


def rows() -> Iterator[Any]:
    for command in TABLE["allowed"]:
        yield pytest.param(command, Authority.ALLOW, "the operator's rules allow it", id=f"allowed: {command!a}")
    for answer in (Authority.ASK, Authority.DENY):
        for row in TABLE["asked" if answer is Authority.ASK else "denied"]:
            yield pytest.param(row["command"], answer, row["because"], id=f"{answer}: {row['command']!a}")


@pytest.mark.parametrize(("command", "authority", "because"), list(rows()))
def test_each_command_is_answered_as_the_table_says(command: str, authority: Authority, because: str) -> None:
    """A13 to A15, R36, R37: every simple command counts, and what is meant goes without a prompt."""
    ruling = judged(command)
    assert ruling.authority is authority, (ruling, read_command(command))
    assert because in ruling.reason


def test_the_table_is_large_enough_to_say_something() -> None:
    """At least 120 commands, and the ones that are meant are not an afterthought."""
    assert len(rows_of("asked")) + len(rows_of("denied")) >= 120
    assert len(TABLE["allowed"]) >= 60


def rows_of(part: str) -> list[dict[str, str]]:
    return list(TABLE[part])


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("cat a.txt", False),
        ("echo $HOME; cat a.txt", False),
        ("cat $u$u/key", True),
        ("cd $u$u; cat key", True),
        ("cat ../$x", True),
        ("cat *", True),
        ("cat < $x", True),
        ("for f in a b; do cat $f; done", True),
    ],
)
def test_where_nothing_confines_a_command_a_path_that_nobody_knows_is_asked_for(command: str, asks: bool) -> None:
    """A18: an allowed reader reads whatever an expansion names. In the sandbox there is nothing that it could find."""
    assert judged(command).authority is Authority.ALLOW
    ruling = judged(command, policy(TABLE["rules"], confined=False))
    assert ruling.authority is (Authority.ASK if asks else Authority.ALLOW)
    assert ("nothing confines it, and only the shell knows where" in ruling.reason) is asks


# What holds for any command

ALLOWED = st.sampled_from(
    ["ls", "ls -l", "cat a.txt", "git status", "grep -n x a", "ls 'a; b'", "cat <a", "ls 2>/dev/null"]
)
DENIED = st.sampled_from(
    [
        "curl x",
        "c'ur'l x",
        "/usr/bin/curl",
        "git clean -fd",
        "git -C x clean",
        "rm -r -f x",
        "env curl",
        "xargs curl",
        "A=1 curl x",
    ]
)
WRAPPERS = st.sampled_from(
    [
        *(
            "{}; ls",
            "ls; {}",
            "ls && {}",
            "{} || ls",
            "ls | {}",
            "( {} & )",
            "ls\n{}",
            "( {} )",
            "{{ {}; }}",
            "( ! {} )",
        ),
        *("ls $( {} )", "ls `{}`", 'ls "$( {} )"', "ls ${{x:-$( {} )}}", "x=$( {} )", "ls $((1 + $( {} )))"),
        *("if {}; then ls; fi", "if ls; then {}; fi", "while {}; do break; done", "for i in a; do {}; done"),
        *(
            "case a in *) {};; esac",
            "head() {{ {}; }}; head",
            "( {} ) >/dev/null",
            "cat <<EOF\n$( {} )\nEOF",
            "ls # c\n{}",
        ),
        *("ls '#' ; {}", "trap '' INT; {}"),
    ]
)


def wrapped(inner: str, wrappers: list[str]) -> str:
    for wrapper in wrappers:
        # Backquotes do not nest by themselves, and the end of a here-document must stand on a line of its own.
        if ("`" in wrapper and "`" in inner) or ("EOF" in inner and not wrapper.endswith("\n{}")):
            continue
        inner = wrapper.format(inner)
    return inner


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(inner=DENIED, wrappers=st.lists(WRAPPERS, max_size=4))
def test_a_denied_command_is_denied_wherever_it_stands(inner: str, wrappers: list[str]) -> None:
    """A13: not at the end, not in the middle, not inside something else."""
    command = wrapped(inner, wrappers)
    assert judged(command).authority is Authority.DENY, (command, read_command(command))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(inner=ALLOWED, wrappers=st.lists(WRAPPERS, max_size=3))
def test_what_is_made_of_allowed_commands_is_allowed(inner: str, wrappers: list[str]) -> None:
    """The twin: refusing everything that is composed would pass the test above."""
    command = wrapped(inner, wrappers)
    assert judged(command).authority is Authority.ALLOW, (command, judged(command), read_command(command))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    inner=DENIED,
    wrappers=st.lists(WRAPPERS, max_size=3),
    noise=st.lists(st.tuples(st.integers(0, 60), st.text(max_size=2)), max_size=3),
)
def test_damage_never_turns_a_denied_command_into_an_allowed_one(
    inner: str, wrappers: list[str], noise: list[tuple[int, str]]
) -> None:
    """Unless the damage takes the denied word itself away, in which case nothing is claimed."""
    command = wrapped(inner, wrappers)
    for place, text in noise:
        command = command[:place] + text + command[place:]
    ruling = judged(command)
    names = [c.words[0].text for c in read_command(command).commands]
    assert ruling.authority is not Authority.ALLOW or not {"curl", "/usr/bin/curl"} & set(names)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=60) | st.text(alphabet="ls ;|&<>(){}$`'\"\\\n#*?[]=!~-x1", max_size=40))
def test_any_text_gets_an_answer(text: str) -> None:
    """A30: whatever the model sends, reading it raises nothing and lets nothing through that was not named."""
    reading = read_command(text)
    ruling = judged(text)
    if ruling.authority is Authority.ALLOW:
        assert reading.commands
        assert not reading.doubts


def test_a_bad_command_behind_sixty_good_ones_is_denied_and_sixty_good_ones_ask() -> None:
    """A13: nobody reads the sixty-first segment of a line."""
    assert judged("; ".join(["ls"] * 60)).authority is Authority.ASK
    assert judged("; ".join([*["ls"] * (COMMANDS_MAX - 1), "curl x"])).authority is Authority.DENY
    assert judged("; ".join([*["ls"] * 60, "curl x"])).authority is not Authority.ALLOW


@pytest.mark.parametrize(
    "text",
    [
        "; ".join(["sh -c 'ls; ls; ls'"] * 12),
        "ls " + "a" * TEXT_CHARS_MAX,
        "ls " + "$(ls " * 2_000 + ")" * 2_000,
        "sh -c " * 50 + "ls",
    ],
)
def test_a_command_that_is_long_or_deep_asks(text: str) -> None:
    assert judged(text).authority is Authority.ASK


def test_of_many_rules_that_a_command_may_mean_three_are_named() -> None:
    """Whoever is asked reads them."""
    rules = [{"deny": "shell", "command": f"tool{number}"} for number in range(20)]
    ruling = judged("$x", policy(rules))
    assert ruling.rule.count("rules.") == 3
    assert ruling.rule.endswith("; and 17 more")


# Where the mode allows every command

EXPERIMENT = policy([{"deny": "shell", "command": "curl", "modes": ["experiment"]}], Mode.EXPERIMENT)


@pytest.mark.parametrize(
    ("command", "authority"),
    [
        ("whoami > out.txt", Authority.ALLOW),
        ("A=1 make; cp a conftest.py", Authority.ALLOW),
        ("curl x", Authority.DENY),
        ("ls; sh -c 'curl x'", Authority.DENY),
        ("$x", Authority.ASK),
        ("ls 'x", Authority.ASK),
        ("cat a | sh", Authority.ASK),
        ("PATH=. ls", Authority.ASK),
        ("cp a .geode/policy.yaml", Authority.DENY),
    ],
)
def test_an_experiment_runs_what_no_rule_could_mean(command: str, authority: Authority) -> None:
    """Only what may hide a forbidden command is asked for there, which unattended is a no."""
    assert judged(command, EXPERIMENT).authority is authority


@pytest.mark.parametrize("command", ["curl x", "$x", "ls 'x", "cp a conftest.py"])
def test_without_rules_an_experiment_runs_every_command(command: str) -> None:
    """The mode's table is what the contract says, and costs no reading."""
    assert judged(command, Policy(Mode.EXPERIMENT)).authority is Authority.ALLOW


@pytest.mark.parametrize(
    "command", ["cp a .geode/policy.yaml", "echo x >> /workspace/.geode/hooks.yaml", "rm -r .geode"]
)
@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.MCP])
def test_no_mode_and_no_rule_lets_a_command_write_our_own_files(command: str, mode: Mode) -> None:
    """A16: settings that an agent can write are not settings."""
    allow = [{"allow": "shell", "command": f"{name} *", "modes": [mode.value]} for name in ("cp", "echo", "rm")]
    assert judged(command, policy(allow, mode)).authority is Authority.DENY
    assert judged("cat .geode/policy.yaml", policy(allow, mode)).authority is not Authority.DENY
