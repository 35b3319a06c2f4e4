"""The deciding plane: asks the hooks of a point in order, bounds and validates each, and reports what they said."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from reprlib import Repr

from pydantic import JsonValue

from geode.canonical import canonical_json
from geode.deadline import Halt, run_within
from geode.hooks.points import ALLOWED, Continue, Decision, DecisionHook, HookEvent, HookPoint, Pass, Repair, Rewrite
from geode.redaction import clean_text

_SHOWN_CHARS = 200
_ENCODER = json.JSONEncoder(allow_nan=False)
_BRIEFLY = Repr()  # bounded before it is built, also for a value whose own repr fails
_BRIEFLY.maxstring = _BRIEFLY.maxother = _SHOWN_CHARS // 2


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
    """The hooks of one session, in the order of the scaffold: the first has the first word.

    A hook whose memory cannot be saved or restored does not know what it has seen: it is broken from then on.
    """

    def __init__(self, hooks: Sequence[DecisionHook]) -> None:
        self._hooks = tuple(hooks)
        self._at = {point: tuple(h for h in self._hooks if point in h.points) for point in HookPoint}
        self._lost: dict[str, str] = {}

    def at(self, point: HookPoint) -> tuple[DecisionHook, ...]:
        """Return the hooks of `point`, in order."""
        return self._at[point]

    async def ask_one(self, hook: DecisionHook, point: HookPoint, event: HookEvent) -> Answer | None:
        """Ask one hook, within its time limit, and hold its answer against what the point allows. None: no opinion."""
        if problem := self._lost.get(hook.name):
            return Answer(hook=hook.name, decision=None, problem=problem)
        finished = await run_within(hook.time_limit_s, lambda: hook.decide(event))
        if finished.halt is Halt.CANCELLED:
            raise asyncio.CancelledError
        if finished.halt is Halt.TIME and finished.interrupted:
            return Answer(hook=hook.name, decision=None, problem=f"no answer within {hook.time_limit_s:g} s")
        if finished.error is not None:
            problem = _shown(f"it raised {type(finished.error).__name__}: {finished.error}")
            return Answer(hook=hook.name, decision=None, problem=problem)
        if isinstance(finished.value, Pass):
            return None
        decision = _sound(finished.value, point)
        if decision is None:
            problem = _shown(f"it answered {_BRIEFLY.repr(finished.value)}, which {point} does not allow")
            return Answer(hook=hook.name, decision=None, problem=problem)
        return Answer(hook=hook.name, decision=decision)

    def snapshot(self) -> dict[str, JsonValue]:
        """Return the memory of all hooks that have one."""
        memories: dict[str, JsonValue] = {}
        for hook in self._hooks:
            memory = self._trusted(hook, hook.snapshot)
            if memory is not None:
                memories[hook.name] = memory
        return memories

    def restore(self, memories: dict[str, JsonValue]) -> None:
        """Give each hook its memory back."""
        for hook in self._hooks:
            if hook.name in memories:
                self._trusted(hook, partial(hook.restore, memories[hook.name]))

    def _trusted(self, hook: DecisionHook, memory: Callable[[], JsonValue]) -> JsonValue:
        try:
            value = memory()
            _ENCODER.encode(value)
        except Exception as error:  # noqa: BLE001  (a hook is foreign code; from here on it blocks, and says why)
            self._lost[hook.name] = _shown(f"its memory is lost: {type(error).__name__}: {error}")
            return None
        return value


def _sound(decision: object, point: HookPoint) -> Decision | None:
    """Return a decision that the point allows, its texts cleaned and its arguments its own, or None for nonsense."""
    if not isinstance(decision, ALLOWED[point]):
        return None
    changed: dict[str, object] = {}
    for spec in fields(decision):
        value = getattr(decision, spec.name)
        if isinstance(decision, Rewrite) and spec.name == "arguments":
            try:
                changed["arguments"] = json.loads(clean_text(canonical_json(value)))
            except (TypeError, ValueError, RecursionError):
                return None
            if not isinstance(changed["arguments"], dict):
                return None
        elif isinstance(value, str):
            changed[spec.name] = clean_text(value)
        else:
            return None
    if isinstance(decision, Repair | Continue) and not decision.instruction.strip():
        return None  # nothing that the model could act on
    return replace(decision, **changed)  # type: ignore[arg-type]


def _shown(problem: str) -> str:
    text = clean_text(problem)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
