"""The hook that lets no change go untested."""

import re

from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.hooks.library.options import TEST_COMMANDS, TIME_LIMIT_S, HookOptions, Pattern
from geode.hooks.points import Decision, HookEvent, HookPoint, Pass, Repair, ToolEnded, TurnVerified


class RequireTestRunOptions(HookOptions):
    """`commands` is searched in a shell command to tell whether it runs a test or a check."""

    commands: Pattern = TEST_COMMANDS


class RequireTestRun:
    """Sends an answer back when files changed and no passing test or check was run since."""

    name = "require_test_run"
    points = frozenset({HookPoint.POST_TOOL_USE, HookPoint.POST_VERIFY})
    time_limit_s = TIME_LIMIT_S
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
