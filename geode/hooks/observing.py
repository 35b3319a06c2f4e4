"""Commands that are told what happened. They run beside the session, never in its way, and none outlives it.

A session's events come on its own thread, which only puts them down; one other thread runs the commands, those of one
entry in order. What fails is told once for each entry, on the session's thread, since its ledger knows no other.
"""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, get_args

from pydantic import JsonValue

from geode.events import ApprovalDecided, CallEnded, ContextCompacted, Event, Notice, SessionOpened, event_fields
from geode.hooks.command import CommandPlace, run_command
from geode.hooks.outcomes import CommandEnd
from geode.hooks.vocabulary import Vocabulary

CLOSE_LIMIT_S: Final = 5.0
"""The usual limit on the end of a session; it stops whatever else its process does meanwhile."""
WAITING_MAX: Final = 1_000
"""How many events may wait for one entry. More are lost to it, and that is told."""
KINDS: Final = frozenset(event.kind for event in get_args(Event))
"""The events that an entry may name as they are called in `geode.events`."""


class Observed(StrEnum):
    """Other names of what can be observed: those that hooks for Claude Code have."""

    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    NOTIFICATION = "Notification"
    POST_COMPACT = "PostCompact"


HAVE_A_MATCHER: Final = frozenset(
    {*Observed, CallEnded.kind, ApprovalDecided.kind, Notice.kind} - {Observed.POST_COMPACT}
)
"""The events that a matcher can choose among: by tool, by what a notice is about, by how a session began or ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverEntry:
    """One entry of a hook file that is told of an event: one of `Observed`, or of `KINDS`."""

    name: str
    event: str
    command: str
    time_limit_s: float
    matcher: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """An entry in one session. `may_run` is asked before each run: a project's entry may have changed."""

    entry: ObserverEntry
    place: CommandPlace
    may_run: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is told of one event under one name. `subject` is what a matcher chooses by."""

    name: str
    subject: str
    body: Mapping[str, JsonValue]


class CommandObservers:
    """An observer of one session. Close it before the session's ledger: it ends with the last of its commands.

    Args:
        watching: who is told.
        note: told what failed: about what, and how.
        path: the names of the sub-agents down to this session; empty for one that nobody delegated to.
        close_limit_s: how long the end waits for all commands together; then they are ended.
    """

    def __init__(
        self,
        watching: Sequence[Watching],
        note: Callable[[str, str], None],
        path: tuple[str, ...] = (),
        *,
        close_limit_s: float = CLOSE_LIMIT_S,
    ) -> None:
        self._watching, self._note, self._path, self._close_limit_s = watching, note, path, close_limit_s
        self._vocabulary = Vocabulary()
        self._problems: deque[tuple[str, str]] = deque()
        self._noted: set[str] = set()
        self._runner: _Runner | None = None
        self._opened = False

    def __call__(self, event: Event) -> None:
        """Put `event` down for whoever wants it."""
        self._opened = self._opened or isinstance(event, SessionOpened)
        for told in _names(event, self._path):
            self._tell(told)
        self._tell_problems()

    def close(self) -> None:
        """Tell of the end, and wait for the commands, for a limited time."""
        if self._opened:
            self._tell(_end(self._path))
        if self._runner is not None:
            self._runner.close(self._close_limit_s)
            self._runner = None
        self._tell_problems()

    def _tell(self, told: _Told) -> None:
        for watching in self._watching:
            entry, place = watching.entry, watching.place
            if entry.event != told.name or not self._vocabulary.matches(entry.matcher, told.subject):
                continue
            if self._runner is None:
                self._runner = _Runner(self._problems)
            body = {
                "session_id": place.session_id,
                "transcript_path": str(place.timeline),
                "cwd": str(place.workspace),
                "permission_mode": place.mode,
                "hook_event_name": told.name,
                **told.body,
            }
            self._runner.put(watching, json.dumps(body))

    def _tell_problems(self) -> None:
        while self._problems:
            name, problem = self._problems.popleft()
            if name not in self._noted:
                self._noted.add(name)
                self._note(f"hook {name}", f"{problem}; what else goes wrong with it is not told again")


class _Runner:
    """The thread that runs the commands. Its loop has one task for each entry."""

    def __init__(self, problems: deque[tuple[str, str]]) -> None:
        self._problems = problems
        self._queues: dict[str, asyncio.Queue[tuple[Watching, str] | None]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        # A daemon: a session that was not closed must not keep its process from ending.
        self._thread = threading.Thread(target=self._loop.run_forever, name="geode-observers", daemon=True)
        self._thread.start()

    def put(self, watching: Watching, told: str) -> None:
        self._loop.call_soon_threadsafe(self._put, watching, told)

    def close(self, limit_s: float) -> None:
        asyncio.run_coroutine_threadsafe(self._finish(limit_s), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _put(self, watching: Watching, told: str) -> None:
        name = watching.entry.name
        if name not in self._queues:
            self._queues[name] = asyncio.Queue()
            self._tasks[name] = self._loop.create_task(self._serve(self._queues[name]))
        if self._queues[name].qsize() >= WAITING_MAX:
            self._problems.append((name, f"more than {WAITING_MAX} events waited for it, and some were lost to it"))
        else:
            self._queues[name].put_nowait((watching, told))

    async def _serve(self, queue: "asyncio.Queue[tuple[Watching, str] | None]") -> None:
        while (item := await queue.get()) is not None:
            watching, told = item
            name = watching.entry.name
            try:
                if not watching.may_run():
                    self._problems.append((name, "it has changed since it was trusted, and does not run"))
                    continue
                end = await run_command(watching.entry.command, told, watching.place, watching.entry.time_limit_s)
            except Exception as error:  # noqa: BLE001  (one that cannot be run must not end the others; it is noted)
                self._problems.append((name, f"it cannot be run: {type(error).__name__}: {error}"))
                continue
            if problem := _problem(end, watching.entry.time_limit_s):
                self._problems.append((name, problem))

    async def _finish(self, limit_s: float) -> None:
        for queue in self._queues.values():
            queue.put_nowait(None)
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks.values(), timeout=limit_s)
        for name, task in self._tasks.items():
            if task in late:
                task.cancel()  # which ends its command, with whatever that has started
                self._problems.append((name, f"it was not done {limit_s:g} s after the session was, and was ended"))
        if late:
            await asyncio.wait(late)


def _names(event: Event, path: tuple[str, ...]) -> Iterator[_Told]:
    """Yield what is told of `event`, under each name that it has."""
    fields = event_fields(event)
    own: dict[str, JsonValue] = {"event": fields}
    subject = ""
    match event:
        case SessionOpened():
            source = "resume" if event.resumed else "startup"
            name = Observed.SUBAGENT_START if path else Observed.SESSION_START
            subject = path[-1] if path else source
            yield _Told(
                name=name, subject=subject, body={**own, **_agent(path), "source": source, "model": event.model}
            )
        case Notice():
            subject = event.about
            body: dict[str, JsonValue] = {"message": event.text, "notification_type": event.about}
            yield _Told(name=Observed.NOTIFICATION, subject=subject, body={**own, **body})
        case ContextCompacted():
            yield _Told(name=Observed.POST_COMPACT, subject="", body={**own, "trigger": "auto"})
        case CallEnded() | ApprovalDecided():
            subject = event.tool
        case _:
            pass
    yield _Told(name=event.kind, subject=subject, body=own)


def _end(path: tuple[str, ...]) -> _Told:
    if path:
        return _Told(name=Observed.SUBAGENT_STOP, subject=path[-1], body=_agent(path))
    return _Told(name=Observed.SESSION_END, subject="other", body={"reason": "other"})


def _agent(path: tuple[str, ...]) -> dict[str, JsonValue]:
    return {"agent_type": path[-1], "agent_path": "/".join(path)} if path else {}


def _problem(end: CommandEnd, time_limit_s: float) -> str:
    if end.too_long:
        return "it wrote more than a hook may, and was ended"
    if end.exit_code is None:
        return f"it did not end within {time_limit_s:g} s, and was ended"
    if end.exit_code == 0:
        return ""
    said = f" ({end.stderr.strip()[:200]})" if end.stderr.strip() else ""
    return f"it ended with exit code {end.exit_code}{said}"
