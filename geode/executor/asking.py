"""The approval stage: hooks that may refuse first, approvals that were stored, and then whoever approves."""

import json
from dataclasses import replace
from hashlib import sha256

from pydantic import JsonValue

from geode.canonical import canonical_json
from geode.events import ApprovalDecided
from geode.executor.approval import Approval, ApprovalRequest, Approver, StoredApprovals
from geode.executor.call import Place
from geode.executor.refusal import Refused, own_copy
from geode.executor.rulings import Stakes
from geode.executor.told import Told
from geode.hooks.points import Block, HookPoint, PermissionAsked
from geode.hooks.registry import HookRegistry
from geode.hooks.system import HookSystem
from geode.tools.spec import ToolSpec

_STORED = "stored"


class Asking:
    """Asks for one call at a time that policy or a hook wants somebody to see."""

    def __init__(
        self, registry: HookRegistry, observers: HookSystem, approver: Approver, stored: StoredApprovals, told: Told
    ) -> None:
        self._registry, self._observers, self._approver = registry, observers, approver
        self._stored, self._told = stored, told

    async def approved(
        self,
        spec: ToolSpec,
        arguments: dict[str, JsonValue],
        stakes: Stakes,
        basis: str,
        *,
        reason: str,
        call_id: str,
        place: Place,
    ) -> dict[str, JsonValue]:
        """Return the arguments that were approved, read back out of the bytes that were shown.

        Raises:
            Refused: if they were not.
        """
        await self._permitted(spec, arguments, stakes, reason, place)
        text = canonical_json(arguments)
        request = ApprovalRequest(
            tool=spec.name,
            level=stakes.level,
            data_class=stakes.data_class,
            arguments=text,
            arguments_hash=sha256(text.encode()).hexdigest(),
            reason=reason,
            path=place.path,
            basis=basis,
        )
        if self._stored.is_outdated(request):
            reason = f"{reason}; a script that it names has changed since it was approved"
            request = replace(request, reason=reason)
        answer = _STORED if self._stored.covers(request) else await self._answer(request)
        self._observers.emit(
            ApprovalDecided(
                turn=place.turn,
                round=place.round,
                call_id=call_id,
                tool=request.tool,
                level=request.level.name.lower(),
                arguments_hash=request.arguments_hash,
                answer=answer,
                reason=self._told.excerpt(reason),
            )
        )
        if answer == Approval.NO:
            raise Refused("approval", f"{reason}, and nobody approved this call")
        if answer == Approval.SESSION:
            self._stored.add(request)
        approved: dict[str, JsonValue] = json.loads(text)
        return approved

    async def _answer(self, request: ApprovalRequest) -> Approval:
        try:
            answer = await self._approver.approve(request)
        except Exception as error:  # who approves is foreign code: what it raises is no approval
            self._observers.report("approver", f"{type(error).__name__}: {error}")
            raise Refused("approval", f"{request.reason}, and asking failed ({type(error).__name__})") from error
        # Not by equality: a text that reads like a yes is none.
        return answer if isinstance(answer, Approval) else Approval.NO

    async def _permitted(
        self, spec: ToolSpec, arguments: dict[str, JsonValue], stakes: Stakes, reason: str, place: Place
    ) -> None:
        """Ask PermissionRequest, which may refuse before anybody is asked, and cannot approve."""
        for hook in self._registry.at(HookPoint.PERMISSION_REQUEST):
            event = PermissionAsked(tool=spec.name, level=stakes.level, arguments=own_copy(arguments), reason=reason)
            answer = await self._registry.ask_one(hook, HookPoint.PERMISSION_REQUEST, event)
            if answer is None:
                continue
            self._told.hook(answer, HookPoint.PERMISSION_REQUEST, place)
            match answer.decision:
                case Block(reason=said):
                    raise Refused("hook", said)
                case _:
                    raise Refused("hook", f"the guard {answer.hook!r} is broken ({answer.problem}), so it blocks")
