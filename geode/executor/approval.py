"""Approval of one call in its final form. Who approves is not this package's business."""

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from geode.authority import DataClass, SafetyLevel
from geode.canonical import content_hash
from geode.clock import Clock

STORED_MAX = 256
STORED_S = 3_600.0


class Approval(StrEnum):
    """What the approver said. `SESSION`: also to the very same call again, for a while and in this session only."""

    NO = "no"
    ONCE = "once"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What is to be approved: exactly these bytes of arguments, and nothing like them.

    `path` names the sub-agent that asks; it is empty for the session itself. `basis` names the scripts that the
    arguments name, as they are by now.
    """

    tool: str
    level: SafetyLevel
    arguments: str
    arguments_hash: str
    reason: str
    data_class: DataClass = DataClass.NONE
    path: str = ""
    basis: str = ""

    @property
    def may_be_stored(self) -> bool:
        """Whether a yes can hold for the same call again: never for what reaches outside or rules the machine."""
        return self.level < SafetyLevel.EXTERNAL and self.data_class < DataClass.SECRET


class Approver(Protocol):
    """Answers one request. It may take as long as a person does; raising counts as no, and so does any other value."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Return what was said."""
        ...


class Nobody:
    """Approves nothing: what an unattended session has."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """See `Approver.approve`."""
        del request
        return Approval.NO


class StoredApprovals:
    """What was approved for the rest of a session. It lives in memory, so it ends with the process; and it expires.

    An approval covers the same tool with the same bytes of arguments, at the same stakes, as long as the scripts that
    these name are the same. Whatever differs is asked for again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stored: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def add(self, request: ApprovalRequest) -> None:
        """Remember that `request` was approved for the session."""
        if request.may_be_stored:
            self._stored[_key(request)] = self._clock.monotonic_s() + STORED_S, request.basis
            while len(self._stored) > STORED_MAX:
                self._stored.popitem(last=False)

    def covers(self, request: ApprovalRequest) -> bool:
        """Whether exactly this was approved, not too long ago."""
        return self._basis(request) == request.basis

    def is_outdated(self, request: ApprovalRequest) -> bool:
        """Whether this was approved, not too long ago, when its scripts were others."""
        return self._basis(request) not in (None, request.basis)

    def _basis(self, request: ApprovalRequest) -> str | None:
        until, basis = self._stored.get(_key(request), (0.0, ""))
        return basis if request.may_be_stored and self._clock.monotonic_s() < until else None


def _key(request: ApprovalRequest) -> str:
    return content_hash((request.tool, request.arguments, int(request.level), int(request.data_class)))
