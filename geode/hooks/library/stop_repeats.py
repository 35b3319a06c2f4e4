"""The hook that ends a loop of equal calls."""

from hashlib import blake2b
from typing import Annotated

from pydantic import Field, JsonValue

from geode.authority import SafetyLevel
from geode.canonical import canonical_json
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import Block, Decision, HookEvent, HookPoint, Pass, ToolEnded, ToolProposed


class StopRepeatsOptions(HookOptions):
    """A call may be made `allowed` times with one result, among the last `window` different calls."""

    allowed: Annotated[int, Field(ge=1, le=100)] = 2
    window: Annotated[int, Field(ge=1, le=256)] = 16


class StopRepeats:
    """Blocks a call that was already made with the same arguments and the same result, several times over."""

    name = "stop_repeats"
    points = frozenset({HookPoint.PRE_TOOL_USE, HookPoint.POST_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = StopRepeatsOptions

    def __init__(self, options: StopRepeatsOptions) -> None:
        self._options = options
        self._seen: dict[str, tuple[str, int]] = {}

    async def decide(self, event: HookEvent) -> Decision:
        """Count equal results of equal calls; block the next one past the allowed number."""
        match event:
            case ToolProposed():
                _, times = self._seen.get(_digest(event.tool, event.arguments), ("", 0))
                if times >= self._options.allowed:
                    return Block(
                        reason=f"this exact call was already made {times} times with the same result."
                        " Do something different."
                    )
            case ToolEnded():
                call, result = _digest(event.tool, event.arguments), _digest(event.text)
                before, times = self._seen.pop(call, (result, 0))
                if event.level > SafetyLevel.READ and not event.is_error:
                    self._seen.clear()  # the workspace may have changed, so other calls may now say something new
                self._seen[call] = (result, times + 1 if before == result else 1)
                while len(self._seen) > self._options.window:
                    del self._seen[next(iter(self._seen))]
            case _:
                pass
        return Pass()

    def snapshot(self) -> JsonValue:
        """See `DecisionHook`."""
        return [[call, result, times] for call, (result, times) in self._seen.items()]

    def restore(self, memory: JsonValue) -> None:
        """See `DecisionHook`."""
        if isinstance(memory, list):
            rows = [row for row in memory if isinstance(row, list) and len(row) == 3]
            self._seen = {str(call): (str(result), int(str(times))) for call, result, times in rows}


def _digest(*parts: object) -> str:
    return blake2b(canonical_json(parts).encode(), digest_size=8).hexdigest()
