"""What the agent is about: a small typed record, saved and restored with the checkpoint."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MAX_STEPS = 50
_CHECKLIST_LINE = re.compile(r"^[ \t]*(?:[-*]|\d{1,3}[.)])[ \t]+\[([ xX~-])\][ \t]+(.{1,300})$", re.MULTILINE)


class StepStatus(StrEnum):
    """Where a plan step stands."""

    OPEN = "open"
    DONE = "done"
    DROPPED = "dropped"


class PlanStep(BaseModel):
    """One step of the agent's own plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: str
    status: StepStatus = StepStatus.OPEN


class CognitiveState(BaseModel):
    """Goal, plan and last check of a session."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    goal: str = ""
    plan: Annotated[tuple[PlanStep, ...], Field(max_length=_MAX_STEPS)] = ()
    last_check: str = ""

    def with_text(self, text: str) -> "CognitiveState":
        """Return the state after the model wrote `text`: a checklist in it (`- [ ] step`, `- [x] step`) is the plan.

        A later list marks or extends the earlier one; steps that it does not name stay as they were.
        """
        found = {match[2].strip(): _status(match[1]) for match in _CHECKLIST_LINE.finditer(text) if match[2].strip()}
        if not found:
            return self
        steps = {step.text: step.status for step in self.plan} | found
        plan = tuple(PlanStep(text=step, status=status) for step, status in list(steps.items())[:_MAX_STEPS])
        return self.model_copy(update={"plan": plan})


def _status(mark: str) -> StepStatus:
    match mark:
        case "x" | "X":
            return StepStatus.DONE
        case "~" | "-":
            return StepStatus.DROPPED
        case _:
            return StepStatus.OPEN
