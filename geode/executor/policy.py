"""What a session may do by its mode: allowed, allowed if somebody approves, or denied. Unattended means denied."""

from dataclasses import dataclass
from enum import StrEnum

from geode.authority import DataClass, SafetyLevel


class Mode(StrEnum):
    """Where a session is reached from."""

    REPL = "repl"
    IPC = "ipc"
    DAEMON = "daemon"
    MCP = "mcp"
    EXPERIMENT = "experiment"


class Authority(StrEnum):
    """What policy says of a call. `ASK` is a denial where nobody is there to approve."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Policy's answer, with the reason that the model and the timeline are told, and the rule that gave it, if any."""

    authority: Authority
    reason: str
    rule: str = ""


_BY_LEVEL: dict[Mode, tuple[Authority, Authority, Authority, Authority, Authority]] = {
    #                  read             write            execute          external         admin
    Mode.REPL: (Authority.ALLOW, Authority.ASK, Authority.ASK, Authority.ASK, Authority.ASK),
    Mode.IPC: (Authority.ALLOW, Authority.ASK, Authority.ASK, Authority.ASK, Authority.ASK),
    Mode.DAEMON: (Authority.ALLOW, Authority.ASK, Authority.ASK, Authority.ASK, Authority.ASK),
    Mode.MCP: (Authority.ALLOW, Authority.ASK, Authority.ASK, Authority.ASK, Authority.ASK),
    Mode.EXPERIMENT: (Authority.ALLOW, Authority.ALLOW, Authority.ALLOW, Authority.DENY, Authority.DENY),
}
_NEVER: dict[Mode, frozenset[str]] = {Mode.MCP: frozenset({"shell", "delegate_task", "computer"})}
_ATTENDED = frozenset({Mode.REPL, Mode.IPC})


def rule(mode: Mode, tool: str, level: SafetyLevel, data_class: DataClass) -> Ruling:
    """Say what `mode` allows of a call to `tool`.

    The stricter of two answers counts: that for the safety level, and that for personal data, which is asked for where
    somebody is attending and denied elsewhere.
    """
    if tool in _NEVER.get(mode, frozenset()):
        return Ruling(authority=Authority.DENY, reason=f"{tool} is never available in {mode} mode")
    if data_class > DataClass.NONE and mode not in _ATTENDED:
        return Ruling(authority=Authority.DENY, reason=f"{data_class.name.lower()} data is out of reach in {mode} mode")
    authority = _BY_LEVEL[mode][level]
    if data_class > DataClass.NONE and authority is Authority.ALLOW:
        authority = Authority.ASK
    return Ruling(authority=authority, reason=f"{tool} is a tool of level {level.name.lower()} in {mode} mode")
