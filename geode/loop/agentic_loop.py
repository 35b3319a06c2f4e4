"""The agentic loop: six phases, one function each. The model proposes, the host decides, and every step is saved.

prepare input -> ( prepare call -> call provider -> process tools -> observe and compact )* -> finish
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from geode.clock import Clock
from geode.deadline import Halt, run_within
from geode.events import (
    CheckEnded,
    ContextCompacted,
    ModelFailed,
    Notice,
    PromptReceived,
    TurnEnded,
    preview,
)
from geode.executor.call import Place
from geode.executor.processor import BatchResult, ToolCallProcessor
from geode.hooks.points import Continue
from geode.hooks.registry import HookRegistry
from geode.hooks.system import HookSystem
from geode.llm.errors import BudgetReached, ContextTooLarge, LLMError
from geode.llm.messages import (
    LLMAdapter,
    Message,
    ModelResponse,
    Origin,
    Speaker,
    StepSnapshot,
    StopReason,
    TextBlock,
)
from geode.llm.usage import Attempt, Usage
from geode.loop.answer import as_message, cleaned, fault_of
from geode.loop.conversation import (
    CHARS_PER_TOKEN,
    Conversation,
    IllFormed,
    answers_for_lost_calls,
    host_message,
    tokens_of,
)
from geode.loop.guards import LoopGuards, Objections
from geode.loop.limits import left, passed, would_pass
from geode.loop.told import attempts_failed, attempts_of, model_called
from geode.loop.turn import Ending, TurnResult, TurnStop
from geode.loop.verify import CheckOutcome, CompletionJudge, CompletionResult, CompletionView, verify_turn_async
from geode.records.checkpoint import Progress, SessionCheckpoint
from geode.records.database import RecordDamaged, RecordError
from geode.records.receipts import EffectReceiptStore, ReceiptState
from geode.redaction import Redactor, clean_text
from geode.scaffold import LoopLimits, RepairBudget
from geode.tools.plan import BoundToolPlan

_CUT_CALL = "not started: your message was cut at the output limit, so this call is incomplete. Send less at once."
_CUT_TEXT = "Your message was cut at the output limit. Go on where it ended, and send less at once."
_REFUSED_CALL = "not started: the model refused in the message that asked for it"
_SHORTER = 0.75  # of what the provider found too long, by our estimate
_CHECK_AT_LEAST_S = 1.0  # an answer that came in the last moment is still checked

_STAYS_OPEN = (TurnStop.CANCELLED, TurnStop.CHECKPOINT_FAILED, TurnStop.BUDGET_REACHED)  # so that it can be resumed


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What a loop is made of. Built by a composition root; the loop constructs nothing of it.

    `path` is the sub-agent path, empty for a session that nobody delegated to.
    """

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
    redactor: Redactor = field(default_factory=Redactor)
    path: str = ""


