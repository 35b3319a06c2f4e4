"""Child sessions of one parent session: what a sub-agent may do, where it is recorded, and what it costs its parent."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from geode.clock import Clock
from geode.events import Notice
from geode.hooks.system import HookSystem
from geode.llm.usage import shown_usd
from geode.loop.agentic_loop import AgenticLoop
from geode.loop.limits import effective
from geode.loop.turn import TurnResult
from geode.records.database import RecordError
from geode.records.folder import SessionFolder
from geode.scaffold import Scaffold, SubAgentContract, ToolPlan
from geode.tools.delegate import NAME, ChildEnd
from geode.tools.spec import ToolFailed

DEPTH_MAX = 3
"""How deep sub-agents may delegate: a fourth one has nobody below it."""


def child_scaffold(parent: Scaffold, contract: SubAgentContract, depth: int) -> Scaffold:
    """Return what a child at `depth` (1 below the root) is: its parent's, less what its contract does not name.

    A child of the deepest kind, or whose contract does not name it, cannot delegate; who can hands on no tool that it
    does not have.
    """
    tools = set(contract.tools) - (set() if depth < DEPTH_MAX else {NAME})
    agents = tuple(agent for agent in parent.sub_agents if NAME in tools and set(agent.tools) <= tools)
    tools -= set() if agents else {NAME}
    plan = ToolPlan(tools=tuple(choice for choice in parent.tools.tools if choice.name in tools))
    return parent.model_copy(update={"tools": plan, "sub_agents": agents, "limits": contract.limits})


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedChild:
    """A child session as its parent uses it."""

    loop: AgenticLoop
    close: Callable[[], None]


OpenChild = Callable[[str, SubAgentContract, SessionFolder], OpenedChild]
"""Opens the session of a child, by its name, in a new folder."""


class ChildSessions:
    """The `SessionOpener` of one parent session, whose loop is there only after its tools: `begin` tells of it."""

    _parent: AgenticLoop
    _observers: HookSystem

    def __init__(self, folder: SessionFolder, clock: Clock, open_child: OpenChild) -> None:
        self._folder, self._clock, self._open = folder, clock, open_child

    def begin(self, parent: AgenticLoop, observers: HookSystem) -> None:
        """Say whose children these are, and who is told of them."""
        self._parent, self._observers = parent, observers

    def draw(self) -> str:
        """See `SessionOpener`."""
        return self._clock.ulid()

    async def run(self, child: str, contract: SubAgentContract, task: str) -> ChildEnd:
        """See `SessionOpener`."""
        left = self._parent.left
        limited = contract.model_copy(update={"limits": effective(contract.limits, left)})
        try:
            opened = self._open(child, limited, self._of(child))
        except (RecordError, ValueError, OSError) as error:
            raise ToolFailed(f"the sub-agent {contract.name!r} cannot begin: {error}") from error
        try:
            result = await opened.loop.arun(task)
        except asyncio.CancelledError:
            self._account(child, contract, None)
            raise
        finally:
            opened.close()
        self._account(child, contract, result)
        return ChildEnd(text=result.text, verified=result.verified, stop=result.stop.value, detail=result.detail)

    def ended(self, child: str) -> bool | None:
        """See `SessionOpener`."""
        folder = self._of(child)
        if not folder.state.exists():
            return False
        try:
            return True if folder.read_state().get("status") == "idle" else None
        except ValueError:
            return None

    def _of(self, child: str) -> SessionFolder:
        return SessionFolder(self._folder.children / child)

    def _account(self, child: str, contract: SubAgentContract, result: TurnResult | None) -> None:
        end = "was stopped"
        if result is not None:
            self._parent.charge(result)
            end = f"ended: {result.stop.value}, {result.rounds} rounds, {shown_usd(result.usage.cost_usd)}"
        self._observers.emit(Notice(about="delegation", text=f"sub-agent {contract.name}, session {child}, {end}"))
