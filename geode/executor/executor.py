"""One call, from the model's proposal to its one result. Every stage of authority stands here, in order."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from geode.canonical import canonical_json
from geode.clock import Clock
from geode.events import CallEnd, Notice, preview
from geode.executor.approval import Approver, StoredApprovals
from geode.executor.asking import Asking
from geode.executor.call import ExecutedCall, Place
from geode.executor.dispatch import dispatch
from geode.executor.locks import ResourceLocks
from geode.executor.outgoing import Outgoing
from geode.executor.policy import Authority, Ruling
from geode.executor.refusal import Refused, as_json, own_copy
from geode.executor.rulings import Judged, Policy
from geode.executor.told import Told
from geode.hooks.middleware import RequestMiddleware, apply_middleware
from geode.hooks.points import AddContext, Ask, Block, HookPoint, Rewrite, ToolEnded, ToolProposed, Withhold
from geode.hooks.registry import HookRegistry
from geode.hooks.system import HookSystem
from geode.llm.messages import ToolResult, ToolUse
from geode.records.database import RecordError
from geode.records.receipts import EffectReceiptStore, ReceiptKey
from geode.redaction import Redactor
from geode.tools.arguments import BadArguments, check_arguments, parse_arguments
from geode.tools.plan import BoundToolPlan
from geode.tools.spec import Arguments, ResourceClaim, SafetyLevel, ToolFailed, ToolSpec

_RECEIPT_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cleared:
    """A call that may run, as it was judged.

    `claims` are the files that its paths led to then, `basis` what it would have run when it was asked about.
    """

    spec: ToolSpec
    arguments: dict[str, JsonValue]
    claims: tuple[ResourceClaim, ...]
    rule: str
    basis: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """One form of a call's arguments, held against scope, policy and schema."""

    arguments: dict[str, JsonValue]
    claims: tuple[ResourceClaim, ...]
    judged: Judged


