"""Approval of one call in its final form. Who approves is not this package's business."""

from dataclasses import dataclass
from typing import Protocol

from geode.authority import SafetyLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What is to be approved: exactly these bytes of arguments, and nothing like them."""

    tool: str
    level: SafetyLevel
    arguments: str
    arguments_hash: str
    reason: str


class Approver(Protocol):
    """Says yes or no to one request. It may take as long as a person does; raising counts as no."""

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return whether the call may run."""
        ...


class Nobody:
    """Approves nothing: what an unattended session has."""

    async def approve(self, request: ApprovalRequest) -> bool:
        """See `Approver.approve`."""
        del request
        return False
