"""The frozen tool plan: only what is bound here is seen by the model and can be dispatched."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType

from geode.canonical import content_hash
from geode.llm.messages import ToolSchema
from geode.scaffold import ToolChoice, ToolPlan
from geode.tools.schema import BadSchema, compiled
from geode.tools.spec import ToolSpec

# What every provider takes as a tool's name.
_PORTABLE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NEAR_ENOUGH = 0.5


class UnboundTool(ValueError):  # noqa: N818  (it names the tool's state)
    """A tool plan names a tool that cannot be bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundToolPlan:
    """An immutable snapshot of a session's tools.

    `specs` and `schemas` are in the model's order and hold one copy of each input schema, so that what is shown is
    what is checked. `plan_hash` names the content; `generation` counts the plans of a session.
    """

    generation: int
    specs: Mapping[str, ToolSpec]
    schemas: tuple[ToolSchema, ...]
    plan_hash: str

    def get(self, name: str) -> ToolSpec | None:
        """The tool with exactly this name, if it is bound."""
        return self.specs.get(name)

    def nearest(self, name: str) -> str | None:
        """The bound name most like `name`, for an error that helps; it is never dispatched in its place."""
        return _nearest(name, self.specs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTools:
    """Tools from outside (of MCP servers), as they are now. Whoever offers others later counts the generation up."""

    specs: tuple[ToolSpec, ...] = ()
    generation: int = 1


NO_EXTRA_TOOLS = ExtraTools()


def bind(plan: ToolPlan, available: Mapping[str, ToolSpec], extra: ExtraTools = NO_EXTRA_TOOLS) -> BoundToolPlan:
    """Freeze the tools that `plan` names, out of those that are `available` (by name), and behind them `extra` ones.

    Raises:
        UnboundTool: for a name that is not available, that is taken or that a provider would refuse, and for a schema
            that cannot be used.
    """
    specs: dict[str, ToolSpec] = {}
    schemas: list[ToolSchema] = []
    content: list[list[str | int]] = []
    if taken := [spec.name for spec in extra.specs if spec.name in available]:
        raise UnboundTool(f"{taken[0]!r} is a tool of our own; another one may not have its name")
    for chosen in (*(_chosen(choice, available) for choice in plan.tools), *extra.specs):
        spec, text = _bindable(chosen)
        if spec.name in specs:
            raise UnboundTool(f"two tools are named {spec.name!r}")
        schema = ToolSchema(name=spec.name, description=spec.description, input_schema=spec.input_schema)
        specs[spec.name] = spec
        schemas.append(schema)
        # The schema goes in as text: the order of its properties is a part of what the model sees.
        content.append([spec.name, spec.description, text, int(spec.level), int(spec.data_class)])
    return BoundToolPlan(
        generation=extra.generation,
        specs=MappingProxyType(specs),
        schemas=tuple(schemas),
        plan_hash=content_hash(content),
    )


def _chosen(choice: ToolChoice, available: Mapping[str, ToolSpec]) -> ToolSpec:
    spec = available.get(choice.name)
    if spec is None:
        near = _nearest(choice.name, available)
        advice = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(available)) or 'none'}"
        raise UnboundTool(f"the tool plan names {choice.name!r}, which is not available: {advice}")
    if spec.name != choice.name:
        raise UnboundTool(
            f"the tool {choice.name!r} calls itself {spec.name!r}; its name is the one it is offered under"
        )
    description = spec.description if choice.description is None else choice.description
    if choice.hint:
        description = f"{description}\n\n{choice.hint}"
    return replace(spec, description=description)


def _bindable(spec: ToolSpec) -> tuple[ToolSpec, str]:
    if not _PORTABLE_NAME.fullmatch(spec.name):
        raise UnboundTool(f"the tool {spec.name!r} cannot be offered: a name has 1 to 64 of a-z, A-Z, 0-9, '_' and '-'")
    try:
        checked = compiled(spec.input_schema)
    except BadSchema as error:
        raise UnboundTool(f"the input schema of the tool {spec.name!r} cannot be used: {error}") from error
    return replace(spec, input_schema=checked.schema), checked.text


def _nearest(name: str, names: Mapping[str, ToolSpec]) -> str | None:
    near = get_close_matches(name[:64], names, n=1, cutoff=_NEAR_ENOUGH)
    return near[0] if near else None
