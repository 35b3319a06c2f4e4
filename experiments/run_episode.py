"""One task attempted once by one scaffold: workspace, session, verifier, record. The loop is the production one."""

import asyncio
import errno
import os
import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import geode
from experiments.broken_hooks import broken_hooks
from experiments.completion import CompletionOpener, InLoopJudge
from experiments.episode import EpisodeRecord, RoleUsage
from experiments.plan import EpisodeSpec
from experiments.records import Caps
from experiments.roles import Role
from experiments.suite import Outcome, OutcomeKind, Task, VerifierBroke
from experiments.suites.loader import copy_fixtures
from experiments.suites.verifier_runner import VerifierRunner
from geode.clock import Clock
from geode.config.paths import StateRoot
from geode.executor.policy import Mode
from geode.llm.binding import ModelOptions
from geode.llm.errors import ConfigurationError
from geode.llm.outline import Outline
from geode.loop.turn import INFRASTRUCTURE_STOPS, TurnResult, TurnStop
from geode.loop.verify import CompletionJudge
from geode.records.database import RecordError
from geode.records.purse import Account
from geode.scaffold import LoopLimits, Scaffold
from geode.serve.session_spec import NO_ACCOUNT, NO_OPTIONS
from geode.tools.environment import LOCAL, CommandEnvironment, Environment, EnvironmentBroken
from geode.tools.output import Capture
from geode.tools.process import Finished

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
_GRACE_S = 60.0  # past the ruler's own time cap, before a session that does not return is given up
_ROUNDS_MAX = 10_000
_SHOWN_CHARS_MAX = 500


class OutOfMoney(Exception):  # noqa: N818  (named by what happened)
    """The next call of the episode could pass a cap on spending. The episode is no outcome; the text says why."""


class EpisodeSession(Protocol):
    """A session as an episode uses it."""

    @property
    def session_id(self) -> str:
        """The session's ULID."""
        ...

    async def arun(self, prompt: str) -> TurnResult:
        """Answer one prompt."""
        ...

    def close(self) -> None:
        """Close the files of the session."""
        ...


class SessionOpener(Protocol):
    """Opens sessions of the production loop; `geode.serve.services.SharedServices` is one."""

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
        environment: Environment = LOCAL,
        account: Account = NO_ACCOUNT,
        judges: Sequence[CompletionJudge] = (),
    ) -> EpisodeSession:
        """Open a session that is recorded in `folder`, works in `workspace` and executes in `environment`.

        Raises:
            ConfigurationError: if no session with this model can be opened at all; the experiment stops.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeParts:
    """What episodes share."""

    root: StateRoot
    opener: SessionOpener
    clock: Clock
    verifiers: VerifierRunner = field(default_factory=VerifierRunner)
    account: Account = NO_ACCOUNT
    """On whose account they spend: that of the command."""
    completion: CompletionOpener | None = None
    """Opens the judge of a scaffold's completion check; without it none can be run that has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """What the session gave: its result, or why there is none."""

    session_id: str
    result: TurnResult | None
    problem: str = ""
    judge: InLoopJudge | None = None


async def run_episode(parts: EpisodeParts, spec: EpisodeSpec, task: Task, folder: Path) -> EpisodeRecord:
    """Run an episode in its folder and return its record; writing that is the caller's part.

    A scaffold that runs into a limit is measured like any other. What infrastructure prevents is INVALID.

    Raises:
        ConfigurationError: if the model cannot be used at all.
        OutOfMoney: if it met a cap on spending. It measured nothing, and is to be run afresh when there is money.
        OSError: if the disk fails: the workspace cannot be made, or the session's records cannot be saved.
    """
    started_at, started_s, cpu_before_s = parts.clock.now(), parts.clock.monotonic_s(), _cpu_s(parts)
    parts.verifiers.start(task.verify)
    with _workspace(parts, spec) as workspace:
        attempt = await _attempt(parts, spec, task, workspace, folder)
        outcome = await _judge(parts, attempt, task, workspace)
    hidden = {str(workspace): "/workspace", str(task.fixtures): "fixtures", str(parts.root.path): "GEODE_HOME"}
    reasons = tuple(_without_paths(reason, hidden) for reason in outcome.reasons)
    return _record(
        spec,
        attempt,
        outcome.model_copy(update={"reasons": reasons}),
        broken=broken_hooks(folder) if spec.scaffold.hooks else {},
        started_at=started_at,
        ended_at=parts.clock.now(),
        wall_s=parts.clock.monotonic_s() - started_s,
        cpu_s=_cpu_s(parts) - cpu_before_s,
    )


