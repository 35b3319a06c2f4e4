"""One life of the session, in this process: opened, watched at every point, and broken at one, or gone on with."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.events import CallEnded, Event
from geode.executor.policy import Mode
from geode.hooks.library import HookFactory
from geode.hooks.points import HookEvent, HookPoint, Pass
from geode.llm.messages import Origin, TextBlock
from geode.loop.turn import TurnResult
from geode.records.database import Database, Durability, RecordError, RecordLocked
from geode.records.folder import SessionFolder
from geode.scaffold import HookChoice
from geode.serve.services import Session, SharedServices
from tests.crash.points import At, Fault, Point, kill, terminate
from tests.crash.script import PROMPT, SCAFFOLD, Judge, Walker
from tests.crash.served import offered
from tests.doubles.hooks import ScriptedHook
from tests.doubles.wire import problems

ACKNOWLEDGED = "acknowledged.jsonl"
REPORT = "report.json"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where one session of the matrix lives: its records, its workspace, and what is noted outside of both."""

    path: Path

    @property
    def root(self) -> StateRoot:
        return StateRoot(self.path / "root")

    @property
    def session(self) -> Path:
        return self.root.sessions / "s"

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def served(self) -> bool:
        """Whether the session has the tool of an MCP server."""
        return self.root.mcp_settings.exists()

    def acknowledge(self, body: str) -> None:
        """Note a message that was told to be stored. One write, so that no fault tears it."""
        with (self.path / ACKNOWLEDGED).open("ab", buffering=0) as file:
            file.write(json.dumps(body).encode() + b"\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a life that went on has to report."""

    passed: dict[str, int]
    refusals: tuple[str, ...]
    stop: str
    verified: bool
    problem: str
    seconds: float


def first_life(home: Home, seed: int, repairs: int, at: At) -> None:
    """Begin the session and play its prompt. It ends however the fault at a point lets it end."""

    async def life() -> None:
        async with offered(home.root, home.path, at) as extra_tools:
            session = _services(home, at).create_session(
                mode=Mode.EXPERIMENT,
                scaffold=SCAFFOLD.model_copy(update={"hooks": (HookChoice(name="watch"),)}),
                model=Walker.model,
                workspace=home.workspace,
                folder=home.session,
                adapter=Walker(seed, at, served=home.served),
                extra_tools=extra_tools,
                judges=[Judge(repairs, at)],
                observers=[_rows(at)],
            )
            _watch(session, home, at)
            try:
                await session.arun(PROMPT)
                at(Point.DELIVERED)
            finally:
                session.close()

    _run(life)


def next_life(home: Home, seed: int, repairs: int, at: At) -> Recovery:
    """Open the session again as an operator would, and go on with it to its end."""
    began = time.monotonic()
    model, problem, result = Walker(seed, at, served=home.served), "", None
    try:
        result = _run(lambda: _gone_on(home, model, repairs, at))
    except (RecordError, ValueError, OSError) as error:
        problem = f"{type(error).__name__}: {error}"
    refusals = [refusal for asked in model.asked for refusal in problems(asked.messages)]
    return Recovery(
        passed={point.value: times for point, times in at.passed.items()},
        refusals=tuple(refusals),
        stop=result.stop.value if result else "",
        verified=result.verified if result else False,
        problem=problem,
        seconds=time.monotonic() - began,
    )


async def _gone_on(home: Home, model: Walker, repairs: int, at: At) -> TurnResult | None:
    async with offered(home.root, home.path, at) as extra_tools:
        session = _services(home, at).reopen_session(
            home.session,
            home.workspace,
            adapter=model,
            extra_tools=extra_tools,
            judges=[Judge(repairs, at)],
            observers=[_rows(at)],
        )
        _watch(session, home, at)
        try:
            if session.loop.unfinished:
                return await session.aresume()
            has_prompt = any(
                isinstance(block, TextBlock) and block.origin is Origin.USER
                for message in session.loop.messages
                for block in message.blocks
            )
            return None if has_prompt else await session.arun(PROMPT)
        finally:
            session.close()


def fault_act(fault: Fault, home: Home) -> Callable[[], None]:
    """Return what to do in this process when the point is passed."""
    match fault:
        case Fault.SIGKILL:
            return kill
        case Fault.SIGTERM:
            return terminate
        case Fault.EIO:
            return lambda: _break_files(home)
        case Fault.ENOSPC:
            return lambda: _fill(home)
        case Fault.LOCKED:
            return lambda: _second_owner(home)


def write_report(home: Home, report: Recovery) -> None:
    (home.path / REPORT).write_text(json.dumps(asdict(report)))


_OPEN: list[Session] = []


def _services(home: Home, at: At) -> SharedServices:
    def decide(event: HookEvent) -> Pass:
        at(Point.PROMPT_ACCEPTED)
        return Pass()

    watch: HookFactory = lambda _: ScriptedHook(HookPoint.USER_PROMPT_SUBMIT, decide=decide, name="watch")  # noqa: E731
    settings = Settings(root=home.root, tracking_uri=None, environment={})
    return SharedServices(settings, hooks={"watch": watch})


def _run(life: Callable[[], Coroutine[None, None, T]]) -> T:
    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await life()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise SystemExit(143) from None


def _rows(at: At) -> Callable[[Event], None]:
    """An observer behind the timeline. It fails now and then, which is what gives the evidence its rows."""

    def observe(event: Event) -> None:
        at(Point.TIMELINE_ROW)
        if isinstance(event, CallEnded) and event.round % 4 == 0:
            raise RuntimeError("an observer that fails")

    return observe


def _watch(session: Session, home: Home, at: At) -> None:
    """Pass a point before and after each step of persistence, and note outside what was told to be stored."""
    _OPEN.append(session)
    parts = session.loop._parts
    checkpoint, receipts = parts.checkpoint, parts.receipts
    save_messages, save_pending, save_complete = (
        checkpoint.save_messages,
        checkpoint.save_pending,
        checkpoint.save_complete,
    )

    def messages(bodies: Sequence[str], progress: Any, guards: Any, cognitive: Any) -> None:
        save_messages(bodies, progress, guards, cognitive)
        for body in bodies:
            home.acknowledge(body)
        if bodies:
            at(Point.MESSAGE_STORED)
        if bodies and progress.repairs_used:
            at(Point.REPAIR_COUNTED)
        if not progress.in_turn and not bodies:
            at(Point.ANSWER_STORED)

    def pending(body: str, count: int, progress: Any) -> None:
        at(Point.BEFORE_PENDING)
        save_pending(body, count, progress)
        home.acknowledge(body)
        at(Point.PENDING_SAVED)

    def complete(body: str, progress: Any, guards: Any, cognitive: Any) -> None:
        at(Point.BEFORE_COMPLETE)
        save_complete(body, progress, guards, cognitive)
        home.acknowledge(body)
        at(Point.COMPLETE_SAVED)

    for name, watched in (("save_messages", messages), ("save_pending", pending), ("save_complete", complete)):
        setattr(checkpoint, name, watched)
    for name, before, after in (
        ("admit", Point.BEFORE_ADMITTED, Point.ADMITTED),
        ("started", Point.LOCK_TAKEN, Point.STARTED),
        ("ended", Point.EFFECT_VISIBLE, Point.RECEIPT_ENDED),
    ):
        setattr(receipts, name, _between(getattr(receipts, name), at, before, after))
    report = parts.observers.report

    def reported(about: str, text: str) -> None:
        report(about, text)
        at(Point.EVIDENCE_ROW)

    parts.observers.report = reported


def _between(method: Callable[..., Any], at: At, before: Point, after: Point) -> Callable[..., Any]:
    def watched(*arguments: Any, **named: Any) -> Any:
        at(before)
        result = method(*arguments, **named)
        at(after)
        return result

    return watched


def _record_files(home: Home) -> list[tuple[int, Path]]:
    """Return the open descriptors of this session's records: the databases' logs, timeline and evidence."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            path = Path(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
        if path.is_relative_to(home.session) and path.name.endswith(("-wal", ".jsonl")):
            found.append((int(name), path))
    return found


def _break_files(home: Home) -> None:
    """Let every later write to a record fail as on a broken disk; reading goes on."""
    for descriptor, path in _record_files(home):
        broken = os.open(path, os.O_RDONLY)
        os.dup2(broken, descriptor)
        os.close(broken)


def _fill(home: Home) -> None:
    """Let every later write that needs room fail as on a full disk."""
    parts = _OPEN[-1].loop._parts
    for database in (parts.checkpoint._db, parts.receipts._db):
        pages = database._connection.execute("PRAGMA page_count").fetchone()[0]
        database._connection.execute(f"PRAGMA max_page_count={pages}")
    for descriptor, path in _record_files(home):
        if path.suffix == ".jsonl":
            full = os.open("/dev/full", os.O_WRONLY | os.O_APPEND)
            os.dup2(full, descriptor)
            os.close(full)


def _second_owner(home: Home) -> None:
    """Let another process try to open the same session now. It must be refused, and must do no harm."""
    child = os.fork()
    if not child:
        code = 1
        try:
            folder = SessionFolder(home.session)
            code = int(not all(_is_locked(path) for path in (folder.checkpoint, folder.receipts)))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        (home.path / "second_owner").write_text("a second process could open the session's records")


def _is_locked(path: Path) -> bool:
    try:
        Database(path, (), Durability.PROCESS, busy_timeout_s=0.01)
    except RecordLocked:
        return True
    return False
