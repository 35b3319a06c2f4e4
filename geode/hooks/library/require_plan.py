"""The hook that asks for a plan before the first change."""

import re
from typing import Annotated

from pydantic import Field

from geode.authority import SafetyLevel
from geode.hooks.library.memory import Memory, Remembering
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import Block, Decision, HookEvent, HookPoint, Pass, PromptSubmitted, ToolProposed

_STEP = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)


class RequirePlanOptions(HookOptions):
    """A plan has at least `steps` list items; without one, the changes of `rounds` rounds are refused for a prompt."""

    steps: Annotated[int, Field(ge=1, le=20)] = 2
    rounds: Annotated[int, Field(ge=1, le=5)] = 1


class _Memory(Memory):
    planned: bool = False
    refused_rounds: list[int] = Field(default_factory=list)


class RequirePlan(Remembering[_Memory]):
    """Blocks the first change of a prompt until the model wrote a list of steps beside one of its calls.

    It watches the text beside calls; a plan written in any round of the prompt counts. After the bound it lets changes
    through, for a model that cannot write text beside a call must not be stopped for good.
    Cost: one round for a prompt that begins to write without a plan.
    """

    name = "require_plan"
    points = frozenset({HookPoint.USER_PROMPT_SUBMIT, HookPoint.PRE_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = RequirePlanOptions

    def __init__(self, options: RequirePlanOptions) -> None:
        super().__init__(_Memory())
        self._options = options

    async def decide(self, event: HookEvent) -> Decision:
        """Look for a plan; block a change without one, for so many rounds."""
        match event:
            case PromptSubmitted():
                self.memory = _Memory()
            case ToolProposed() if not self.memory.planned:
                self.memory.planned = len(_STEP.findall(event.said)) >= self._options.steps
                if event.level is SafetyLevel.WRITE and not self.memory.planned and self._may_refuse(event.round):
                    return Block(
                        reason="no plan was written yet. Beside your next call, list the steps that the request needs,"
                        " one line each that begins with '- ', and then make the change."
                    )
            case _:
                pass
        return Pass()

    def _may_refuse(self, round_: int) -> bool:
        refused = self.memory.refused_rounds
        if round_ not in refused and len(refused) < self._options.rounds:
            refused.append(round_)
        return round_ in refused  # all changes of one round share its fate
