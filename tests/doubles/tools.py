"""Small working tools for tests: one counts its effects, one hangs, one crashes in the middle."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from geode.tools.spec import Arguments, ResourceClaim, SafetyLevel, ToolOutput, ToolSpec

ANY_OBJECT: dict[str, JsonValue] = {"type": "object"}


@dataclass(slots=True)
class CountingTool:
    """Its effect is that `effects` grows by the text of its arguments. Its probe knows whether the effect happened."""

    name: str = "count"
    level: SafetyLevel = SafetyLevel.WRITE
    input_schema: dict[str, JsonValue] = field(default_factory=lambda: dict(ANY_OBJECT))
    effects: list[str] = field(default_factory=list)
    resource: str | None = None
    before_effect: Callable[[], None] | None = None

    @property
    def spec(self) -> ToolSpec:
        """The tool as the host sees it."""
        return ToolSpec(
            name=self.name,
            description=f"Count calls of {self.name}.",
            input_schema=self.input_schema,
            level=self.level,
            handler=self._run,
            timeout_s=5.0,
            claims=self._claims,
            intent=lambda arguments: json.dumps(dict(arguments), sort_keys=True),
            settled_by_probe=lambda _, intent: intent in self.effects,
        )

    async def _run(self, arguments: Arguments, /) -> ToolOutput:
        if self.before_effect is not None:
            self.before_effect()
        self.effects.append(json.dumps(dict(arguments), sort_keys=True))
        return ToolOutput(text=f"effect {len(self.effects)}")

    def _claims(self, _: Arguments) -> tuple[ResourceClaim, ...]:
        return () if self.resource is None else (ResourceClaim(resource=self.resource, exclusive=True),)


@dataclass(slots=True)
class HangingTool:
    """Never ends by itself. `started` is set once it runs, `cancelled` tells that it was stopped."""

    name: str = "hang"
    timeout_s: float = 0.05
    started: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False

    @property
    def spec(self) -> ToolSpec:
        """The tool as the host sees it."""
        return ToolSpec(
            name=self.name,
            description="Wait for ever.",
            input_schema=dict(ANY_OBJECT),
            level=SafetyLevel.EXECUTE,
            handler=self._run,
            timeout_s=self.timeout_s,
        )

    async def _run(self, _: Arguments, /) -> ToolOutput:
        self.started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise AssertionError("nothing ever completes this future")


@dataclass(slots=True)
class CrashingTool:
    """Does its effect and then raises `error`, so that nobody can tell from outside how far it came."""

    error: BaseException
    name: str = "crash"
    effects: int = 0

    @property
    def spec(self) -> ToolSpec:
        """The tool as the host sees it."""
        return ToolSpec(
            name=self.name,
            description="Do half of it.",
            input_schema=dict(ANY_OBJECT),
            level=SafetyLevel.EXECUTE,
            handler=self._run,
        )

    async def _run(self, _: Arguments, /) -> ToolOutput:
        self.effects += 1
        raise self.error
