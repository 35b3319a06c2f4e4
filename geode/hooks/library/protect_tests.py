"""The hook that keeps the tests as they are."""

import re

from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions, Pattern
from geode.hooks.points import Block, Decision, HookEvent, HookPoint, Pass, ToolProposed


class ProtectTestsOptions(HookOptions):
    """`paths` is searched in a path to tell whether it is a test or a check."""

    paths: Pattern = r"(?i)(^|/)(tests?/|test_[^/]*$|[^/]*_test\.\w+$|conftest\.py$|check[^/]*\.(sh|py|awk)$)"


class ProtectTests:
    """Blocks writing to tests and checks through the file tools."""

    name = "protect_tests"
    points = frozenset({HookPoint.PRE_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
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
