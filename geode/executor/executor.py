"""One call, from the model's proposal to its one result. Every stage of authority stands here, in order."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from geode.canonical import canonical_json
from geode.clock import Clock
from geode.events import PREVIEW_CHARS, CallEnd, CallEnded, HookDecided, Notice, preview
from geode.executor.approval import ApprovalRequest, Approver
from geode.executor.dispatch import dispatch
from geode.executor.locks import ResourceLocks
from geode.executor.policy import Authority, Mode, rule
from geode.hooks.middleware import RequestMiddleware, apply_middleware
from geode.hooks.points import (
    AddContext,
    Ask,
    Block,
    HookPoint,
    PermissionAsked,
    Rewrite,
    ToolEnded,
    ToolProposed,
    Withhold,
)
from geode.hooks.registry import Answer, HookRegistry
from geode.hooks.system import HookSystem
from geode.llm.messages import ToolResult, ToolUse
from geode.records.database import RecordError
from geode.records.receipts import EffectReceiptStore, ReceiptKey
from geode.redaction import Redactor, clean_text
from geode.tools.arguments import BadArguments, check_arguments, parse_arguments
from geode.tools.plan import BoundToolPlan
from geode.tools.spec import Arguments, SafetyLevel, ToolFailed, ToolSpec

RESULT_CHARS_MAX = 30_000
_RECEIPT_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the session a call stands: with its id, the key of its receipt.

    `said` and `rounds_left` are for the hooks: the text beside the calls, and the rounds that this prompt has after it.
    """

    turn: int
    round: int
    path: str = ""
    attempt: int = 1
    said: str = ""
    rounds_left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedCall:
    """What became of one call. `stage` names where it was refused, and is empty when it ran.

    `contexts` are texts that hooks want the model to read beside the result.

    `lost_record` is set if the effect ran but its end could not be made durable: the session must not go on.
    """

    result: ToolResult
    end: CallEnd
    stage: str = ""
    contexts: tuple[str, ...] = ()
    lost_record: str = ""


class _Refused(Exception):  # noqa: N818  (a call's fate, not a program's error)
    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(reason)
        self.stage, self.reason = stage, reason


