"""The agentic loop: six phases, one function each. The model proposes, the host decides, and every step is saved.

prepare input -> ( prepare call -> call provider -> process tools -> observe and compact )* -> finish
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace

from geode.clock import Clock
from geode.events import (
    CheckEnded,
    ContextCompacted,
    ModelCalled,
    ModelFailed,
    Notice,
    PromptReceived,
    TurnEnded,
    preview,
)
from geode.executor.executor import Place, decided
from geode.executor.processor import BatchResult, ToolCallProcessor
from geode.hooks.points import (
    AddContext,
    Block,
    Continue,
    HookPoint,
    PromptSubmitted,
    Repair,
    Stopping,
    TurnVerified,
)
from geode.hooks.registry import HookRegistry
from geode.hooks.system import HookSystem
from geode.llm.errors import LLMError
from geode.llm.messages import (
    LLMAdapter,
    Message,
    ModelResponse,
    Origin,
    Role,
    StepSnapshot,
    StopReason,
    TextBlock,
    ToolResult,
    ToolUse,
    Usage,
)
from geode.loop.conversation import (
    CHARS_PER_TOKEN,
    Conversation,
    answers_for_lost_calls,
    host_message,
    with_unique_ids,
)
from geode.loop.limits import passed
from geode.loop.turn import TurnResult, TurnStop
from geode.loop.verify import CheckOutcome, CompletionJudge, CompletionResult, CompletionView, verify_turn_async
from geode.records.checkpoint import Progress, SessionCheckpoint
from geode.records.database import RecordError
from geode.records.receipts import EffectReceiptStore, ReceiptState
from geode.redaction import clean_text
from geode.scaffold import LoopLimits, RepairBudget
from geode.tools.plan import BoundToolPlan

_CUT_CALL = "not started: your message was cut at the output limit, so this call is incomplete. Send less at once."
_CUT_TEXT = "Your message was cut at the output limit. Go on where it ended, and send less at once."


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What a loop is made of. Built by a composition root; the loop constructs nothing of it."""

    session_id: str
    adapter: LLMAdapter
    system: str
    plan: BoundToolPlan
    processor: ToolCallProcessor
    registry: HookRegistry
    observers: HookSystem
    checkpoint: SessionCheckpoint
    receipts: EffectReceiptStore
    repair: RepairBudget
    limits: LoopLimits
    clock: Clock
    max_output_tokens: int
    judges: Sequence[CompletionJudge] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    stop: TurnStop
    text: str = ""
    detail: str = ""
    verified: bool = False


