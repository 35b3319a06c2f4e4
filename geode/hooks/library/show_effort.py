"""The hook that tells the model how much it has used."""

from typing import Annotated

from pydantic import Field

from geode.hooks.library.memory import Memory, Remembering
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import AddContext, Decision, HookEvent, HookPoint, Pass, PromptSubmitted, ToolEnded


class ShowEffortOptions(HookOptions):
    """It speaks in every `every_rounds`th round with calls, and in each from `last_rounds` before the limit on."""

    every_rounds: Annotated[int, Field(ge=1, le=1_000)] = 8
    last_rounds: Annotated[int, Field(ge=0, le=100)] = 4


class _Memory(Memory):
    round: int = 0
    rounds: int = 0
    calls: int = 0
    errors: int = 0
    told_round: int = 0


class ShowEffort(Remembering[_Memory]):
    """Says beside a result how many rounds and calls this prompt has used, and how many rounds are left.

    It watches calls that ran; refused ones it does not see. It knows no clock and no price.
    Cost: one short text every few rounds.
    """

    name = "show_effort"
    points = frozenset({HookPoint.USER_PROMPT_SUBMIT, HookPoint.POST_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = ShowEffortOptions

    def __init__(self, options: ShowEffortOptions) -> None:
        super().__init__(_Memory())
        self._options = options

    async def decide(self, event: HookEvent) -> Decision:
        """Count, and speak once in a round if it is time."""
        match event:
            case PromptSubmitted():
                self.memory = _Memory()
            case ToolEnded():
                seen = self.memory
                seen.calls += 1
                seen.errors += event.is_error
                if event.round != seen.round:
                    seen.round, seen.rounds = event.round, seen.rounds + 1
                if seen.told_round != event.round and (text := self._due(event.rounds_left)):
                    seen.told_round = event.round
                    return AddContext(text=text)
            case _:
                pass
        return Pass()

    def _due(self, left: int | None) -> str:
        seen = self.memory
        text = (
            f"So far this request took {seen.rounds} rounds and {seen.calls} calls ({seen.errors} ended in an error)."
        )
        if left is not None and left <= self._options.last_rounds:
            return f"{text} Only {left} rounds are left: finish what you began, make sure that it works, and answer."
        if seen.rounds % self._options.every_rounds == 0:
            return text if left is None else f"{text} {left} rounds are left."
        return ""