class ToolExecutor:
    """Runs calls of one session, each through the whole chain of authority."""

    def __init__(
        self,
        *,
        policy: Policy,
        plan: BoundToolPlan,
        registry: HookRegistry,
        observers: HookSystem,
        approver: Approver,
        receipts: EffectReceiptStore,
        locks: ResourceLocks,
        redactor: Redactor,
        clock: Clock,
        middleware: Sequence[RequestMiddleware] = (),
        system: str = "",
    ) -> None:
        self.plan = plan
        self._policy, self._registry, self._observers = policy, registry, observers
        self._receipts, self._locks, self._clock = receipts, locks, clock
        self._middleware = tuple(middleware)
        self._told = Told(redactor, observers)
        self._outgoing = Outgoing(redactor, system)
        self._asking = Asking(registry, observers, approver, StoredApprovals(clock), self._told)

    async def aexecute(self, call: ToolUse, place: Place) -> ExecutedCall:
        """Return exactly one result for `call`, whatever happens to it.

        A cancellation ends the call and comes back as its result. Whoever was cancelled asks its own task.
        """
        began = self._clock.monotonic_s()
        try:
            executed = await self._run(await self._authorised(call, place), call, place)
        except Refused as refusal:
            executed = self._not_started(call, refusal.stage, refusal.told, refusal.rule)
        except asyncio.CancelledError:
            executed = self._not_started(call, "cancelled", "not started: the session was stopped first")
        self._told.ended(call, executed, place, self._clock.monotonic_s() - began)
        return executed

    def refuse(self, call: ToolUse, place: Place, stage: str, text: str) -> ExecutedCall:
        """Return the result of a call that is not even looked at, and put it on record like any other."""
        executed = self._not_started(call, stage, text)
        self._told.ended(call, executed, place, 0.0)
        return executed

    def _not_started(self, call: ToolUse, stage: str, text: str, rule: str = "") -> ExecutedCall:
        result = ToolResult(call_id=call.call_id, text=self._told.safe(text), is_error=True)
        return ExecutedCall(result=result, end=CallEnd.NOT_STARTED, stage=stage, rule=rule)

    async def _authorised(self, call: ToolUse, place: Place) -> _Cleared:
        """Return the final form of a call that may run, or raise the refusal."""
        spec = self.plan.get(call.name)
        if spec is None:
            nearest = self.plan.nearest(call.name)
            hint = f"; did you mean {nearest!r}?" if nearest else ""
            raise Refused("scope", f"no tool is named {preview(call.name, 80)!r}{hint}")
        try:
            parsed = parse_arguments(call.arguments)
        except BadArguments as problem:
            raise Refused("schema", str(problem)) from problem
        if parsed.twice_encoded:
            text = f"call {call.call_id!r} of round {place.round} came as text of an object, and was decoded once more"
            self._observers.emit(Notice(about="arguments", text=text))
        form = self._after_middleware(spec, parsed.arguments)
        form, hook_asks = await self._asked_hooks(spec, form, place)
        ruling, arguments = form.judged.ruling, form.arguments
        by_rule = f" [{ruling.rule}]" if ruling.rule else ""
        asks = (ruling.reason + by_rule, *hook_asks) if ruling.authority is Authority.ASK else hook_asks
        if form.judged.stakes.level >= SafetyLevel.EXTERNAL and self._outgoing.holds_prompt(arguments):
            asks = (*asks, "it sends a part of the system prompt")
        basis: str | None = None
        if asks:
            reason = "; ".join(dict.fromkeys(asks))
            with self._refusing("policy"):
                basis = spec.basis(arguments)
            arguments = await self._asking.approved(
                spec, arguments, form.judged.stakes, basis, reason=reason, call_id=call.call_id, place=place
            )
        return _Cleared(spec=spec, arguments=arguments, claims=form.claims, rule=ruling.rule, basis=basis)

    def _after_middleware(self, spec: ToolSpec, arguments: dict[str, JsonValue]) -> _Weighed:
        self._check_scope(spec, arguments)
        with self._refusing("middleware"):
            given = own_copy(arguments)
            made = apply_middleware(self._middleware, spec.name, given)
            # Whoever made it may hold it in its hand, so the call goes on with a copy.
            made = own_copy(arguments) if made is given and given == arguments else as_json(made)
        form = self._weigh(spec, made)
        if made != arguments and not check_arguments(spec, arguments):
            self._hold_level(self._weigh(spec, arguments, refuse=False), form, "the request middleware")
        return form

    def _weigh(self, spec: ToolSpec, arguments: dict[str, JsonValue], *, refuse: bool = True) -> _Weighed:
        """Hold arguments against scope, policy and schema."""
        self._check_scope(spec, arguments)
        _refuse_denied(self._policy.judge_tool(spec))
        if problem := check_arguments(spec, arguments):
            raise Refused("schema", problem)
        if self._outgoing.holds_secret(arguments):
            raise Refused("policy", "its arguments hold a secret of this machine, in one form or another")
        # What depends on the arguments comes after the schema, so that it can rely on their form.
        with self._refusing("policy"):
            claims = tuple(spec.claims(arguments))
            judged = self._policy.judge(spec, arguments, claims)
        if refuse:
            _refuse_denied(judged.ruling)
        return _Weighed(arguments=arguments, claims=claims, judged=judged)

    def _hold_level(self, before: _Weighed, after: _Weighed, who: str) -> None:
        """Refuse a change that makes a call look smaller than it was: whoever made it may only raise the stakes."""
        if after.judged.stakes.falls_below(before.judged.stakes):
            was = before.judged.stakes
            shown = f"level {was.level.name.lower()} and {was.data_class.name.lower()} data"
            raise Refused("rewrite", f"{who} lowered the call from {shown}; a change may only raise them")

    def _check_scope(self, spec: ToolSpec, arguments: Arguments) -> None:
        with self._refusing("scope"):
            spec.check_scope(arguments)

    @contextmanager
    def _refusing(self, stage: str) -> Iterator[None]:
        """Make what a tool's own code raises before anything began a refusal at `stage`."""
        try:
            yield
        except (RecordError, ToolFailed) as problem:
            raise Refused(stage, str(problem)) from problem
        except Exception as error:  # foreign code: what it could not check does not run
            crash = f"{type(error).__name__}: {error}"
            self._observers.report(stage, crash)
            raise Refused(stage, f"its own code crashed ({crash})") from error

    async def _asked_hooks(self, spec: ToolSpec, form: _Weighed, place: Place) -> tuple[_Weighed, tuple[str, ...]]:
        """Ask PreToolUse; each hook sees what the ones before it made of the arguments, and nothing unjudged."""
        asks: tuple[str, ...] = ()
        for hook in self._registry.at(HookPoint.PRE_TOOL_USE):
            event = ToolProposed(
                tool=spec.name,
                level=spec.level,
                arguments=own_copy(form.arguments),
                round=place.round,
                said=place.said,
            )
            answer = await self._registry.ask_one(hook, HookPoint.PRE_TOOL_USE, event)
            if answer is None:
                continue
            self._told.hook(answer, HookPoint.PRE_TOOL_USE, place)
            match answer.decision:
                case Rewrite(arguments=rewritten):
                    before, form = form, self._weigh(spec, rewritten)
                    self._hold_level(before, form, f"the hook {answer.hook!r}")
                case Ask(reason=reason):
                    asks = (*asks, reason)
                case Block(reason=reason):
                    raise Refused("hook", reason)
                case _:
                    raise Refused("hook", f"the guard {answer.hook!r} is broken ({answer.problem}), so it blocks")
        return form, asks

    async def _run(self, cleared: _Cleared, call: ToolUse, place: Place) -> ExecutedCall:
        spec, arguments = cleared.spec, cleared.arguments
        key = ReceiptKey(path=place.path, round=place.round, call_id=call.call_id, attempt=place.attempt)
        has_effect = spec.level > SafetyLevel.READ
        if has_effect:
            self._admit(key, spec, arguments)
        try:
            async with self._locks.hold(cleared.claims):
                self._check_again(cleared)
                if has_effect:
                    self._start(key)
                ended = await dispatch(spec, own_copy(arguments))
        except (asyncio.CancelledError, Refused) as ending:
            # Only what stands before the start lets one through, so nothing has begun.
            if has_effect:
                self._end(key, CallEnd.NOT_STARTED, ending.reason if isinstance(ending, Refused) else "cancelled")
            raise
        if ended.crash:
            self._observers.report(f"tool {spec.name}", ended.crash)
        text = self._told.safe(ended.text)
        lost = self._end(key, ended.end, preview(text, 200) if ended.is_error else "") if has_effect else ""
        contexts: tuple[str, ...] = ()
        if not ended.cancelled:
            with suppress(asyncio.CancelledError):  # the call has ended, and its true result stands
                text, contexts = await self._after(spec, arguments, text, place, is_error=ended.is_error)
        return ExecutedCall(
            result=ToolResult(call_id=call.call_id, text=text, is_error=ended.is_error),
            end=ended.end,
            rule=cleared.rule,
            contexts=contexts,
            lost_record=lost,
        )

    def _check_again(self, cleared: _Cleared) -> None:
        """Refuse a call whose paths lead elsewhere than when it was judged: links change while somebody is asked."""
        self._check_scope(cleared.spec, cleared.arguments)
        with self._refusing("lock"):
            claims = tuple(cleared.spec.claims(cleared.arguments))
        if claims != cleared.claims:
            raise Refused("lock", "what its paths lead to has changed since it was judged; call it again")
        if cleared.basis is not None:
            with self._refusing("lock"):
                basis = cleared.spec.basis(cleared.arguments)
            if basis != cleared.basis:
                raise Refused("lock", "a script that it names has changed since it was approved; call it again")

    def _admit(self, key: ReceiptKey, spec: ToolSpec, arguments: dict[str, JsonValue]) -> None:
        with self._refusing("receipt"):
            text = canonical_json(arguments)
            self._receipts.admit(
                key,
                tool=spec.name,
                arguments=self._told.excerpt(text, _RECEIPT_CHARS_MAX),
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
                arguments=own_copy(arguments),
                text=result,
                is_error=is_error,
                round=place.round,
                rounds_left=place.rounds_left,
            )
            answer = await self._registry.ask_one(hook, HookPoint.POST_TOOL_USE, event)
            if answer is None:
                continue
            self._told.hook(answer, HookPoint.POST_TOOL_USE, place)
            match answer.decision:
                case AddContext(text=context) if context.strip():
                    contexts.append(self._told.safe(context))
                case AddContext():
                    pass
                case Withhold(reason=reason):
                    text = self._told.safe(f"[result withheld: {reason}]")
                case _:
                    contexts.append(self._told.safe(f"Warning: the hook {answer.hook!r} is broken ({answer.problem})."))
        return text, tuple(contexts)


def _refuse_denied(ruling: Ruling) -> None:
    if ruling.authority is Authority.DENY:
        raise Refused("policy", ruling.reason, ruling.rule)
