"""The composition root of sessions: the one place where the parts of a session are built and joined."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from geode.clock import Clock, SystemClock, rfc3339
from geode.config.settings import Settings
from geode.events import Event, Notice, SessionOpened
from geode.executor.approval import Approver, Nobody
from geode.executor.executor import ToolExecutor
from geode.executor.locks import ResourceLocks
from geode.executor.policy import Mode
from geode.executor.processor import ToolCallProcessor
from geode.executor.rulings import Policy
from geode.hooks.library import HookFactory, build_hooks
from geode.hooks.middleware import fold_workspace_paths
from geode.hooks.observing import CommandObservers
from geode.hooks.registry import HookRegistry
from geode.hooks.system import HookSystem, Observer
from geode.llm.admission import JUDGE
from geode.llm.binding import ModelOptions
from geode.llm.errors import ConfigurationError
from geode.llm.messages import DeltaObserver, LLMAdapter
from geode.llm.opening import room_of
from geode.llm.outline import Outline
from geode.llm.spending import Purse, is_billed
from geode.loop.agentic_loop import AgenticLoop, LoopParts
from geode.loop.limits import effective
from geode.loop.prompt import system_prompt
from geode.loop.turn import TurnResult
from geode.loop.verify import CompletionJudge
from geode.records.checkpoint import SessionCheckpoint
from geode.records.database import Durability, RecordDamaged
from geode.records.evidence import EvidenceLedger
from geode.records.folder import SessionFolder
from geode.records.purse import Account, LedgerPurse
from geode.records.receipts import EffectReceiptStore
from geode.records.timeline import SessionTimeline
from geode.redaction import Redactor
from geode.scaffold import LoopLimits, Scaffold, SubAgentContract
from geode.serve.accounts import Accounts, Judged
from geode.serve.catalogues import hook_code, hook_factories
from geode.serve.completion import CompletionParts, completion_offer
from geode.serve.delegation import ChildSessions, OpenedChild
from geode.serve.model_source import ModelSource, within_window
from geode.serve.operator_hooks import OwnHooks, own_hooks
from geode.serve.policy import Policies
from geode.serve.recovery import clear_up
from geode.serve.session_spec import NO_ACCOUNT, NO_OPTIONS, SessionSpec
from geode.tools import delegate
from geode.tools.catalogue import workspace_tools
from geode.tools.environment import LOCAL, Environment
from geode.tools.mcp.defaults import DeclaredDefaults
from geode.tools.plan import NO_EXTRA_TOOLS, BoundToolPlan, ExtraTools, bind
from geode.tools.workspace import Workspace


class _Closes(Protocol):
    def close(self) -> None: ...


class Session:
    """One open session. Close it; a session that was not closed is found again by its folder."""

    def __init__(
        self,
        spec: SessionSpec,
        folder: SessionFolder,
        loop: AgenticLoop,
        clock: Clock,
        closers: Sequence[_Closes],
        *,
        owned: Callable[[], bool],
    ) -> None:
        self.spec, self.folder = spec, folder
        self._loop, self._clock, self._closers, self._owned = loop, clock, closers, owned

    @property
    def session_id(self) -> str:
        """The session's ULID."""
        return self.spec.session_id

    @property
    def loop(self) -> AgenticLoop:
        """The loop of this session."""
        return self._loop

    async def arun(self, prompt: str) -> TurnResult:
        """Answer one prompt; see `AgenticLoop.arun`."""
        return await self._loop.arun(prompt)

    async def aresume(self) -> TurnResult:
        """Go on with the unfinished prompt; see `AgenticLoop.aresume`."""
        return await self._loop.aresume()

    def close(self) -> None:
        """Write the status and close the stores. The status is left to the next owner where there may be one."""
        if self._owned():
            _write_state(self.spec, self.folder, self._clock, "unfinished" if self._loop.unfinished else "idle")
        for part in self._closers:
            part.close()


def _write_state(spec: SessionSpec, folder: SessionFolder, clock: Clock, status: str) -> None:
    folder.write_state({**spec.to_json(), "status": status, "pid": os.getpid(), "updated_at": rfc3339(clock.now())})