class AgenticLoop:
    """One session's loop. It is taken up where the checkpoint left it."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        stored = parts.checkpoint.load()
        self._progress, self._cognitive = stored.progress, stored.cognitive
        parts.registry.restore(stored.guards)
        self._conversation = Conversation()
        self._call_ids: set[str] = set()
        for message in stored.messages:
            self._conversation.append(message)
            self._call_ids.update(use.call_id for use in message.tool_uses)
        self._conversation.elide_to(self._progress.elided_messages)
        fixed = len(parts.system) + sum(len(s.description) + len(str(s.input_schema)) for s in parts.plan.schemas)
        self._fixed_tokens = fixed // CHARS_PER_TOKEN
        self._elapsed_before_s = self._progress.elapsed_s
        self._began_s = parts.clock.monotonic_s()
        self._unusable = ""

    @property
    def unfinished(self) -> bool:
        """Whether a prompt was begun and not ended, by a process that died."""
        return self._progress.in_turn

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far."""
        return self._conversation.messages

    async def arun(self, prompt: str) -> TurnResult:
        """Answer `prompt`. It returns for every end but cancellation, which it saves before it lets it through.

        Raises:
            ValueError: for an empty prompt, or if an earlier prompt of this session is still unfinished.
        """
        if not prompt.strip():
            raise ValueError("the prompt is empty; say what you want done")
        if self.unfinished:
            raise ValueError("an earlier prompt of this session is unfinished; resume it first")
        self._elapsed_before_s, self._began_s = 0.0, self._parts.clock.monotonic_s()
        return await self._until_ended(self._prepare_input(clean_text(prompt)))

    async def aresume(self) -> TurnResult:
        """Go on with the unfinished prompt. Effects that ended are not run again; calls without a result are answered.

        Raises:
            ValueError: if there is nothing to resume.
        """
        if not self.unfinished:
            raise ValueError("every prompt of this session has ended; there is nothing to resume")
        return await self._until_ended(self._take_up())

    async def _until_ended(self, first: Awaitable[_Ending | None]) -> TurnResult:
        try:
            ending = await first
            while ending is None:
                ending = await self._round()
        except RecordError as problem:
            self._unusable = str(problem)
            ending = _Ending(stop=TurnStop.CHECKPOINT_FAILED, detail=str(problem))
        except asyncio.CancelledError:
            self._ended(_Ending(stop=TurnStop.CANCELLED, detail="cancelled; work begun outside may go on"))
            raise
        return self._ended(ending)

    async def _round(self) -> _Ending | None:
        prepared = self._prepare_call()
        if isinstance(prepared, _Ending):
            return prepared
        response = await self._call_provider(prepared)
        if isinstance(response, _Ending):
            return response
        message = self._accepted(response)
        if message is None:
            return self._empty_answer()
        self._progress.empty_in_a_row = 0
        if response.stop in (StopReason.MAX_TOKENS, StopReason.PAUSE):
            return self._cut_answer(message)
        self._progress.cut_in_a_row = 0
        if response.stop is StopReason.REFUSAL:
            self._save(message)
            return _Ending(stop=TurnStop.MODEL_REFUSED, text=message.text, detail="the model refused")
        if message.tool_uses:
            return self._observe_and_compact(message, await self._process_tools(message))
        self._save(message)
        return await self._finish(message.text)

    # Phase 1 ---------------------------------------------------------------------------------------------------------

    async def _prepare_input(self, prompt: str) -> _Ending | None:
        """Ask UserPromptSubmit, and make the prompt durable before anything is done about it."""
        if self._unusable:
            raise RecordError(self._unusable)
        blocks = [TextBlock(text=prompt, origin=Origin.USER)]
        blocked = ""
        self._progress.begin_turn()
        event = PromptSubmitted(text=prompt)
        for hook in self._parts.registry.at(HookPoint.USER_PROMPT_SUBMIT):
            answer = await self._parts.registry.ask_one(hook, HookPoint.USER_PROMPT_SUBMIT, event)
            if answer is None:
                continue
            self._parts.observers.emit(
                decided(answer, HookPoint.USER_PROMPT_SUBMIT, self._progress.turn, self._progress.round)
            )
            match answer.decision:
                case AddContext(text=text) if text.strip():
                    blocks.append(TextBlock(text=clean_text(text), origin=Origin.HOST))
                case Block(reason=reason):
                    blocked = blocked or reason
                case None:
                    blocked = blocked or f"the guard {answer.hook!r} is broken ({answer.problem})"
        self._parts.observers.emit(PromptReceived(turn=self._progress.turn, text=preview(prompt)))
        self._cognitive = self._cognitive.model_copy(update={"goal": preview(prompt, 2_000), "last_check": ""})
        body = self._conversation.append(Message(role=Role.USER, blocks=tuple(blocks)))
        self._parts.checkpoint.save_message(body, self._timed(), self._cognitive)
        return _Ending(stop=TurnStop.PROMPT_BLOCKED, detail=blocked) if blocked else None

    async def _take_up(self) -> _Ending | None:
        """Repair the history that a dead process left, and find where in the prompt it stood."""
        last = self._conversation.messages[-1]
        if self._conversation.awaited:
            self._save(answers_for_lost_calls(last.tool_uses))
            self._parts.observers.emit(
                Notice(
                    about="resume", text=f"{len(last.tool_uses)} calls had no saved result and were answered as unknown"
                )
            )
        elif last.role is Role.ASSISTANT:
            return await self._finish(last.text)
        return None

    # Phase 2 ---------------------------------------------------------------------------------------------------------

    def _prepare_call(self) -> StepSnapshot | _Ending:
        """Hold the limits, and freeze the call."""
        parts, progress = self._parts, self._progress
        if over := passed(parts.limits, progress, self._elapsed_s()):
            return _Ending(stop=over[0], detail=over[1])
        needed = self._fixed_tokens + self._conversation.tokens
        if needed > parts.limits.context_tokens:
            detail = (
                f"about {needed} tokens do not fit into {parts.limits.context_tokens}: system and tools"
                f" {self._fixed_tokens}, messages {self._conversation.tokens}"
            )
            return _Ending(stop=TurnStop.CONTEXT_FULL, detail=detail)
        progress.round += 1
        return StepSnapshot(
            session_id=parts.session_id,
            turn=progress.turn,
            round=progress.round,
            model=parts.adapter.model,
            system=parts.system,
            messages=self._conversation.request(),
            tools=parts.plan.schemas,
            plan_hash=parts.plan.plan_hash,
            plan_generation=parts.plan.generation,
            max_output_tokens=parts.max_output_tokens,
            history_digest=self._conversation.digest,
        )

    # Phase 3 ---------------------------------------------------------------------------------------------------------

    async def _call_provider(self, snapshot: StepSnapshot) -> ModelResponse | _Ending:
        """Ask the model once. Whoever retries is the adapter's route, not the loop."""
        parts, progress = self._parts, self._progress
        try:
            async with asyncio.timeout(max(0.0, parts.limits.seconds - self._elapsed_s())):
                response = await parts.adapter.acomplete(snapshot)
        except TimeoutError:
            return _Ending(
                stop=TurnStop.TIME_LIMIT, detail=f"the model did not answer within {parts.limits.seconds:g} s"
            )
        except LLMError as error:
            return self._model_failed(f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001  (an adapter that breaks its contract must not break the session)
            return self._model_failed(f"the adapter is faulty: {type(error).__name__}: {error}")
        usage = response.usage
        progress.count(usage)
        progress.model_calls += 1
        progress.latency_ms += response.latency_ms
        progress.simulated = progress.simulated or response.simulated
        parts.observers.emit(
            ModelCalled(
                turn=progress.turn,
                round=progress.round,
                stop=response.stop.value,
                served_model=response.served_model,
                simulated=response.simulated,
                latency_ms=response.latency_ms,
                uncached_input_tokens=usage.uncached_input_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                output_tokens=usage.output_tokens,
                cost_usd=usage.cost_usd,
                text=preview("\n\n".join(block.text for block in response.blocks if isinstance(block, TextBlock))),
            )
        )
        return response

    def _model_failed(self, text: str) -> _Ending:
        self._parts.observers.emit(
            ModelFailed(turn=self._progress.turn, round=self._progress.round, error=preview(text, 2_000))
        )
        return _Ending(stop=TurnStop.MODEL_FAILED, detail=text)

    def _accepted(self, response: ModelResponse) -> Message | None:
        """Return the response as a message that fits onto the history, or None if nothing is left of it."""
        texts = [
            replace(block, text=clean_text(block.text))
            for block in response.blocks
            if isinstance(block, TextBlock) and block.text.strip()
        ]
        uses = with_unique_ids([block for block in response.blocks if isinstance(block, ToolUse)], self._call_ids)
        blocks = (*texts, *(replace(use, arguments=clean_text(use.arguments)) for use in uses))
        return Message(role=Role.ASSISTANT, blocks=blocks, raw=response.raw) if blocks else None

    def _empty_answer(self) -> _Ending | None:
        self._progress.empty_in_a_row += 1
        if self._progress.empty_in_a_row < self._parts.limits.empty_answers_in_a_row:
            return None
        detail = f"the model said nothing {self._progress.empty_in_a_row} times in a row"
        return _Ending(stop=TurnStop.EMPTY_ANSWERS, detail=detail)

    def _cut_answer(self, message: Message) -> _Ending | None:
        """Keep what came, run none of it, and tell the model: a half call is never completed by guessing."""
        self._save(message)
        if message.tool_uses:
            blocks = tuple(ToolResult(call_id=use.call_id, text=_CUT_CALL, is_error=True) for use in message.tool_uses)
            self._save(Message(role=Role.USER, blocks=blocks))
        else:
            self._save(host_message(_CUT_TEXT))
        self._progress.cut_in_a_row += 1
        if self._progress.cut_in_a_row < self._parts.limits.cut_answers_in_a_row:
            return None
        detail = f"{self._progress.cut_in_a_row} answers in a row were cut at the output limit"
        return _Ending(stop=TurnStop.CUT_ANSWERS, text=message.text, detail=detail)

    # Phase 4 ---------------------------------------------------------------------------------------------------------

    async def _process_tools(self, message: Message) -> BatchResult:
        """Make the batch durable, then run it. If it cannot be saved, no tool runs."""
        body = self._conversation.append(message)
        self._parts.checkpoint.save_pending(body, len(message.tool_uses), self._timed())
        place = Place(turn=self._progress.turn, round=self._progress.round)
        return await self._parts.processor.arun(message.tool_uses, place)

    # Phase 5 ---------------------------------------------------------------------------------------------------------

    def _observe_and_compact(self, message: Message, batch: BatchResult) -> _Ending | None:
        """Save the complete batch, count it, keep the plan, and shorten the request before it grows too long."""
        parts, progress = self._parts, self._progress
        progress.tool_calls += len(batch.calls)
        progress.tool_errors += sum(call.result.is_error and not call.stage for call in batch.calls)
        progress.refused_calls += sum(bool(call.stage) for call in batch.calls)
        body = self._conversation.append(batch.message)
        if elided := self._conversation.shorten(parts.limits.context_tokens - self._fixed_tokens):
            progress.elided_messages = self._conversation.elided
            parts.observers.emit(ContextCompacted(turn=progress.turn, round=progress.round, elided_rounds=elided))
        self._cognitive = self._cognitive.with_text(message.text)
        parts.checkpoint.save_complete(body, self._timed(), parts.registry.snapshot(), self._cognitive)
        if batch.cancelled:
            raise asyncio.CancelledError
        if batch.lost_record:
            raise RecordError(batch.lost_record)
        return None

    # Phase 6 ---------------------------------------------------------------------------------------------------------

    async def _finish(self, answer: str) -> _Ending | None:
        """Hold the proposed end against the completion check, PostVerify and Stop; None means that work goes on."""
        progress = self._progress
        self._cognitive = self._cognitive.with_text(answer)
        check = await verify_turn_async(self._view(answer), self._parts.judges)
        repair, escalation = await self._post_verify(answer, check)
        decision = "repair" if repair and not escalation else "escalate" if escalation else "accept"
        self._cognitive = self._cognitive.model_copy(update={"last_check": f"{decision}: {repair or escalation}"[:500]})
        self._parts.observers.emit(
            CheckEnded(
                turn=progress.turn,
                round=progress.round,
                passed=check.passed,
                decision=decision,
                reasons=tuple(preview(reason) for reason in (*check.reasons, repair, escalation) if reason),
                repairs_used=progress.repairs_used,
            )
        )
        if escalation:
            return _Ending(stop=TurnStop.ESCALATED, text=answer, detail=escalation)
        if repair:
            if progress.repairs_used >= self._parts.repair.per_prompt:
                detail = f"{progress.repairs_used} of {self._parts.repair.per_prompt} repairs are used up: {repair}"
                return _Ending(stop=TurnStop.NOT_VERIFIED, text=answer, detail=detail)
            progress.repairs_used += 1
            self._save(host_message(f"{self._parts.repair.preamble} {repair}".strip()))
            return None
        return await self._stop(answer)

    async def _post_verify(self, answer: str, check: CompletionResult) -> tuple[str, str]:
        """Return the repair instruction and the reason to escalate, each empty if there is none."""
        repairs = ["\n".join(check.reasons)] if check.outcome is CheckOutcome.REPAIRABLE else []
        escalation = "\n".join(check.reasons) if check.outcome is CheckOutcome.FAILED else ""
        event = TurnVerified(
            answer=answer,
            passed=check.passed,
            reasons=check.reasons,
            repairs_left=self._parts.repair.per_prompt - self._progress.repairs_used,
        )
        for hook in self._parts.registry.at(HookPoint.POST_VERIFY):
            said = await self._parts.registry.ask_one(hook, HookPoint.POST_VERIFY, event)
            if said is None:
                continue
            self._parts.observers.emit(decided(said, HookPoint.POST_VERIFY, self._progress.turn, self._progress.round))
            match said.decision:
                case Repair(instruction=instruction):
                    repairs.append(instruction)
                case None:
                    escalation = escalation or f"the guard {said.hook!r} is broken ({said.problem})"
                case other:
                    escalation = escalation or str(getattr(other, "reason", other))
        return clean_text("\n".join(dict.fromkeys(repairs))), escalation

    async def _stop(self, answer: str) -> _Ending | None:
        """Ask Stop for a continuation, within its bound."""
        progress, allowed = self._progress, self._parts.limits.stop_continuations
        event = Stopping(answer=answer, verified=True, continuations_left=allowed - progress.continuations_used)
        for hook in self._parts.registry.at(HookPoint.STOP):
            said = await self._parts.registry.ask_one(hook, HookPoint.STOP, event)
            if said is None:
                continue
            self._parts.observers.emit(decided(said, HookPoint.STOP, progress.turn, progress.round))
            match said.decision:
                case Continue(instruction=instruction) if progress.continuations_used < allowed and instruction.strip():
                    progress.continuations_used += 1
                    self._save(host_message(clean_text(instruction)))
                    return None
                case None:
                    detail = f"the guard {said.hook!r} is broken ({said.problem})"
                    return _Ending(stop=TurnStop.NOT_VERIFIED, text=answer, detail=detail)
        return _Ending(stop=TurnStop.COMPLETED, text=answer, verified=True)

    def _view(self, answer: str) -> CompletionView:
        uncertain = self._parts.receipts.all(ReceiptState.UNCERTAIN)
        return CompletionView(
            prompt=self._cognitive.goal,
            answer=answer,
            uncertain_effects=tuple(
                f"{receipt.tool} (call {receipt.key.call_id}, round {receipt.key.round})"
                for receipt in uncertain
                if receipt.key.round >= self._progress.turn_first_round
            ),
        )

    # What the phases share -------------------------------------------------------------------------------------------

    def _save(self, message: Message) -> None:
        self._parts.checkpoint.save_message(self._conversation.append(message), self._timed(), self._cognitive)

    def _elapsed_s(self) -> float:
        return self._elapsed_before_s + self._parts.clock.monotonic_s() - self._began_s

    def _timed(self) -> Progress:
        self._progress.elapsed_s = round(self._elapsed_s(), 3)
        return self._progress

    def _ended(self, ending: _Ending) -> TurnResult:
        progress = self._progress
        # A cancelled or unsaved prompt stays open, so that it can be resumed.
        progress.in_turn = ending.stop in (TurnStop.CANCELLED, TurnStop.CHECKPOINT_FAILED)
        if not self._unusable:
            try:
                self._parts.checkpoint.save_state(self._timed(), self._parts.registry.snapshot(), self._cognitive)
            except RecordError as problem:
                self._unusable = str(problem)
                ending = replace(ending, stop=TurnStop.CHECKPOINT_FAILED, detail=str(problem), verified=False)
        self._parts.observers.emit(
            TurnEnded(
                turn=progress.turn,
                stop_reason=ending.stop.value,
                verified=ending.verified,
                rounds=progress.rounds,
                repairs_used=progress.repairs_used,
                text=preview(ending.text or ending.detail),
            )
        )
        return TurnResult(
            text=ending.text,
            stop=ending.stop,
            detail=ending.detail,
            verified=ending.verified,
            rounds=progress.rounds,
            repairs_used=progress.repairs_used,
            model_calls=progress.model_calls,
            tool_calls=progress.tool_calls,
            tool_errors=progress.tool_errors,
            refused_calls=progress.refused_calls,
            usage=Usage(
                uncached_input_tokens=progress.uncached_input_tokens,
                cache_write_tokens=progress.cache_write_tokens,
                cache_read_tokens=progress.cache_read_tokens,
                output_tokens=progress.output_tokens,
                cost_usd=progress.cost_usd,
                cost_source="session",
            ),
            latency_ms=progress.latency_ms,
            simulated=progress.simulated,
        )
