"""Facts of how shell commands are judged: a table of commands, and what holds for any command."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from geode.executor.policy import Authority, Mode, Ruling
from geode.executor.rules import PolicyFile, Rules
from geode.executor.rulings import Policy
from geode.executor.shell.command import read_command
from geode.tools.shell import shell_tool
from geode.tools.workspace import Workspace

TABLE = yaml.safe_load((Path(__file__).parent / "commands.yaml").read_text(encoding="utf-8"))
SHELL = shell_tool(Workspace(Path(__file__).parent))


def policy(rules: list[dict[str, Any]], mode: Mode = Mode.REPL) -> Policy:
    file = PolicyFile.model_validate({"schema": "geode.policy/1", "rules": rules})
    return Policy(mode, Rules.of(mode, ("policy.yaml", file)))


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
