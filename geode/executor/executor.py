"""One call, from the model's proposal to its one result. Every stage of authority stands here, in order."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from geode.canonical import canonical_json
from geode.clock import Clock
from geode.events import CallEnd, CallEnded, HookDecided, preview
from geode.executor.approval import ApprovalRequest, Approver
from geode.executor.locks import ResourceLocks
from geode.executor.policy import Authority, Mode, rule
from geode.hooks.middleware import RequestMiddleware, apply_middleware
from geode.hooks.points import AddContext, Ask, Block, HookPoint, Rewrite, ToolEnded, ToolProposed, Withhold
from geode.hooks.registry import Answer, HookRegistry
from geode.hooks.system import HookSystem
from geode.llm.messages import ToolResult, ToolUse
from geode.records.database import RecordError
from geode.records.receipts import EffectReceiptStore, ReceiptKey
from geode.redaction import Redactor, clean_text
from geode.tools.arguments import ArgumentsRefused, check_arguments, parse_arguments
from geode.tools.plan import BoundToolPlan
from geode.tools.spec import Arguments, SafetyLevel, ToolFailed, ToolOutput, ToolSpec

RESULT_CHARS_MAX = 30_000
_RECEIPT_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the session a call stands: with its id, the key of its receipt."""

    turn: int
    round: int
    path: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedCall:
    """What became of one call. `contexts` are texts that hooks want the model to read beside the result.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How the dispatch ended, before anybody else looks at it."""

    end: CallEnd
    text: str
    is_error: bool


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
        """Return exactly one result for `call`, whatever happens to it. Only a cancellation passes through."""
        began = self._clock.monotonic_s()
        try:
            spec, arguments = await self._authorised(call, place)
            executed = await self._run(spec, arguments, call, place)
        except _Refused as refusal:
            text = f"refused at {refusal.stage}: {refusal.reason}"
            if refusal.stage == "hook":
                text = f"refused by hook: {refusal.reason}"
            executed = ExecutedCall(
                result=ToolResult(call_id=call.call_id, text=self._safe(text), is_error=True),
                end=CallEnd.NOT_STARTED,
                stage=refusal.stage,
            )
        self._observers.emit(
            CallEnded(
                turn=place.turn,
                round=place.round,
                call_id=call.call_id,
                tool=preview(call.name, 80),
                arguments=self._redactor.redact(preview(clean_text(call.arguments))),
                end=executed.end.value,
                is_error=executed.result.is_error,
                stage=executed.stage,
                elapsed_ms=round((self._clock.monotonic_s() - began) * 1000, 3),
                result=preview(executed.result.text),
                result_chars=len(executed.result.text),
            )
        )
        return executed

    async def _authorised(self, call: ToolUse, place: Place) -> tuple[ToolSpec, dict[str, JsonValue]]:
        """Return the tool and the final arguments of a call that may run, or raise the refusal."""
        spec = self.plan.get(call.name)
        if spec is None:
            nearest = self.plan.nearest(call.name)
            hint = f"; did you mean {nearest!r}?" if nearest else ""
            raise _Refused("scope", f"no tool is named {preview(call.name, 80)!r}{hint}")
        try:
            arguments = parse_arguments(call.arguments, spec.input_schema).value
            self._check_scope(spec, arguments)
            arguments = apply_middleware(self._middleware, spec.name, arguments)
        except ArgumentsRefused as problem:
            raise _Refused("schema", str(problem)) from problem
        except ToolFailed as problem:
            raise _Refused("middleware", str(problem)) from problem
        asks = self._judge(spec, arguments)
        final, hook_asks = await self._asked_hooks(spec, arguments, place)
        if final is not arguments:
            asks = self._judge(spec, final)
        await self._approved(spec, final, (*asks, *hook_asks))
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
        try:
            spec.check_scope(arguments)
        except ToolFailed as problem:
            raise _Refused("scope", str(problem)) from problem

    async def _asked_hooks(
        self, spec: ToolSpec, arguments: dict[str, JsonValue], place: Place
    ) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
        """Ask PreToolUse; each hook sees what the ones before it made of the arguments."""
        asks: tuple[str, ...] = ()
        for hook in self._registry.at(HookPoint.PRE_TOOL_USE):
            event = ToolProposed(tool=spec.name, level=spec.level, arguments=arguments)
            answer = await self._registry.ask_one(hook, HookPoint.PRE_TOOL_USE, event)
            if answer is None:
                continue
            self._told(answer, HookPoint.PRE_TOOL_USE, place)
            match answer.decision:
                case Rewrite(arguments=rewritten):
                    arguments = dict(rewritten)
                case Ask(reason=reason):
                    asks = (*asks, reason)
                case Block(reason=reason):
                    raise _Refused("hook", reason)
                case _:
                    raise _Refused("hook", f"the guard {answer.hook!r} is broken ({answer.problem}), so it blocks")
        return arguments, asks

    async def _approved(self, spec: ToolSpec, arguments: dict[str, JsonValue], asks: tuple[str, ...]) -> None:
        if not asks:
            return
        text = canonical_json(arguments)
        request = ApprovalRequest(
            tool=spec.name,
            level=spec.level,
            arguments=text,
            arguments_hash=sha256(text.encode()).hexdigest(),
            reason="; ".join(dict.fromkeys(asks)),
        )
        if not await self._approver.approve(request):
            raise _Refused("approval", f"{request.reason}, and nobody approved this call")
        # What was approved is what runs: the arguments come back out of the bytes that were shown.
        arguments.clear()
        arguments.update(json.loads(text))

    async def _run(self, spec: ToolSpec, arguments: dict[str, JsonValue], call: ToolUse, place: Place) -> ExecutedCall:
        key = ReceiptKey(path=place.path, round=place.round, call_id=call.call_id, attempt=place.attempt)
        has_effect = spec.level > SafetyLevel.READ
        if has_effect:
            self._admit(key, spec, arguments)
        lost = ""
        try:
            async with self._locks.hold(spec.claims(arguments)):
                if has_effect:
                    self._start(key)
                ended = await self._dispatch(spec, arguments, has_effect=has_effect)
        except asyncio.CancelledError:
            if has_effect:
                self._settle_quietly(key)
            raise
        if has_effect:
            try:
                self._receipts.ended(key, ended.end, preview(ended.text, 200) if ended.is_error else "")
            except RecordError as problem:
                lost = str(problem)
        text, contexts = await self._after(spec, arguments, ended, place)
        return ExecutedCall(
            result=ToolResult(call_id=call.call_id, text=self._safe(text) or "(no output)", is_error=ended.is_error),
            end=ended.end,
            contexts=tuple(self._safe(context) for context in contexts),
            lost_record=lost,
        )

    def _admit(self, key: ReceiptKey, spec: ToolSpec, arguments: dict[str, JsonValue]) -> None:
        text = canonical_json(arguments)
        try:
            self._receipts.admit(
                key,
                tool=spec.name,
                arguments=self._redactor.redact(preview(text, _RECEIPT_CHARS_MAX)),
                arguments_hash=sha256(text.encode()).hexdigest(),
                intent=spec.intent(arguments) if spec.intent else "",
            )
        except (RecordError, ToolFailed) as problem:
            raise _Refused("receipt", str(problem)) from problem

    def _start(self, key: ReceiptKey) -> None:
        try:
            self._receipts.started(key)
        except RecordError as problem:
            raise _Refused("receipt", str(problem)) from problem

    def _settle_quietly(self, key: ReceiptKey) -> None:
        # A cancelled call is on its way out already; if this fails too, reopening the store finds the open receipt.
        try:
            self._receipts.ended(key, CallEnd.UNCERTAIN, "cancelled")
        except RecordError as problem:
            self._observers.report("effect receipt", str(problem))

    async def _dispatch(self, spec: ToolSpec, arguments: dict[str, JsonValue], *, has_effect: bool) -> _Ended:
        unknown = CallEnd.UNCERTAIN if has_effect else CallEnd.FAILED
        try:
            async with asyncio.timeout(spec.timeout_s) as limit:
                output: ToolOutput = await spec.handler(arguments)
        except ToolFailed as failure:
            return _Ended(end=CallEnd.FAILED, text=str(failure), is_error=True)
        except TimeoutError:
            if not limit.expired():
                return _Ended(end=unknown, text="the tool timed out inside", is_error=True)
            outcome = "; whether it took effect is unknown" if has_effect else ""
            return _Ended(end=unknown, text=f"stopped after {spec.timeout_s:g} s{outcome}", is_error=True)
        except Exception as error:  # noqa: BLE001  (a tool is foreign code; nobody knows how far it came)
            self._observers.report(f"tool {spec.name}", f"{type(error).__name__}: {error}")
            outcome = "; whether it took effect is unknown" if has_effect else ""
            return _Ended(
                end=unknown, text=f"the tool crashed ({type(error).__name__}: {error}){outcome}", is_error=True
            )
        return _Ended(end=CallEnd.SUCCEEDED, text=output.text, is_error=output.is_error)

    async def _after(
        self, spec: ToolSpec, arguments: dict[str, JsonValue], ended: _Ended, place: Place
    ) -> tuple[str, tuple[str, ...]]:
        """Ask PostToolUse. A broken hook leaves the true result, with a warning beside it."""
        text, contexts = ended.text, []
        for hook in self._registry.at(HookPoint.POST_TOOL_USE):
            event = ToolEnded(
                tool=spec.name, level=spec.level, arguments=arguments, text=ended.text, is_error=ended.is_error
            )
            answer = await self._registry.ask_one(hook, HookPoint.POST_TOOL_USE, event)
            if answer is None:
                continue
            self._told(answer, HookPoint.POST_TOOL_USE, place)
            match answer.decision:
                case AddContext(text=context):
                    contexts.append(context)
                case Withhold(reason=reason):
                    text = f"[result withheld: {reason}]"
                case _:
                    contexts.append(f"Warning: the hook {answer.hook!r} is broken ({answer.problem}).")
        return text, tuple(contexts)

    def _told(self, answer: Answer, point: HookPoint, place: Place) -> None:
        self._observers.emit(decided(answer, point, place.turn, place.round))

    def _safe(self, text: str) -> str:
        text = self._redactor.redact(clean_text(text))
        if len(text) <= RESULT_CHARS_MAX:
            return text
        half = RESULT_CHARS_MAX // 2
        return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def decided(answer: Answer, point: HookPoint, turn: int, round_: int) -> HookDecided:
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
        decision="block" if decision is None else type(decision).__name__.lower(),
        reason=preview(reason),
        broken=answer.broken,
    )
