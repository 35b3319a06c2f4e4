"""Facts of `geode.executor.policy`: the mode table, cell by cell."""

import pytest

from geode.authority import DataClass, SafetyLevel
from geode.executor.policy import Authority, Mode, rule

# Contract 5.10, written here once more by hand. A row is a mode and a data class; the columns are read, write, execute,
# external, admin; + is allowed, ? needs somebody's approval (a denial where nobody can approve), - is denied.
TABLE = """
repl        none      + ? ? ? ?
repl        personal  ? ? ? ? ?
repl        secret    ? ? ? ? ?
ipc         none      + ? ? ? ?
ipc         personal  ? ? ? ? ?
ipc         secret    ? ? ? ? ?
daemon      none      + ? ? ? ?
daemon      personal  - - - - -
daemon      secret    - - - - -
mcp         none      + ? ? ? ?
mcp         personal  - - - - -
mcp         secret    - - - - -
experiment  none      + + + - -
experiment  personal  - - - - -
experiment  secret    - - - - -
"""
SIGNS = {"+": Authority.ALLOW, "?": Authority.ASK, "-": Authority.DENY}
CELLS = [
    (Mode(mode), level, DataClass[data.upper()], SIGNS[sign])
    for mode, data, *signs in map(str.split, TABLE.strip().splitlines())
    for level, sign in zip(SafetyLevel, signs, strict=True)
]


def test_the_table_has_every_cell() -> None:
    assert {cell[:3] for cell in CELLS} == {(m, s, d) for m in Mode for s in SafetyLevel for d in DataClass}


@pytest.mark.parametrize(("mode", "level", "data", "authority"), CELLS)
def test_each_cell_is_what_the_table_says(
    mode: Mode, level: SafetyLevel, data: DataClass, authority: Authority
) -> None:
    ruling = rule(mode, "some_tool", level, data)
    assert ruling.authority is authority
    assert mode.value in ruling.reason
    assert "some_tool" in ruling.reason or data.name.lower() in ruling.reason


@pytest.mark.parametrize("tool", ["shell", "delegate_task", "computer"])
@pytest.mark.parametrize("level", SafetyLevel)
def test_an_mcp_caller_never_gets_a_shell_a_child_or_a_screen(tool: str, level: SafetyLevel) -> None:
    """Not even where somebody could approve, and not even if the tool were declared harmless."""
    ruling = rule(Mode.MCP, tool, level, DataClass.NONE)
    assert ruling.authority is Authority.DENY
    assert ruling.reason == f"{tool} is never available in mcp mode"


@pytest.mark.parametrize("mode", Mode)
def test_more_power_never_needs_less_permission(mode: Mode) -> None:
    """The table cannot be passed by calling a thing worse than it is."""
    strictness = [Authority.ALLOW, Authority.ASK, Authority.DENY]
    for data in DataClass:
        row = [strictness.index(rule(mode, "t", level, data).authority) for level in SafetyLevel]
        assert row == sorted(row)
    for level in SafetyLevel:
        column = [strictness.index(rule(mode, "t", level, data).authority) for data in DataClass]
        assert column == sorted(column)
