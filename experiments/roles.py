"""Roles: who plays what in an episode. Each is bound to a route and an exact model id, written `route/id`."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from geode.llm.binding import ModelOptions

MODEL_FORM = r"^[^/\s]+/\S+$"


class Role(StrEnum):
    """The parts that models play."""

    TARGET = "target"
    AUDITOR = "auditor"
    JUDGE = "judge"
    MUTATOR = "mutator"


class RoleBinding(ModelOptions):
    """The model that plays a role, written `route/id`, and how it is asked."""

    model: Annotated[str, Field(pattern=MODEL_FORM)]

    @property
    def options(self) -> ModelOptions:
        """How the model is asked."""
        return ModelOptions(**self.model_dump(exclude={"model"}))


_Bound = Annotated[RoleBinding, BeforeValidator(lambda value: {"model": value} if isinstance(value, str) else value)]


class Roles(BaseModel):
    """Who plays what; a role that is null is not played. `role.target=route/id` is short for `role.target.model=...`.

    `role/auditor` and `role/judge` are groups; without a choice, `+role.judge=route/id` binds the role.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: _Bound
    auditor: _Bound | None = None
    judge: _Bound | None = None

    def models(self) -> dict[str, str]:
        """Return the model of each role that is played, by the role's name. They are part of every `episode_key`."""
        bound: dict[str, RoleBinding | None] = dict(self)
        return {role: binding.model for role, binding in bound.items() if binding is not None}

    def options(self) -> dict[str, ModelOptions]:
        """Return how the models of roles are asked, of those for which anything is set."""
        bound: dict[str, RoleBinding | None] = dict(self)
        asked = {role: binding.options for role, binding in bound.items() if binding is not None}
        return {role: options for role, options in asked.items() if options != ModelOptions()}
