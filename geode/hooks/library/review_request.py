"""The hook that asks, before the end, to go through the request point by point."""

from typing import Annotated

from pydantic import Field

from geode.authority import SafetyLevel
from geode.hooks.library.memory import Memory, Remembering
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import Continue, Decision, HookEvent, HookPoint, Pass, PromptSubmitted, Stopping, ToolEnded


class ReviewRequestOptions(HookOptions):
    """So many characters of the request are quoted; 0 quotes nothing."""

    quoted_chars: Annotated[int, Field(ge=0, le=10_000)] = 2_000


class _Memory(Memory):
    request: str = ""
    has_acted: bool = False
    asked: bool = False


class ReviewRequest(Remembering[_Memory]):
    """Asks once, when the turn is about to end, to hold each point of the request against what was done.

    It watches the prompt, and whether a change was made or a command was run: a mere answer is not held up. It needs
    one of the scaffold's `stop_continuations`.
    Cost: at least one round for each prompt that acts.
    """

    name = "review_request"
    points = frozenset({HookPoint.USER_PROMPT_SUBMIT, HookPoint.POST_TOOL_USE, HookPoint.STOP})
    time_limit_s = TIME_LIMIT_S
    options_type = ReviewRequestOptions

    def __init__(self, options: ReviewRequestOptions) -> None:
        super().__init__(_Memory())
        self._quoted_chars = options.quoted_chars

    async def decide(self, event: HookEvent) -> Decision:
        """Keep the request, and ask at the end."""
        match event:
            case PromptSubmitted(text=text):
                self.memory = _Memory(request=text[: self._quoted_chars])
            case ToolEnded(level=level, is_error=False) if level > SafetyLevel.READ:
                self.memory.has_acted = True
            case Stopping(continuations_left=left) if left > 0 and self.memory.has_acted and not self.memory.asked:
                self.memory.asked = True
                request = f"\nThe request was:\n{self.memory.request}" if self.memory.request else ""
                return Continue(
                    instruction="Before you end, go through the request point by point. For each thing that it asks"
                    " for, name the call that did it. What is missing or only half done, do now; then answer again."
                    + request
                )
            case _:
                pass
        return Pass()