class AgenticLoop:
    """One session's loop. It is taken up where the checkpoint left it.

    Raises:
        RecordError: if the checkpoint cannot be read, or what it holds is no conversation.
    """

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        stored = parts.checkpoint.load()
        self._progress, self._cognitive = stored.progress, stored.cognitive
        parts.registry.restore(stored.guards)
        self._guards = LoopGuards(parts.registry, parts.observers, parts.redactor)
        self._conversation = Conversation()
        try:
            for message in stored.messages:
                self._conversation.append(message)
        except IllFormed as problem:
            raise RecordDamaged(
                f"the stored conversation lacks a part ({problem}); keep it, and start a new session"
            ) from problem
        self._conversation.elide_to(self._progress.elided_messages)
        fixed = len(parts.system) + sum(len(s.description) + len(str(s.input_schema)) for s in parts.plan.schemas)
        self._fixed_tokens = fixed // CHARS_PER_TOKEN
        self._uncounted_tokens = 0  # what the provider counted of the last request beyond our estimate
        self._elapsed_before_s, self._began_s = 0.0, 0.0
        self._unusable = ""

    @property
    def unfinished(self) -> bool:
        """Whether a prompt was begun and not ended, by a process that died."""
        return self._progress.in_turn

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far."""
        return self._conversation.messages

    @property
    def left(self) -> LoopLimits:
        """What this prompt may still use: what it hands on, at the most, to whom it delegates."""
        return left(self._parts.limits, self._progress, self._elapsed_s())

    def charge(self, child: TurnResult) -> None:
        """Count what a sub-agent used as used by this prompt. It is saved with the round that delegated."""
        self._progress.count(replace(child.usage, cost_usd=child.cost_usd_known))
        self._progress.unpriced_calls += child.unpriced_calls
        self._progress.model_calls += child.model_calls

    async def arun(self, prompt: str) -> TurnResult:
        """Answer `prompt`. It returns for every end but cancellation, which it saves before it lets it through.

        Raises:
            ValueError: for an empty prompt, or if an earlier prompt of this session is still unfinished.
        """
        if not prompt.strip():
            raise ValueError("the prompt is empty; say what you want done")
        if self.unfinished and not self._unusable:
            raise ValueError("an earlier prompt of this session is unfinished; resume it first")
        return await self._until_ended(lambda: self._prepare_input(clean_text(prompt)), used_s=0.0)

    async def aresume(self) -> TurnResult:
        """Go on with the unfinished prompt. Effects that ended are not run again; calls without a result are answered.

        Raises:
            ValueError: if there is nothing to resume.
        """
        if not self.unfinished:
            raise ValueError("every prompt of this session has ended; there is nothing to resume")
        return await self._until_ended(self._take_up, used_s=self._progress.elapsed_s)

    async def _until_ended(self, first: Callable[[], Awaitable[Ending | None]], *, used_s: float) -> TurnResult:
        self._elapsed_before_s, self._began_s = used_s, self._parts.clock.monotonic_s()
        try:
            if self._unusable:
                # What is in memory is no longer what is stored; only reopening the session tells them apart.
                raise RecordError(self._unusable)
            ending = await first()
            while ending is None:
                ending = await self._round()
        except RecordError as problem:
            self._unusable = str(problem)
            ending = Ending(stop=TurnStop.CHECKPOINT_FAILED, detail=str(problem))
        except asyncio.CancelledError:
            self._ended(Ending(stop=TurnStop.CANCELLED, detail="cancelled; work begun outside may go on"))
            raise
        return self._ended(ending)

    async def _round(self) -> Ending | None:
        prepared = self._prepare_call()
        if isinstance(prepared, Ending):
            return prepared
        response = await self._call_provider(prepared)
        if not isinstance(response, ModelResponse):
            return response
        message = as_message(response, self._conversation.call_ids)
        if response.stop is StopReason.REFUSAL:
            return self._refusal(message, response.stop_detail)
        if message is None:
            return self._empty_answer()
        self._progress.empty_in_a_row = 0
        if response.stop in (StopReason.MAX_TOKENS, StopReason.PAUSE):
            return self._cut_answer(message, response.stop)
        self._progress.cut_in_a_row = 0
        if message.tool_uses:
            return await self._observe_and_compact(message, await self._process_tools(message))
        self._save(message)
        return await self._finish(message.text)

    # Phase 1 ---------------------------------------------------------------------------------------------------------

    async def _prepare_input(self, prompt: str) -> Ending | None:
        """Ask UserPromptSubmit, and make the prompt durable before anything is done about it."""
        progress, parts = self._progress, self._parts
        progress.begin_turn()
        admission = await self._guards.prompt(prompt, progress)
        parts.observers.emit(PromptReceived(turn=progress.turn, text=preview(prompt)))
        if admission.blocked:
            return Ending(stop=TurnStop.PROMPT_BLOCKED, detail=admission.blocked)
        contexts = (TextBlock(text=text, origin=Origin.HOST) for text in admission.contexts)
        message = Message(role=Speaker.USER, blocks=(TextBlock(text=prompt, origin=Origin.USER), *contexts))
        room = parts.limits.context_tokens - self._fixed_tokens - tokens_of(message)
        await self._compact(room - self._uncounted_tokens, spare_last_round=False)
        if self._conversation.tokens > room:
            # It is not kept: no later prompt could be sent behind it.
            return self._context_full(tokens_of(message))
        progress.in_turn = True
        self._cognitive = self._cognitive.model_copy(update={"goal": preview(prompt, 2_000), "last_check": ""})
        self._save(message)
        return None

    async def _take_up(self) -> Ending | None:
        """Repair the history that a dead process left, and find where in the prompt it stood."""
        last = self._conversation.messages[-1]
        if self._conversation.awaited:
            round_ = self._progress.round
            ends = {
                r.key.call_id: r.state
                for r in self._parts.receipts.all()
                if r.key.round == round_ and r.key.path == self._parts.path
            }
            self._save(answers_for_lost_calls(last.tool_uses, ends))
            text = f"{len(last.tool_uses)} calls had no saved result; their receipts answered for them"
            self._parts.observers.emit(Notice(about="resume", text=text))
        elif last.role is Speaker.ASSISTANT and not self._progress.cut_in_a_row:
            return await self._finish(last.text)
        return None

    # Phase 2 ---------------------------------------------------------------------------------------------------------

    def _prepare_call(self) -> StepSnapshot | Ending:
        """Hold the limits, and freeze the call."""
        parts, progress = self._parts, self._progress
        if over := passed(parts.limits, progress, self._elapsed_s()):
            return Ending(stop=over[0], detail=over[1])
        if self._fixed_tokens + self._conversation.tokens > parts.limits.context_tokens:
            return self._context_full()
        snapshot = StepSnapshot(
            session_id=parts.session_id,
            turn=progress.turn,
            round=progress.round + 1,
            model=parts.adapter.model,
            system=parts.system,
            messages=self._conversation.request(paused=progress.cut_in_a_row > 0),
            tools=parts.plan.schemas,
            plan_hash=parts.plan.plan_hash,
            plan_generation=parts.plan.generation,
            max_output_tokens=parts.max_output_tokens,
            history_digest=self._conversation.digest,
        )
        if over := would_pass(parts.limits, progress, parts.adapter, snapshot):
            return Ending(stop=over[0], detail=over[1])
        progress.round = snapshot.round
        return snapshot

    def _context_full(self, prompt_tokens: int = 0) -> Ending:
        fixed, messages = self._fixed_tokens, self._conversation.tokens
        detail = (
            f"about {fixed + messages + prompt_tokens} tokens do not fit into {self._parts.limits.context_tokens}:"
            f" system and tools {fixed}, messages {messages}"
        )
        return Ending(
            stop=TurnStop.CONTEXT_FULL, detail=f"{detail}, this prompt {prompt_tokens}" if prompt_tokens else detail
        )

    # Phase 3 ---------------------------------------------------------------------------------------------------------

    async def _call_provider(self, snapshot: StepSnapshot) -> ModelResponse | Ending | None:
        """Ask the model once; None: it was too much at once, and is asked again with less.

        Whoever retries is the adapter's route, not the loop.
        """
        parts, progress = self._parts, self._progress
        left_s = max(0.0, parts.limits.seconds - self._elapsed_s())
        finished = await run_within(left_s, lambda: parts.adapter.acomplete(snapshot))
        if finished.halt is Halt.CANCELLED:
            raise asyncio.CancelledError
        if finished.halt is Halt.TIME and finished.interrupted:
            detail = f"the model did not answer within the {parts.limits.seconds:g} s of this prompt"
            return Ending(stop=TurnStop.TIME_LIMIT, detail=detail)
        if isinstance(finished.error, ContextTooLarge):
            return await self._make_room(finished.error)
        if isinstance(finished.error, BudgetReached):
            self._count_attempts(attempts_of(finished.error))
            return Ending(stop=TurnStop.BUDGET_REACHED, detail=str(finished.error))
        if isinstance(finished.error, LLMError):
            self._count_attempts(attempts_of(finished.error))
            return self._model_failed(f"{type(finished.error).__name__}: {finished.error}")
        if finished.error is not None:
            return self._model_failed(f"the adapter is faulty: {type(finished.error).__name__}: {finished.error}")
        if finished.value is None or (fault := fault_of(finished.value)):
            return self._model_failed(f"the adapter is faulty: {fault if finished.value else 'it returned nothing'}")
        response = cleaned(finished.value)
        self._count_attempts(response.attempts)
        progress.count(response.usage)
        if response.usage.input_tokens is not None and not response.simulated:
            # JSON, Chinese and sealed reasoning are denser than we take text for.
            estimate = self._fixed_tokens + self._conversation.tokens
            self._uncounted_tokens = max(0, response.usage.input_tokens - estimate)
        progress.model_calls += 1
        progress.latency_ms += response.latency_ms
        progress.simulated = progress.simulated or response.simulated
        parts.observers.emit(model_called(progress, response))
        return response

    def _count_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Count what requests without a response were billed for, or that nobody knows it."""
        for attempt in attempts:
            self._progress.count(attempt.usage or Usage())
        for event in attempts_failed(self._progress, attempts):
            self._parts.observers.emit(event)

    async def _make_room(self, problem: ContextTooLarge) -> Ending | None:
        """Leave out old results of a request that the provider found too long; None: it is sent again, shorter."""
        self._count_attempts(attempts_of(problem))
        room = int(self._conversation.tokens * _SHORTER)
        if await self._compact(room, spare_last_round=True):
            self._save()
            return None
        text = self._parts.redactor.redact(clean_text(str(problem)))
        return Ending(stop=TurnStop.CONTEXT_FULL, detail=f"the provider takes no request of this length: {text}")

    def _model_failed(self, problem: str) -> Ending:
        text = self._parts.redactor.redact(clean_text(problem))
        self._parts.observers.emit(
            ModelFailed(turn=self._progress.turn, round=self._progress.round, error=preview(text, 2_000))
        )
        return Ending(stop=TurnStop.MODEL_FAILED, detail=text)

    def _empty_answer(self) -> Ending | None:
        self._progress.empty_in_a_row += 1
        if self._progress.empty_in_a_row < self._parts.limits.empty_answers_in_a_row:
            self._save()  # a restart gives no new try
            return None
        detail = f"the model said nothing {self._progress.empty_in_a_row} times in a row"
        return Ending(stop=TurnStop.EMPTY_ANSWERS, detail=detail)

    def _cut_answer(self, message: Message, stop: StopReason) -> Ending | None:
        """Keep what came, run none of it, and let the model go on: a half call is never completed by guessing."""
        self._progress.cut_in_a_row += 1
        if message.tool_uses:
            self._save(message, self._refuse(message, "cut", _CUT_CALL))
        elif stop is StopReason.PAUSE:
            self._save(message)  # sent back as it is, and the model goes on
        else:
            self._save(message, host_message(_CUT_TEXT))
        if self._progress.cut_in_a_row < self._parts.limits.cut_answers_in_a_row:
            return None
        detail = f"{self._progress.cut_in_a_row} answers in a row were cut or paused"
        return Ending(stop=TurnStop.CUT_ANSWERS, text=message.text, detail=detail)

    def _refusal(self, message: Message | None, why: str) -> Ending:
        """Keep what the model said with its refusal; it is no answer, and is not checked as one after a restart."""
        self._progress.in_turn = False
        if message is not None and message.tool_uses:
            self._save(message, self._refuse(message, "refusal", _REFUSED_CALL))
        elif message is not None:
            self._save(message)
        said = self._parts.redactor.redact(clean_text(f"the model refused: {why}" if why else "the model refused"))
        return Ending(stop=TurnStop.MODEL_REFUSED, text=message.text if message else "", detail=said)

    def _refuse(self, message: Message, stage: str, text: str) -> Message:
        batch = self._parts.processor.refuse(message.tool_uses, self._place(), stage, text)
        self._count(batch)
        return batch.message

    # Phase 4 ---------------------------------------------------------------------------------------------------------

    async def _process_tools(self, message: Message) -> BatchResult:
        """Make the batch durable, then run it. If it cannot be saved, no tool runs."""
        body = self._conversation.append(message)
        self._parts.checkpoint.save_pending(body, len(message.tool_uses), self._timed())
        return await self._parts.processor.arun(message.tool_uses, self._place(message.text))

    # Phase 5 ---------------------------------------------------------------------------------------------------------

    async def _observe_and_compact(self, message: Message, batch: BatchResult) -> Ending | None:
        """Save the complete batch, count it, keep the plan, and shorten the request before it grows too long."""
        parts = self._parts
        self._count(batch)
        body = self._conversation.append(batch.message)
        self._cognitive = self._cognitive.with_text(message.text)
        parts.checkpoint.save_complete(body, self._timed(), parts.registry.snapshot(), self._cognitive)
        if batch.cancelled:
            raise asyncio.CancelledError
        if batch.lost_record:
            raise RecordError(batch.lost_record)
        room = parts.limits.context_tokens - self._fixed_tokens - self._uncounted_tokens
        if await self._compact(room, spare_last_round=True):
            self._save()
        return None

    def _count(self, batch: BatchResult) -> None:
        self._progress.tool_calls += len(batch.calls)
        self._progress.tool_errors += sum(call.result.is_error and not call.stage for call in batch.calls)
        self._progress.refused_calls += sum(bool(call.stage) for call in batch.calls)

    async def _compact(self, tokens_max: int, *, spare_last_round: bool) -> bool:
        """Leave out old results if the request is too long and no hook objects; return whether it is shorter now."""
        tokens, progress = self._conversation.tokens, self._progress
        if tokens <= tokens_max or await self._guards.compaction(tokens, tokens_max, progress):
            return False
        if rounds := self._conversation.shorten(tokens_max, spare_last_round=spare_last_round):
            self._parts.observers.emit(ContextCompacted(turn=progress.turn, round=progress.round, elided_rounds=rounds))
        progress.elided_messages = self._conversation.elided
        return bool(rounds)

    # Phase 6 ---------------------------------------------------------------------------------------------------------

    async def _finish(self, answer: str) -> Ending | None:
        """Hold the proposed end against PreVerify, the completion check, PostVerify and Stop; None: work goes on."""
        progress, budget = self._progress, self._parts.repair
        self._cognitive = self._cognitive.with_text(answer)
        repairs_left = budget.per_prompt - progress.repairs_used
        passed, objections = False, await self._guards.before_check(answer, repairs_left, progress)
        if objections == Objections():
            check = await self._checked(answer)
            passed, objections = check.passed, await self._guards.after_check(answer, check, repairs_left, progress)
        repair, escalation = _each_once(objections.repairs), _each_once(objections.escalations)
        decision = "escalate" if objections.escalations else "repair" if objections.repairs else "accept"
        self._cognitive = self._cognitive.model_copy(update={"last_check": f"{decision}: {escalation or repair}"[:500]})
        self._parts.observers.emit(
            CheckEnded(
                turn=progress.turn,
                round=progress.round,
                passed=passed,
                decision=decision,
                reasons=tuple(preview(text) for text in dict.fromkeys((*objections.repairs, *objections.escalations))),
                repairs_used=progress.repairs_used,
            )
        )
        if objections.escalations:
            return Ending(stop=TurnStop.ESCALATED, text=answer, detail=escalation)
        if not objections.repairs:
            return await self._stop(answer)
        if repairs_left <= 0:
            detail = f"{progress.repairs_used} of {budget.per_prompt} repairs are used up: {repair}"
            return Ending(stop=TurnStop.NOT_VERIFIED, text=answer, detail=detail)
        progress.repairs_used += 1
        self._save(host_message(f"{budget.preamble} {repair}".strip()))
        return None

    async def _checked(self, answer: str) -> CompletionResult:
        """Run the completion check within what is left of the prompt's time. One that does not end is no pass."""
        left_s = max(_CHECK_AT_LEAST_S, self._parts.limits.seconds - self._elapsed_s())
        view = self._view(answer)
        finished = await run_within(left_s, lambda: verify_turn_async(view, self._parts.judges))
        if finished.halt is Halt.CANCELLED:
            raise asyncio.CancelledError
        if finished.value is not None and not finished.interrupted:
            return replace(finished.value, reasons=tuple(map(self._parts.redactor.redact, finished.value.reasons)))
        reason = "The completion check did not end in the time that was left."
        if finished.error is not None and not finished.interrupted:
            reason = f"The completion check failed ({type(finished.error).__name__}: {finished.error})."
        reason = self._parts.redactor.redact(clean_text(reason))
        return CompletionResult(outcome=CheckOutcome.FAILED, reasons=(reason,), by="host")

    async def _stop(self, answer: str) -> Ending | None:
        """Ask Stop for a continuation, within its bound."""
        progress, allowed = self._progress, self._parts.limits.stop_continuations
        match await self._guards.stop(answer, allowed - progress.continuations_used, progress):
            case Continue(instruction=instruction):
                progress.continuations_used += 1
                self._save(host_message(instruction))
                return None
            case str(problem):
                return Ending(stop=TurnStop.NOT_VERIFIED, text=answer, detail=problem)
        return Ending(stop=TurnStop.COMPLETED, text=answer, verified=True)

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
            messages=tuple(self._conversation.messages),
        )

    # What the phases share -------------------------------------------------------------------------------------------

    def _place(self, said: str = "") -> Place:
        progress = self._progress
        rounds_left = self._parts.limits.rounds - progress.rounds
        return Place(
            turn=progress.turn, round=progress.round, path=self._parts.path, said=said, rounds_left=rounds_left
        )

    def _save(self, *messages: Message) -> None:
        """Append messages, which become durable together, with all counters and memories."""
        bodies = [self._conversation.append(message) for message in messages]
        self._parts.checkpoint.save_messages(bodies, self._timed(), self._parts.registry.snapshot(), self._cognitive)

    def _elapsed_s(self) -> float:
        return self._elapsed_before_s + self._parts.clock.monotonic_s() - self._began_s

    def _timed(self) -> Progress:
        self._progress.elapsed_s = round(self._elapsed_s(), 3)
        return self._progress

    def _ended(self, ending: Ending) -> TurnResult:
        progress = self._progress
        progress.in_turn = progress.in_turn and ending.stop in _STAYS_OPEN
        if not self._unusable:
            try:
                self._save()
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
        return TurnResult.of(ending, progress)


def _each_once(texts: Sequence[str]) -> str:
    return "\n".join(dict.fromkeys(texts))
