"""A loop with all its real parts in a folder, built from a script and a few tools."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from geode.clock import Clock, ManualClock
from geode.events import Event
from geode.executor.approval import Approver, Nobody
from geode.executor.executor import ToolExecutor
from geode.executor.locks import ResourceLocks
from geode.executor.policy import Mode
from geode.executor.processor import ToolCallProcessor
from geode.executor.rules import Rules
from geode.executor.rulings import Policy
from geode.hooks.middleware import RequestMiddleware
from geode.hooks.points import DecisionHook
from geode.hooks.registry import HookRegistry
from geode.hooks.system import HookSystem
from geode.llm.messages import LLMAdapter
from geode.loop.agentic_loop import AgenticLoop, LoopParts
from geode.loop.verify import CompletionJudge
from geode.records.checkpoint import SessionCheckpoint
from geode.records.evidence import EvidenceLedger
from geode.records.folder import SessionFolder
from geode.records.receipts import EffectReceiptStore
from geode.records.timeline import SessionTimeline
from geode.redaction import Redactor
from geode.scaffold import LoopLimits, RepairBudget, ToolChoice, ToolPlan
from geode.tools.plan import bind
from geode.tools.spec import ToolSpec

SESSION_ID = "01TESTSESSION0000000000000"


@dataclass(slots=True)
class Bench:
    """An open loop and the parts that a test looks at."""

    loop: AgenticLoop
    folder: SessionFolder
    checkpoint: SessionCheckpoint
    receipts: EffectReceiptStore
    executor: ToolExecutor
    events: list[Event]
    closers: list[Callable[[], None]] = field(default_factory=list)

    def close(self) -> None:
        for close in self.closers:
            close()


def open_bench(
    folder: Path,
    model: LLMAdapter,
    tools: Mapping[str, ToolSpec],
    *,
    hooks: Sequence[DecisionHook] = (),
    mode: Mode = Mode.EXPERIMENT,
    rules: Rules | None = None,
    approver: Approver | None = None,
    repair: RepairBudget | None = None,
    limits: LoopLimits | None = None,
    judges: Sequence[CompletionJudge] = (),
    middleware: Sequence[RequestMiddleware] = (),
    redactor: Redactor | None = None,
    clock: Clock | None = None,
) -> Bench:
    """Build or reopen the session recorded in `folder`."""
    clock, redactor, limits = clock or ManualClock(), redactor or Redactor(), limits or LoopLimits()
    records = SessionFolder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    plan = bind(ToolPlan(tools=tuple(ToolChoice(name=name) for name in tools)), tools)
    checkpoint = SessionCheckpoint.open(records.checkpoint, SESSION_ID)
    receipts = EffectReceiptStore.open(records.receipts, clock)
    timeline = SessionTimeline(records.timeline, SESSION_ID, clock)
    evidence = EvidenceLedger(records.evidence, SESSION_ID, clock, redactor)
    events: list[Event] = []
    observers = HookSystem((timeline, events.append), evidence.note)
    registry = HookRegistry(hooks)
    executor = ToolExecutor(
        policy=Policy(mode, rules),
        plan=plan,
        registry=registry,
        observers=observers,
        approver=approver or Nobody(),
        receipts=receipts,
        locks=ResourceLocks(),
        redactor=redactor,
        clock=clock,
        middleware=middleware,
    )
    loop = AgenticLoop(
        LoopParts(
            session_id=SESSION_ID,
            adapter=model,
            system="You work in /workspace.",
            plan=plan,
            processor=ToolCallProcessor(executor, calls_max=limits.calls_per_round),
            registry=registry,
            observers=observers,
            checkpoint=checkpoint,
            receipts=receipts,
            repair=repair or RepairBudget(),
            limits=limits,
            clock=clock,
            max_output_tokens=1_000,
            judges=judges,
            redactor=redactor,
        )
    )
    closers = [checkpoint.close, receipts.close, timeline.close, evidence.close]
    return Bench(loop, records, checkpoint, receipts, executor, events, closers)
