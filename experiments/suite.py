"""What is measured with: suites, their tasks, and the outcomes that only a task's own verifier gives."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from geode.llm.outline import Outline
from geode.tools.environment import LOCAL, Environment


class OutcomeKind(StrEnum):
    """PASS and FAIL are measurements; INVALID says that infrastructure failed and nothing was measured."""

    PASS = "PASS"  # noqa: S105  (not a password)
    FAIL = "FAIL"
    INVALID = "INVALID"


class Outcome(BaseModel):
    """What a task's own verifier says of an episode: the ground truth.

    `score` lies in [0, 1] for PASS and FAIL and is absent for INVALID. Reasons are short sentences for a person.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: OutcomeKind
    score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    reasons: tuple[str, ...] = ()


Verifier = Callable[[Path], Outcome]
"""Looks at the final workspace, and at nothing that the agent said."""


class VerifierBroke(Exception):  # noqa: N818  (named by what happened)
    """A verifier gave no outcome: nothing is known about the agent. `errno` is set if the system refused something."""

    def __init__(self, what: str, errno: int | None = None) -> None:
        super().__init__(what)
        self.errno = errno


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The data half of a task. `task_hash` covers the whole folder: prompt, fixtures, outline and verifier.

    `fixtures` is the folder whose content is the workspace at the start, `environment` where its tools execute, and
    `environment_file` the file that says so.
    """

    task_id: str
    family: str
    prompt: str
    fixtures: Path
    outline: Outline | None
    task_hash: str
    verify: Verifier
    environment: Environment = LOCAL
    environment_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named list of tasks."""

    name: str
    tasks: tuple[Task, ...]

    @property
    def families(self) -> tuple[str, ...]:
        """The families of the tasks, each once, in the order of the tasks."""
        return tuple(dict.fromkeys(task.family for task in self.tasks))
