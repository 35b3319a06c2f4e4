"""The hook that keeps a huge result from filling the context."""

from typing import Annotated

from pydantic import Field, JsonValue

from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import Decision, HookEvent, HookPoint, Pass, ToolEnded, Withhold

_ADVICE = {
    "read_file": "Search the file for what you need, then read a part of it with start_line and line_count.",
    "search": "Search again with a narrower pattern, path or glob.",
    "list_files": "List a folder further down.",
    "shell": "Run the command again with its output cut to what you need, with grep, head or tail.",
}


class TrimResultsOptions(HookOptions):
    """A result of more than `chars` is cut to its first and last `shown_chars` each."""

    chars: Annotated[int, Field(ge=100, le=30_000)] = 8_000
    shown_chars: Annotated[int, Field(ge=0, le=10_000)] = 1_500


class TrimResults:
    """Withholds a result past a size, shows its beginning and end in its place, and says how to ask for less.

    It watches results, and remembers nothing. The cut is at line ends where there are some.
    Cost: one more call where the middle was needed.
    """

    name = "trim_results"
    points = frozenset({HookPoint.POST_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = TrimResultsOptions

    def __init__(self, options: TrimResultsOptions) -> None:
        self._options = options

    async def decide(self, event: HookEvent) -> Decision:
        """Withhold what is too large."""
        if not isinstance(event, ToolEnded) or len(event.text) <= self._options.chars:
            return Pass()
        # The two parts never overlap: a small limit with a large part would otherwise show more than came.
        part = min(self._options.shown_chars, self._options.chars // 2)
        head = event.text[:part].rsplit("\n", 1)[0]
        tail = event.text[len(event.text) - part :].split("\n", 1)[-1]
        left_out = len(event.text) - len(head) - len(tail)
        advice = _ADVICE.get(event.tool, "Ask for less at once.")
        return Withhold(
            reason=f"{len(event.text)} characters are more than fits at once, and {left_out} of them were left out"
            f" where it says [...]. {advice}\n{head}\n[...]\n{tail}"
        )

    def snapshot(self) -> JsonValue:
        """See `DecisionHook`."""
        return None

    def restore(self, memory: JsonValue) -> None:
        """See `DecisionHook`."""