class SharedServices:
    """Builds sessions. Everything that sessions share in a process lives here; each session gets its own records.

    Args:
        settings: what the environment decided.
        clock: time and ids.
        hooks: the hooks that a scaffold may name; by default the library and installed packages.
    """

    def __init__(
        self, settings: Settings, clock: Clock | None = None, hooks: Mapping[str, HookFactory] | None = None
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self._hooks = hook_factories() if hooks is None else hooks
        self._redactor = Redactor.of_environment(dict(settings.environment))
        self._policies = Policies.read(settings.root)
        self._accounts = Accounts(settings.root, self.clock)
        self._judged: set[str] = set()

    def create_session(
        self,
        *,
        mode: Mode,
        scaffold: Scaffold,
        model: str,
        workspace: Path,
        folder: Path,
        outline: Outline | None = None,
        simulation_key: str = "",
        options: ModelOptions = NO_OPTIONS,
        caps: LoopLimits | None = None,
        environment: Environment | None = None,
        approver: Approver | None = None,
        adapter: LLMAdapter | None = None,
        account: Account = NO_ACCOUNT,
        purse: Purse | None = None,
        on_delta: DeltaObserver | None = None,
        extra_tools: ExtraTools = NO_EXTRA_TOOLS,
        judges: Sequence[CompletionJudge] = (),
        observers: Sequence[Observer] = (),
        durability: Durability | None = None,
    ) -> Session:
        """Open a new session.

        Args:
            mode: from where it is reached; decides what it may do unattended.
            scaffold: the thing under test.
            model: `route/id`; ignored only if `adapter` is given, which must be bound to it.
            workspace: the folder that the model knows as /workspace.
            folder: where the session is recorded; created if need be.
            outline: the steps that a simulated model follows. No other model sees it.
            simulation_key: what a simulated model's randomness is keyed by.
            options: how the model is asked; stored, since a session keeps to one way.
            caps: the ruler's caps; they lower the scaffold's limits.
            environment: where its tools execute; by default as policy says for the mode, see `Policies.environment`.
            approver: who approves; nobody by default.
            adapter: an adapter to use in place of the one that the model's route names (a recording, a double).
            account: who pays for it, and what it may cost; stored.
            purse: who is asked before each request to a provider, those of sub-agents too; by default the account's.
            on_delta: who is told each part of a reply as it comes; of this session alone.
            extra_tools: tools of MCP servers, from whoever started these; offered behind the scaffold's own.
            judges: judges of the completion check, after the rules; by default the one of the scaffold's check, which
                only an experiment opens itself.
            observers: observers besides the timeline.
            durability: what writes survive; by default the process in experiments, power elsewhere.

        Raises:
            ConfigurationError: if the model cannot be launched or asked so, its key or the judge's is missing, the code
                of a hook is not what the scaffold names, or a sandbox is required and there is none.
            ValueError: if the judge of the scaffold's check cannot be used.
            UnknownHook: if the scaffold names a hook that is not registered.
            HookFileError: if the operator's hook file is wrong, or a trusted one of the project has changed.
            ToolPlanError: if it names a tool that there is not.
            PolicyError: if the policy file of the project cannot be used.
            RecordError: if the folder's stores cannot be opened.
        """
        environment = self._policies.environment(mode, workspace, environment)
        spec = SessionSpec(
            session_id=self.clock.ulid(),
            mode=mode,
            scaffold=scaffold,
            model=model,
            simulation_key=simulation_key,
            options=options,
            caps=caps,
            environment=environment.definition,
            account=account,
        )
        purse = purse or self._purse(spec, folder)
        return self._open(
            spec,
            SessionFolder(folder),
            workspace=workspace,
            environment=environment,
            source=self._source(outline, adapter, purse, on_delta),
            extra_tools=extra_tools,
            approver=approver or Nobody(),
            judges=judges or self._judges(spec, folder),
            observers=observers,
            durability=durability or (Durability.PROCESS if mode is Mode.EXPERIMENT else Durability.POWER),
            resumed=False,
        )

    def reopen_session(
        self,
        folder: Path,
        workspace: Path,
        *,
        outline: Outline | None = None,
        approver: Approver | None = None,
        adapter: LLMAdapter | None = None,
        budget_usd: float | None = None,
        purse: Purse | None = None,
        on_delta: DeltaObserver | None = None,
        extra_tools: ExtraTools = NO_EXTRA_TOOLS,
        judges: Sequence[CompletionJudge] = (),
        observers: Sequence[Observer] = (),
    ) -> Session:
        """Open the session recorded in `folder` again, as it was; `budget_usd` is the most that it may spend in all.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if its status file cannot be read, or its judge not be used.
            ConfigurationError: if a sandbox is required, and it had none; or a key is missing.
            RecordError: if another process has it open, or its stores are damaged or gone.
        """
        records = SessionFolder(folder)
        body = records.read_state()
        try:
            spec = SessionSpec.from_json(body)
        except ValueError as error:
            raise ValueError(f"{records.state} is damaged ({error}); keep it, and start a new session") from error
        if budget_usd is not None:
            spec = replace(spec, account=spec.account.model_copy(update={"session_usd": budget_usd}))
        purse = purse or self._purse(spec, folder)
        for store in (records.checkpoint, records.receipts):
            # Opening it would make an empty one, and a session that forgot its effects would run them again.
            if not store.is_file() or not store.stat().st_size:
                raise RecordDamaged(f"{store} is gone or empty; restore it from a copy, or start a new session")
        return self._open(
            spec,
            records,
            workspace=workspace,
            environment=self._policies.environment(spec.mode, workspace, spec.environment or LOCAL),
            source=self._source(outline, adapter, purse, on_delta),
            extra_tools=extra_tools,
            approver=approver or Nobody(),
            judges=judges or self._judges(spec, folder),
            observers=observers,
            durability=Durability.PROCESS if spec.mode is Mode.EXPERIMENT else Durability.POWER,
            resumed=True,
        )

    def _open(
        self,
        spec: SessionSpec,
        folder: SessionFolder,
        *,
        workspace: Path,
        environment: Environment,
        source: ModelSource,
        extra_tools: ExtraTools,
        approver: Approver,
        judges: Sequence[CompletionJudge],
        observers: Sequence[Observer],
        durability: Durability,
        resumed: bool,
        policy: Policy | None = None,
    ) -> Session:
        adapter = source.adapter(spec.model, spec.simulation_key, spec.options)
        # A child may what its parent may, whatever has become of the project's file since.
        policy = policy or self._policies.of(spec.mode, workspace, confined=environment.definition is not None)

        def open_child(name: str, contract: SubAgentContract, records: SessionFolder) -> OpenedChild:
            child = spec.child(name, contract)
            # Nothing from outside the scaffold: neither tools of MCP servers nor whoever watches the parent.
            session = self._open(
                child,
                records,
                workspace=workspace,
                environment=environment,
                source=source.of_child(),
                extra_tools=NO_EXTRA_TOOLS,
                approver=approver,
                judges=judges,
                observers=(),
                durability=durability,
                resumed=False,
                policy=policy,
            )
            return OpenedChild(loop=session.loop, close=session.close)

        children = ChildSessions(folder, self.clock, open_child)
        available = workspace_tools(Workspace(workspace), environment)
        if spec.scaffold.sub_agents:
            available[delegate.NAME] = delegate.delegate_tool(children, spec.scaffold.sub_agents)
        plan = bind(spec.scaffold.tools, available, extra_tools)
        own = self._own_hooks(spec, folder, workspace)
        registry = HookRegistry((*build_hooks(spec.scaffold.hooks, self._hooks), *own.deciding))
        _check_code(spec.scaffold)
        folder.path.mkdir(parents=True, exist_ok=True)
        evidence = EvidenceLedger(folder.evidence, spec.session_id, self.clock, self._redactor)
        watchers = CommandObservers(own.watching, evidence.note, spec.path)
        closers: list[_Closes] = [watchers, evidence] if spec.path else [watchers, evidence, self._accounts.ledger]
        if isinstance(source.purse, LedgerPurse) and not spec.path:
            source.purse.note = evidence.note
            closers.append(source.purse.ledger)
        try:
            checkpoint = SessionCheckpoint.open(folder.checkpoint, spec.session_id, durability)
            closers.append(checkpoint)
            receipts = EffectReceiptStore.open(folder.receipts, self.clock, durability)
            closers.append(receipts)
            timeline = SessionTimeline(folder.timeline, spec.session_id, self.clock)
            closers.append(timeline)
            # Before anything is told of the session: from here on it can be opened again.
            _write_state(spec, folder, self.clock, "open")
        except BaseException:
            for part in closers:
                part.close()
            raise
        system = HookSystem((timeline, watchers, *observers), evidence.note)
        for done in clear_up(workspace, plan, receipts) if resumed else ():
            system.emit(done)
        executor = ToolExecutor(
            policy=policy,
            plan=plan,
            registry=registry,
            observers=system,
            approver=approver,
            receipts=receipts,
            locks=ResourceLocks(),
            redactor=self._redactor,
            clock=self.clock,
            middleware=(fold_workspace_paths, DeclaredDefaults(extra_tools.specs)),
            system=system_prompt(spec.scaffold),
        )
        limits = within_window(effective(spec.scaffold.limits, spec.caps), spec.model, spec.options)
        parts = LoopParts(
            session_id=spec.session_id,
            adapter=adapter,
            system=system_prompt(spec.scaffold),
            plan=plan,
            processor=ToolCallProcessor(executor, calls_max=limits.calls_per_round),
            registry=registry,
            observers=system,
            checkpoint=checkpoint,
            receipts=receipts,
            repair=spec.scaffold.repair,
            limits=limits,
            clock=self.clock,
            max_output_tokens=room_of(spec.model, spec.options).output_tokens,
            judges=judges,
            redactor=self._redactor,
            path="/".join(spec.path),
        )
        system.emit(_opened(spec, plan, resumed=resumed))
        for reason in own.left_out:
            system.emit(Notice(about="hooks", text=reason))
        if policy.digest:
            system.emit(Notice(about="policy", text=f"rules of policy files hold, by digest {policy.digest}"))
        if environment.definition is None and spec.mode is not Mode.EXPERIMENT:
            system.emit(Notice(about="sandbox", text="what this session executes runs outside of any sandbox"))
        loop = AgenticLoop(parts)
        children.begin(loop, system)
        return Session(spec, folder, loop, self.clock, closers, owned=lambda: checkpoint.owned)

    def _purse(self, spec: SessionSpec, folder: Path) -> Purse | None:
        return self._accounts.purse(spec.account, folder.name, spec.mode) if is_billed(spec.model) else None

    def _judges(self, spec: SessionSpec, folder: Path) -> Sequence[CompletionJudge]:
        check = spec.scaffold.completion
        if check is None or spec.mode is Mode.EXPERIMENT:
            return ()
        self._judged.add(folder.name)
        account = spec.account.model_copy(update={"role": JUDGE})
        parts = CompletionParts(
            target=spec.model,
            environment=self.settings.environment,
            purse=self._accounts.purse(account, folder.name, spec.mode),
            clock=self.clock,
            redactor=self._redactor,
        )
        return (completion_offer().open(check, parts),)

    def judged(self, session: str) -> Judged | None:
        """See `Accounts.judged`; None for a session of which this process opened no judge."""
        return self._accounts.judged(session) if session in self._judged else None

    def _source(
        self, outline: Outline | None, given: LLMAdapter | None, purse: Purse | None, on_delta: DeltaObserver | None
    ) -> ModelSource:
        return ModelSource(
            environment=self.settings.environment,
            redactor=self._redactor,
            outline=outline,
            given=given,
            purse=purse,
            on_delta=on_delta,
        )

    def _own_hooks(self, spec: SessionSpec, folder: SessionFolder, workspace: Path) -> OwnHooks:
        if spec.mode is Mode.EXPERIMENT:
            return OwnHooks()
        return own_hooks(
            self.settings.root,
            session_id=spec.session_id,
            mode=spec.mode.value,
            workspace=workspace,
            timeline=folder.timeline,
            environment=self.settings.environment,
        )


def _check_code(scaffold: Scaffold) -> None:
    for hook in scaffold.hooks:
        if hook.code is not None and hook.code != hook_code(hook.name):
            raise ConfigurationError(
                f"the code of the hook {hook.name!r} is not that of the scaffold {scaffold.scaffold_id}"
                f" ({hook.code}): it has changed since; restore it, or begin anew with what it is by now"
            )


def _opened(spec: SessionSpec, plan: BoundToolPlan, *, resumed: bool) -> Event:
    return SessionOpened(
        mode=spec.mode.value,
        scaffold_id=spec.scaffold.scaffold_id,
        model=spec.model,
        plan_hash=plan.plan_hash,
        resumed=resumed,
    )