def unrun_record(spec: EpisodeSpec, reason: str, clock: Clock) -> EpisodeRecord:
    """Return the record of an episode that no process could run to its end."""
    now, outcome = clock.now(), Outcome(kind=OutcomeKind.INVALID, reasons=(reason,))
    nothing = _Attempt(session_id="", result=None)
    return _record(spec, nothing, outcome, broken={}, started_at=now, ended_at=now, wall_s=0.0, cpu_s=0.0)


@contextmanager
def _workspace(parts: EpisodeParts, spec: EpisodeSpec) -> Iterator[Path]:
    folder = parts.root.workspaces / f"{spec.episode_key[:16]}-{parts.clock.ulid()}"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Watched:
    """An environment that ends the task which opened it when nothing can be started: going on would measure nothing."""

    def __init__(self, environment: Environment) -> None:
        self._environment, self._task = environment, asyncio.current_task()
        self.definition: CommandEnvironment | None = environment.definition
        self.overhead_s = environment.overhead_s
        self.workspace_path, self.task_path = environment.workspace_path, environment.task_path
        self.problem = ""

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        timeout_s: float,
        capture: Capture,
        path: str | None = None,
        task: Path | None = None,
    ) -> Finished:
        try:
            return await self._environment.run(
                argv, workspace=workspace, timeout_s=timeout_s, capture=capture, path=path, task=task
            )
        except EnvironmentBroken as broken:
            if not self.problem and self._task is not None:
                self.problem = str(broken)
                self._task.cancel()
            raise

    def ended_it(self) -> bool:
        """Whether a cancellation of the task was this one's, and nobody else's."""
        return bool(self.problem) and self._task is not None and self._task.uncancel() == 0


async def _attempt(parts: EpisodeParts, spec: EpisodeSpec, task: Task, workspace: Path, folder: Path) -> _Attempt:
    session_id, environment = "", _Watched(task.environment)
    account = parts.account.model_copy(update={"episode_key": spec.episode_key})
    judge = _completion_judge(parts, spec, account, folder)
    try:
        copy_fixtures(task, workspace)
        session = parts.opener.create_session(
            mode=Mode.EXPERIMENT,
            scaffold=spec.scaffold,
            model=spec.roles[Role.TARGET],
            workspace=workspace,
            folder=folder,
            outline=task.outline,
            simulation_key=f"{spec.scaffold_id}/{spec.task_id}/{spec.seed}/{spec.repetition}",
            options=spec.options.get(Role.TARGET, NO_OPTIONS),
            caps=_as_limits(spec.caps),
            environment=environment,
            account=account,
            judges=() if judge is None else (judge,),
        )
        session_id = session.session_id
        try:
            async with asyncio.timeout(spec.caps.seconds + _GRACE_S):
                result = await session.arun(task.prompt)
        finally:
            session.close()
    except asyncio.CancelledError:
        if not environment.ended_it():
            raise
        return _Attempt(session_id=session_id, result=None, problem=f"its environment: {environment.problem}")
    except ConfigurationError:
        raise
    except RecordError as error:
        raise _disk_failure(str(error), folder) from error
    except Exception as error:  # noqa: BLE001
        _raise_if_of_the_disk(error, workspace)
        # Whatever else breaks here broke around the agent: the episode measured nothing, and its record says why.
        return _Attempt(session_id=session_id, result=None, problem=_shown(error))
    if result.stop is TurnStop.CHECKPOINT_FAILED:
        raise _disk_failure(result.detail, folder)
    if result.stop is TurnStop.BUDGET_REACHED:
        raise OutOfMoney(result.detail)
    if judge is not None and judge.out_of_money:
        raise OutOfMoney(judge.out_of_money)
    problem = f"{result.stop}: {result.detail}" if result.stop in INFRASTRUCTURE_STOPS else ""
    if not problem and judge is not None and judge.down:
        # An agent that was told nothing of its work, because the judge could not be asked, is not the one under test.
        problem = f"its completion judge was down: {judge.down}"
    return _Attempt(session_id=session_id, result=result, problem=problem, judge=judge)


def _completion_judge(parts: EpisodeParts, spec: EpisodeSpec, account: Account, folder: Path) -> InLoopJudge | None:
    if spec.scaffold.completion is None:
        return None
    if parts.completion is None:
        raise ConfigurationError("the scaffold has a completion check, and nobody here can open its judge")
    return parts.completion(spec, account.model_copy(update={"role": Role.JUDGE.value}), folder)