class ToolExecutor:
    """Runs calls of one session, each through the whole chain of authority."""

    def __init__(
        self,
        *,
        mode: Mode,
        plan: BoundToolPlan,
        registry: HookRegistry,
        observers: HookSystem,
        approver: Approver,
        receipts: EffectReceiptStore,
        locks: ResourceLocks,
        redactor: Redactor,
        clock: Clock,
        middleware: Sequence[RequestMiddleware] = (),
    ) -> None:
        self.plan = plan
        self._mode, self._registry, self._observers, self._approver = mode, registry, observers, approver
        self._receipts, self._locks, self._redactor, self._clock = receipts, locks, redactor, clock
        self._middleware = tuple(middleware)

    async def aexecute(self, call: ToolUse, place: Place) -> ExecutedCall:
        """Return exactly one result for `call`, whatever happens to it.

        A cancellation ends the call and comes back as its result. Whoever was cancelled asks its own task.
        """
        began = self._clock.monotonic_s()
        try:
            spec, arguments = await self._authorised(call, place)
            executed = await self._run(spec, arguments, call, place)
        except _Refused as refusal:
            where = "by hook" if refusal.stage == "hook" else f"at {refusal.stage}"
            executed = self._not_started(call, refusal.stage, f"refused {where}: {refusal.reason}")
        except asyncio.CancelledError:
            executed = self._not_started(call, "cancelled", "not started: the session was stopped first")
        self._tell(call, executed, place, began)
        return executed

    def refuse(self, call: ToolUse, place: Place, stage: str, text: str) -> ExecutedCall:
        """Return the result of a call that is not even looked at, and put it on record like any other."""
        executed = self._not_started(call, stage, text)
        self._tell(call, executed, place, self._clock.monotonic_s())
        return executed

    def _not_started(self, call: ToolUse, stage: str, text: str) -> ExecutedCall:
        result = ToolResult(call_id=call.call_id, text=self._safe(text), is_error=True)
        return ExecutedCall(result=result, end=CallEnd.NOT_STARTED, stage=stage)

    def _tell(self, call: ToolUse, executed: ExecutedCall, place: Place, began_s: float) -> None:
        self._observers.emit(
            CallEnded(
                turn=place.turn,
                round=place.round,
                call_id=call.call_id,
                tool=self._excerpt(call.name, 80),
                arguments=self._excerpt(call.arguments),
                end=executed.end.value,
                is_error=executed.result.is_error,
                stage=executed.stage,
                elapsed_ms=round((self._clock.monotonic_s() - began_s) * 1000, 3),
                result=preview(executed.result.text),
                result_chars=len(executed.result.text),
            )
        )

    async def _authorised(self, call: ToolUse, place: Place) -> tuple[ToolSpec, dict[str, JsonValue]]:
        """Return the tool and the final arguments of a call that may run, or raise the refusal."""
        spec = self.plan.get(call.name)
        if spec is None:
            nearest = self.plan.nearest(call.name)
            hint = f"; did you mean {nearest!r}?" if nearest else ""
            raise _Refused("scope", f"no tool is named {preview(call.name, 80)!r}{hint}")
        try:
            parsed = parse_arguments(call.arguments)
        except BadArguments as problem:
            raise _Refused("schema", str(problem)) from problem
        if parsed.twice_encoded:
            text = f"call {call.call_id!r} of round {place.round} came as text of an object, and was decoded once more"
            self._observers.emit(Notice(about="arguments", text=text))
        arguments = parsed.arguments
        self._check_scope(spec, arguments)
        with self._refusing("middleware"):
            made = apply_middleware(self._middleware, spec.name, arguments)
            arguments = _own_copy(arguments) if made is arguments else _as_json(made)
        asks = self._judge(spec, arguments)
        final, hook_asks = await self._asked_hooks(spec, arguments, place)
        if final is not arguments:
            asks = self._judge(spec, final)
        await self._approved(spec, final, (*asks, *hook_asks), place)
        return spec, final

    def _judge(self, spec: ToolSpec, arguments: dict[str, JsonValue]) -> tuple[str, ...]:
        """Hold arguments against scope, policy and schema; return why somebody must approve, if so."""
        self._check_scope(spec, arguments)
        ruling = rule(self._mode, spec.name, spec.level, spec.data_class)
        if ruling.authority is Authority.DENY:
            raise _Refused("policy", ruling.reason)
        if problem := check_arguments(spec, arguments):
            raise _Refused("schema", problem)
        return (ruling.reason,) if ruling.authority is Authority.ASK else ()

    def _check_scope(self, spec: ToolSpec, arguments: Arguments) -> None:
        with self._refusing("scope"):
            spec.check_scope(arguments)

    @contextmanager
    def _refusing(self, stage: str) -> Iterator[None]:
        """Make what a tool's own code raises before anything began a refusal at `stage`."""
        try:
            yield
        except (RecordError, ToolFailed) as problem:
            raise _Refused(stage, str(problem)) from problem
        except Exception as error:  # foreign code: what it could not check does not run
            crash = f"{type(error).__name__}: {error}"
            self._observers.report(stage, crash)
            raise _Refused(stage, f"its own code crashed ({crash})") from error

    async def _asked_hooks(
        self, spec: ToolSpec, arguments: dict[str, JsonValue], place: Place
    ) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
        """Ask PreToolUse; each hook sees what the ones before it made of the arguments."""
        asks: tuple[str, ...] = ()
        for hook in self._registry.at(HookPoint.PRE_TOOL_USE):
            event = ToolProposed(
                tool=spec.name,
                level=spec.level,
                arguments=_own_copy(arguments),
                round=place.round,
                said=place.said,
            )
            answer = await self._registry.ask_one(hook, HookPoint.PRE_TOOL_USE, event)
            if answer is None:
                continue
            self._told(answer, HookPoint.PRE_TOOL_USE, place)
            match answer.decision:
                case Rewrite(arguments=rewritten):
                    arguments = rewritten
                case Ask(reason=reason):
                    asks = (*asks, reason)
                case Block(reason=reason):
                    raise _Refused("hook", reason)
                case _:
                    raise _Refused("hook", f"the guard {answer.hook!r} is broken ({answer.problem}), so it blocks")
        return arguments, asks

    async def _approved(
        self, spec: ToolSpec, arguments: dict[str, JsonValue], asks: tuple[str, ...], place: Place
    ) -> None:
        if not asks:
            return
        await self._permitted(spec, arguments, "; ".join(dict.fromkeys(asks)), place)
        text = canonical_json(arguments)
        request = ApprovalRequest(
            tool=spec.name,
            level=spec.level,
            arguments=text,
            arguments_hash=sha256(text.encode()).hexdigest(),
            reason="; ".join(dict.fromkeys(asks)),
        )
        try:
            approved = await self._approver.approve(request)
        except Exception as error:  # who approves is foreign code: what it raises is no approval
            self._observers.report("approver", f"{type(error).__name__}: {error}")
            raise _Refused("approval", f"{request.reason}, and asking failed ({type(error).__name__})") from error
        if approved is not True:
            raise _Refused("approval", f"{request.reason}, and nobody approved this call")
        # What was approved is what runs: the arguments come back out of the bytes that were shown.
        arguments.clear()
        arguments.update(json.loads(text))

    async def _permitted(self, spec: ToolSpec, arguments: dict[str, JsonValue], reason: str, place: Place) -> None:
        """Ask PermissionRequest, which may refuse before anybody is asked, and cannot approve."""
        for hook in self._registry.at(HookPoint.PERMISSION_REQUEST):
            event = PermissionAsked(tool=spec.name, level=spec.level, arguments=_own_copy(arguments), reason=reason)
            answer = await self._registry.ask_one(hook, HookPoint.PERMISSION_REQUEST, event)
            if answer is None:
                continue
            self._told(answer, HookPoint.PERMISSION_REQUEST, place)
            match answer.decision:
                case Block(reason=said):
                    raise _Refused("hook", said)
                case _:
                    raise _Refused("hook", f"the guard {answer.hook!r} is broken ({answer.problem}), so it blocks")

    async def _run(self, spec: ToolSpec, arguments: dict[str, JsonValue], call: ToolUse, place: Place) -> ExecutedCall:
        key = ReceiptKey(path=place.path, round=place.round, call_id=call.call_id, attempt=place.attempt)
        has_effect = spec.level > SafetyLevel.READ
        with self._refusing("lock"):
            claims = tuple(spec.claims(arguments))
        if has_effect:
            self._admit(key, spec, arguments)
        try:
            async with self._locks.hold(claims):
                if has_effect:
                    self._start(key)
                ended = await dispatch(spec, _own_copy(arguments))
        except asyncio.CancelledError:
            # Only the wait for a resource lets it through, so nothing has begun.
            if has_effect:
                self._end(key, CallEnd.NOT_STARTED, "cancelled")
            raise
        if ended.crash:
            self._observers.report(f"tool {spec.name}", ended.crash)
        text = self._safe(ended.text)
        lost = self._end(key, ended.end, preview(text, 200) if ended.is_error else "") if has_effect else ""
        contexts: tuple[str, ...] = ()
        if not ended.cancelled:
            with suppress(asyncio.CancelledError):  # the call has ended, and its true result stands
                text, contexts = await self._after(spec, arguments, text, place, is_error=ended.is_error)
        return ExecutedCall(
            result=ToolResult(call_id=call.call_id, text=text, is_error=ended.is_error),
            end=ended.end,
            contexts=contexts,
            lost_record=lost,
        )

    def _admit(self, key: ReceiptKey, spec: ToolSpec, arguments: dict[str, JsonValue]) -> None:
        with self._refusing("receipt"):
            text = canonical_json(arguments)
            self._receipts.admit(
                key,
                tool=spec.name,
                arguments=self._excerpt(text, _RECEIPT_CHARS_MAX),
                arguments_hash=sha256(text.encode()).hexdigest(),
                intent=spec.intent(arguments) if spec.intent else "",
            )

    def _start(self, key: ReceiptKey) -> None:
        with self._refusing("receipt"):
            self._receipts.started(key)

    def _end(self, key: ReceiptKey, end: CallEnd, note: str) -> str:
        """Record how the effect ended; return why that could not be made durable, or nothing."""
        try:
            self._receipts.ended(key, end, note)
        except RecordError as problem:
            # Reopening the store finds the open receipt and gives it its honest end.
            self._observers.report("effect receipt", str(problem))
            return str(problem)
        return ""

    async def _after(
        self, spec: ToolSpec, arguments: dict[str, JsonValue], result: str, place: Place, *, is_error: bool
    ) -> tuple[str, tuple[str, ...]]:
        """Ask PostToolUse about what the model would read. A broken hook leaves it, with a warning beside it."""
        text, contexts = result, []
        for hook in self._registry.at(HookPoint.POST_TOOL_USE):
            event = ToolEnded(
                tool=spec.name,
                level=spec.level,
                arguments=_own_copy(arguments),
                text=result,
                is_error=is_error,
                round=place.round,
                rounds_left=place.rounds_left,
            )
            answer = await self._registry.ask_one(hook, HookPoint.POST_TOOL_USE, event)
            if answer is None:
                continue
            self._told(answer, HookPoint.POST_TOOL_USE, place)
            match answer.decision:
                case AddContext(text=context) if context.strip():
                    contexts.append(self._safe(context))
                case AddContext():
                    pass
                case Withhold(reason=reason):
                    text = self._safe(f"[result withheld: {reason}]")
                case _:
                    contexts.append(self._safe(f"Warning: the hook {answer.hook!r} is broken ({answer.problem})."))
        return text, tuple(contexts)

    def _told(self, answer: Answer, point: HookPoint, place: Place) -> None:
        self._observers.emit(decided(answer, point, place.turn, place.round, self._redactor))

    def _excerpt(self, text: str, limit: int = PREVIEW_CHARS) -> str:
        # Redacted before it is cut: half a secret would not be recognised.
        return preview(self._redactor.redact(clean_text(text)), limit)

    def _safe(self, text: str) -> str:
        text = self._redactor.redact(clean_text(text))
        if not text.strip():
            return "(no output)"
        if len(text) <= RESULT_CHARS_MAX:
            return text
        half = RESULT_CHARS_MAX // 2
        return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _as_json(made: object) -> dict[str, JsonValue]:
    arguments = json.loads(canonical_json(made))
    if not isinstance(arguments, dict):
        raise TypeError(f"arguments became {type(made).__name__}")
    return arguments


def _own_copy(arguments: Arguments) -> dict[str, JsonValue]:
    """Return a copy that its receiver may change without changing what was judged."""
    return {key: _copied(value) for key, value in arguments.items()}


def _copied(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _own_copy(value)
    return [_copied(item) for item in value] if isinstance(value, list) else value


def decided(answer: Answer, point: HookPoint, turn: int, round_: int, redactor: Redactor) -> HookDecided:
    """Return the event that reports what a hook said."""
    decision = answer.decision
    reason = answer.problem
    for field in ("reason", "instruction", "text"):
        reason = reason or str(getattr(decision, field, ""))
    return HookDecided(
        turn=turn,
        round=round_,
        point=point.value,
        hook=answer.hook,
        decision="broken" if decision is None else type(decision).__name__.lower(),
        reason=preview(redactor.redact(reason)),
        broken=answer.broken,
    )
