"""What a tool is to the host: its schema, its authority, what it claims, and the code that does it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from geode.authority import Arguments, DataClass, SafetyLevel

__all__ = [
    "Arguments",
    "DataClass",
    "OutOfScope",
    "ResourceClaim",
    "SafetyLevel",
    "ToolFailed",
    "ToolHandler",
    "ToolOutput",
    "ToolSpec",
]


class ToolFailed(Exception):  # noqa: N818  (it names what happened to the tool, as the loop reports it)
    """The tool did nothing, and says why. The text goes to the model."""


class OutOfScope(ToolFailed):
    """The call reaches for something outside what its session may touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaim:
    """A named thing that a call uses. Two calls may hold one resource together only if both only read it."""

    resource: str
    exclusive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool gave back. `is_error` marks a result that the model should read as a failure (a failing command)."""

    text: str
    is_error: bool = False


class ToolHandler(Protocol):
    """Does the call.

    It may raise `ToolFailed` when nothing happened; whatever else it raises leaves the effect uncertain. It is
    cancelled at the tool's time limit, and must then end what it started.
    """

    def __call__(self, arguments: Arguments, /) -> Awaitable[ToolOutput]:
        """Run with arguments that passed the tool's schema."""
        ...


def _claims_nothing(_: Arguments) -> tuple[ResourceClaim, ...]:
    return ()


def _in_scope(_: Arguments) -> None:
    return None


def _stands_on_nothing(_: Arguments) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool.

    `check_scope` raises `OutOfScope` for arguments that reach outside the session; it runs before policy and again
    after every rewrite, on arguments that may not have passed the schema yet. `claims` names the resources to lock.
    `basis` names what is run and is no part of the arguments, such as a script of the workspace, as it is by now: who
    approves a call approves that.
    `intent` is recorded at admission, and lets `settled_by_probe` find out after a crash whether the effect happened:
    True for yes, False for no, None when it cannot tell.
    """

    name: str
    description: str
    input_schema: dict[str, JsonValue]
    level: SafetyLevel
    handler: ToolHandler
    data_class: DataClass = DataClass.NONE
    timeout_s: float = 60.0
    check_scope: Callable[[Arguments], None] = _in_scope
    claims: Callable[[Arguments], tuple[ResourceClaim, ...]] = _claims_nothing
    basis: Callable[[Arguments], str] = _stands_on_nothing
    intent: Callable[[Arguments], str] | None = None
    settled_by_probe: Callable[[Arguments, str], bool | None] | None = None