def _raise_if_of_the_disk(error: BaseException, workspace: Path) -> None:
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        raise error
    if isinstance(error, shutil.Error):
        # A copy of many files tells what happened to each in words only.
        for *_, why in error.args[0]:
            if any(f"[Errno {code}]" in why for code in _DISK_ERRORS):
                raise _disk_failure(why, workspace) from error


def _disk_failure(detail: str, folder: Path) -> OSError:
    """A new folder whose records cannot be saved means a failing disk, which would fail every other episode too."""
    return OSError(errno.EIO, detail, str(folder))


async def _judge(parts: EpisodeParts, attempt: _Attempt, task: Task, workspace: Path) -> Outcome:
    if attempt.problem:
        return Outcome(kind=OutcomeKind.INVALID, reasons=(f"the session broke: {attempt.problem}",))
    try:
        return await parts.verifiers.outcome(task.verify, workspace)
    except (VerifierBroke, EnvironmentBroken) as broke:
        errno = broke.errno if isinstance(broke, VerifierBroke) else None
        if errno in _DISK_ERRORS:
            raise OSError(errno, str(broke), str(workspace)) from broke
        # A verifier is a suite's own code. If it breaks, nothing is known about the agent.
        return Outcome(kind=OutcomeKind.INVALID, reasons=(f"the verifier broke: {broke}",))


def _record(
    spec: EpisodeSpec,
    attempt: _Attempt,
    outcome: Outcome,
    *,
    broken: dict[str, str],
    started_at: datetime,
    ended_at: datetime,
    wall_s: float,
    cpu_s: float,
) -> EpisodeRecord:
    result = attempt.result
    return EpisodeRecord(
        episode_key=spec.episode_key,
        scaffold_id=spec.scaffold_id,
        suite=spec.suite,
        task_id=spec.task_id,
        family=spec.family,
        task_hash=spec.task_hash,
        seed=spec.seed,
        repetition=spec.repetition,
        roles=spec.roles,
        caps_hash=spec.caps.caps_hash,
        outcome=outcome,
        stop_reason=result.stop.value if result else "not_run",
        verified=result.verified if result else False,
        rounds=result.rounds if result else 0,
        tool_calls=result.tool_calls if result else 0,
        tool_errors=result.tool_errors if result else 0,
        refused_calls=result.refused_calls if result else 0,
        repairs_used=result.repairs_used if result else 0,
        broken_hooks=broken,
        usage=_usage(attempt),
        simulated=result.simulated if result else any(m.startswith("simulated/") for m in spec.roles.values()),
        session_id=attempt.session_id,
        started_at=started_at,
        ended_at=ended_at,
        wall_s=wall_s,
        cpu_s=cpu_s,
        geode_version=geode.__version__,
        python_version=platform.python_version(),
    )


def _usage(attempt: _Attempt) -> dict[str, RoleUsage]:
    usage = {Role.TARGET.value: _role_usage(attempt.result)} if attempt.result else {}
    judged = attempt.judge.usage() if attempt.judge is not None else RoleUsage()
    return usage if judged == RoleUsage() else {**usage, Role.JUDGE.value: judged}


def _role_usage(result: TurnResult) -> RoleUsage:
    usage = result.usage
    return RoleUsage(
        uncached_input_tokens=usage.uncached_input_tokens or 0,
        cache_write_tokens=usage.cache_write_tokens or 0,
        cache_read_tokens=usage.cache_read_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        reasoning_tokens=usage.reasoning_tokens or 0,
        cost_usd=result.cost_usd_known,
        unpriced_calls=result.unpriced_calls,
        calls=result.model_calls,
        latency_ms=result.latency_ms,
    )


def _as_limits(caps: Caps) -> LoopLimits:
    return LoopLimits(
        rounds=min(caps.rounds, _ROUNDS_MAX), tokens=caps.tokens, seconds=caps.seconds, cost_usd=caps.cost_usd
    )


def _cpu_s(parts: EpisodeParts) -> float:
    """CPU of this process, of its ended children and for verifiers. Episodes that run side by side share it."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system + parts.verifiers.cpu_s


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_SHOWN_CHARS_MAX]


def _without_paths(text: str, hidden: dict[str, str]) -> str:
    for path, shown in hidden.items():
        text = text.replace(path, shown)
    return text
