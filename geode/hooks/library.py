"""Hooks that come with GEODE, by name. Each is one small class; its texts are what the model reads."""

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from geode.authority import SafetyLevel
from geode.canonical import canonical_json
from geode.hooks.points import (
    Block,
    Decision,
    DecisionHook,
    HookEvent,
    HookPoint,
    Pass,
    Repair,
    ToolEnded,
    ToolProposed,
    TurnVerified,
)
from geode.scaffold import HookChoice

_TIME_LIMIT_S = 5.0


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression ({error})") from error
    return text


_Pattern = Annotated[str, AfterValidator(_is_pattern)]


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RequireTestRunOptions(_Options):
    """`commands` is searched in a shell command to tell whether it runs a test or a check."""

    commands: _Pattern = r"(?i)(\b|_)(py)?(test|check|verify|validate)s?(_|\b)"


class RequireTestRun:
    """Sends an answer back when files changed and no passing test or check was run since."""

    name = "require_test_run"
    points = frozenset({HookPoint.POST_TOOL_USE, HookPoint.POST_VERIFY})
    time_limit_s = _TIME_LIMIT_S
    options_type = RequireTestRunOptions

    def __init__(self, options: RequireTestRunOptions) -> None:
        self._runs_a_test = re.compile(options.commands)
        self._changed, self._failing = False, False

    async def decide(self, event: HookEvent) -> Decision:
        """Watch the tools, and object to an answer that no test backs."""
        match event:
            case ToolEnded(level=SafetyLevel.WRITE, is_error=False):
                self._changed = True
            case ToolEnded(level=SafetyLevel.EXECUTE) if self._runs_a_test.search(str(event.arguments.get("command"))):
                self._changed, self._failing = False, event.is_error
            case TurnVerified() if self._failing:
                return Repair(
                    instruction="The last test or check that you ran failed. Read its output, fix what it reports,"
                    " run the test or check command again, then answer."
                )
            case TurnVerified() if self._changed:
                return Repair(
                    instruction="You changed files and have not run the tests or checks since. Run the test or check"
                    " command, read its output, fix what it reports, then answer."
                )
            case _:
                pass
        return Pass()

    def snapshot(self) -> JsonValue:
        """See `DecisionHook`."""
        return {"changed": self._changed, "failing": self._failing}

    def restore(self, memory: JsonValue) -> None:
        """See `DecisionHook`."""
        if isinstance(memory, dict):
            self._changed, self._failing = bool(memory.get("changed")), bool(memory.get("failing"))


class ProtectTestsOptions(_Options):
    """`paths` is searched in a path to tell whether it is a test or a check."""

    paths: _Pattern = r"(?i)(^|/)(tests?/|test_[^/]*$|[^/]*_test\.\w+$|conftest\.py$|check[^/]*\.(sh|py|awk)$)"


class ProtectTests:
    """Blocks writing to tests and checks through the file tools."""

    name = "protect_tests"
    points = frozenset({HookPoint.PRE_TOOL_USE})
    time_limit_s = _TIME_LIMIT_S
    options_type = ProtectTestsOptions

    def __init__(self, options: ProtectTestsOptions) -> None:
        self._is_test = re.compile(options.paths)

    async def decide(self, event: HookEvent) -> Decision:
        """Block a write to a path that names a test."""
        match event:
            case ToolProposed(level=SafetyLevel.WRITE):
                path = event.arguments.get("path")
                if isinstance(path, str) and self._is_test.search(path):
                    return Block(
                        reason=f"{path} is a test or check file, and those are read-only here."
                        " Change the code under test instead."
                    )
            case _:
                pass
        return Pass()

    def snapshot(self) -> JsonValue:
        """See `DecisionHook`."""
        return None

    def restore(self, memory: JsonValue) -> None:
        """See `DecisionHook`."""


class StopRepeatsOptions(_Options):
    """A call may be made `allowed` times with one result, among the last `window` different calls."""

    allowed: Annotated[int, Field(ge=1, le=100)] = 2
    window: Annotated[int, Field(ge=1, le=256)] = 16


class StopRepeats:
    """Blocks a call that was already made with the same arguments and the same result, several times over."""

    name = "stop_repeats"
    points = frozenset({HookPoint.PRE_TOOL_USE, HookPoint.POST_TOOL_USE})
    time_limit_s = _TIME_LIMIT_S
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


class UnknownHook(ValueError):  # noqa: N818  (named by what is wrong)
    """A scaffold names a hook that is not registered, or gives it options that it does not take."""


HookFactory = Callable[[dict[str, JsonValue]], DecisionHook]
"""Builds a hook from the options in the scaffold; raises `ValueError` for options that it does not take."""


def _factory(kind: type[RequireTestRun] | type[ProtectTests] | type[StopRepeats]) -> HookFactory:
    def build(options: dict[str, JsonValue]) -> DecisionHook:
        return kind(kind.options_type.model_validate(options))  # type: ignore[arg-type]

    return build


LIBRARY: Mapping[str, HookFactory] = {kind.name: _factory(kind) for kind in (RequireTestRun, ProtectTests, StopRepeats)}


def build_hooks(choices: tuple[HookChoice, ...], registered: Mapping[str, HookFactory]) -> tuple[DecisionHook, ...]:
    """Build the hooks of a scaffold, in its order.

    Raises:
        UnknownHook: naming the hook, what is wrong with it, and what there is instead.
    """
    hooks = []
    for choice in choices:
        if choice.name not in registered:
            raise UnknownHook(f"no hook is named {choice.name!r}; there are {', '.join(sorted(registered))}")
        try:
            hooks.append(registered[choice.name](choice.options))
        except ValueError as error:
            problems = str(error)
            if isinstance(error, ValidationError):
                problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise UnknownHook(f"hook {choice.name!r} does not take these options ({problems})") from error
    return tuple(hooks)
