"""A task's outline: the steps that a competent worker takes.

It reaches the apprentice through `create_session`, never through the prompt.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OutlineCall(_Part):
    """A tool call as the outline writes it: the arguments are those of the tool's own schema."""

    tool: str
    arguments: dict[str, JsonValue]


class OutlineStep(_Part):
    """One step.

    `inspect` looks, `change` alters the workspace, `check` runs what tells whether the change is right. `wrong` are
    plausible mistakes in place of a `change` (another file, a test instead of the source, an off-by-one edit).
    `passes_when` is text that a `check`'s result holds exactly when all is well; a result without it is a failure.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    kind: Literal["inspect", "change", "check"]
    call: OutlineCall
    wrong: tuple[OutlineCall, ...] = ()
    passes_when: str | None = None


class Outline(_Part):
    """The steps in order and the closing answer."""

    steps: Annotated[tuple[OutlineStep, ...], Field(min_length=1)]
    answer: str
