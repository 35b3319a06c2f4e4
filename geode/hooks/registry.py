"""The deciding plane: asks the hooks of a point in order, bounds and validates each, and reports what they said."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from geode.hooks.points import ALLOWED, Decision, DecisionHook, HookEvent, HookPoint, Pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one hook said. If it is broken there is no decision, and `problem` says what went wrong."""

    hook: str
    decision: Decision | None
    problem: str = ""

    @property
    def broken(self) -> bool:
        """Whether the hook failed instead of deciding."""
        return self.decision is None


class HookRegistry:
    """The hooks of one session, in the order of the scaffold: the first has the first word."""

    def __init__(self, hooks: Sequence[DecisionHook]) -> None:
        self._hooks = tuple(hooks)
        self._at = {point: tuple(h for h in self._hooks if point in h.points) for point in HookPoint}

    def at(self, point: HookPoint) -> tuple[DecisionHook, ...]:
        """Return the hooks of `point`, in order."""
        return self._at[point]

    async def ask_one(self, hook: DecisionHook, point: HookPoint, event: HookEvent) -> Answer | None:
        """Ask one hook, within its time limit, and hold its answer against what the point allows. None: no opinion."""
        try:
            async with asyncio.timeout(hook.time_limit_s):
                decision = await hook.decide(event)
        except TimeoutError:
            return Answer(hook=hook.name, decision=None, problem=f"no answer within {hook.time_limit_s:g} s")
        except Exception as error:  # noqa: BLE001  (a hook is foreign code: whatever it raises, it failed to decide)
            return Answer(hook=hook.name, decision=None, problem=f"it raised {type(error).__name__}: {error}")
        if isinstance(decision, Pass):
            return None
        if not isinstance(decision, ALLOWED[point]):
            problem = f"it answered {decision!r}, which {point} does not allow"
            return Answer(hook=hook.name, decision=None, problem=problem)
        return Answer(hook=hook.name, decision=decision)

    def snapshot(self) -> dict[str, JsonValue]:
        """Return the memory of all hooks that have one."""
        memories = {hook.name: hook.snapshot() for hook in self._hooks}
        return {name: memory for name, memory in memories.items() if memory is not None}

    def restore(self, memories: dict[str, JsonValue]) -> None:
        """Give each hook its memory back."""
        for hook in self._hooks:
            if hook.name in memories:
                hook.restore(memories[hook.name])
