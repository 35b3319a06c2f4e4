"""What one cell is to be, validated: the far side of the configuration. Nothing here knows Hydra."""

import json
import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from experiments.completion_choice import CompletionChoice, completion_check
from experiments.overrides import nearest
from experiments.records import Caps, VariantName
from experiments.roles import MODEL_FORM, Roles
from geode.llm.binding import ModelOptions
from geode.llm.errors import ConfigurationError
from geode.loop.prompt import read_rules_folder, read_sections
from geode.scaffold import (
    CompletionCheck,
    HookChoice,
    LoopLimits,
    Name,
    PromptSource,
    RepairBudget,
    Scaffold,
    SubAgentContract,
    ToolChoice,
    ToolPlan,
)
from geode.tools.sandbox import SandboxChoice, SandboxUse

ExperimentName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
_SHOWN_CHARS_MAX = 200
_RESERVED_KEYS = frozenset({"_target_", "_recursive_", "_partial_", "_args_", "_convert_"})


class _Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InlineText(_Node):
    """A prompt source whose text stands in the configuration."""

    kind: Literal["inline"]
    text: str


class FileSections(_Node):
    """A prompt source that is some sections of a Markdown file."""

    kind: Literal["file_sections"]
    path: Annotated[str, Field(min_length=1)]
    sections: tuple[str, ...] = ()


class RulesFolder(_Node):
    """Prompt sources that are the files of a folder."""

    kind: Literal["rules_folder"]
    path: Annotated[str, Field(min_length=1)]


PromptEntry = Annotated[InlineText | FileSections | RulesFolder, Field(discriminator="kind")]


class PromptTree(_Node):
    """The system prompt: sources by name, in their order. A source that is null is left out."""

    sources: dict[str, PromptEntry | None] = {}


class ScaffoldTree(_Node):
    """What belongs to the scaffold and to no other group."""

    decomposition: str = ""


class ToolEntry(_Node):
    """What a tool's own description is replaced with or extended by."""

    description: str | None = None
    hint: str | None = None


class SubAgentEntry(_Node):
    """What a sub-agent may use: some of the scaffold's own tools, within limits of its own."""

    tools: Annotated[tuple[Name, ...], Field(min_length=1)]
    limits: LoopLimits = LoopLimits()


class SuiteChoice(_Node):
    """A suite by name, and which of its tasks; null means all of them. `sandbox` is for tasks that declare none."""

    name: str
    tasks: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    sandbox: SandboxChoice = SandboxUse.AUTO


class GateChoice(_Node):
    """The rule that reads the paired evidence. It is part of the ruler."""

    rule: Literal["paired_fixed"] = "paired_fixed"
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95


class TrackingChoice(_Node):
    """The sinks that take finished cells, by name."""

    sinks: tuple[str, ...] = ()


class LocalExecutor(_Node):
    """Episodes run in the process of the command, so many of them side by side."""

    name: Literal["local"] = "local"
    concurrency: Annotated[int, Field(ge=1, le=256)] = 1


class WorkerExecutor(_Node):
    """Episodes run in processes of their own; null is one for each core."""

    name: Literal["workers"]
    workers: Annotated[int, Field(ge=1, le=256)] | None = None


ExecutorChoice = Annotated[LocalExecutor | WorkerExecutor, Field(discriminator="name")]


class BudgetChoice(_Node):
    """What one command may spend at the most; null is no cap. It is part of neither the scaffold nor the ruler."""

    cost_usd: Annotated[float, Field(ge=0)] | None = None
    calls: Annotated[int, Field(ge=1)] | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None


class ConfigTree(_Node):
    """The composed configuration, key by key as the files under `configs/` hold it."""

    name: ExperimentName | None = None
    question: Annotated[str, Field(max_length=2_000)] = ""
    baseline: VariantName | None = None
    variants: dict[VariantName, tuple[str, ...]] = {}
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(min_length=1)] = (0,)
    repeats: Annotated[int, Field(ge=1, le=100_000)]
    scaffold: ScaffoldTree = ScaffoldTree()
    prompt: PromptTree = PromptTree()
    hooks: dict[Name, dict[str, JsonValue] | None] = {}
    repair: RepairBudget = RepairBudget()
    completion: CompletionChoice = CompletionChoice()
    tools: dict[Name, ToolEntry | None]
    sub_agents: dict[Name, SubAgentEntry | None] = {}
    limits: LoopLimits = LoopLimits()
    role: Roles
    suite: SuiteChoice
    caps: Caps = Caps()
    gate: GateChoice = GateChoice()
    tracking: TrackingChoice = TrackingChoice()
    executor: ExecutorChoice = LocalExecutor()
    budget: BudgetChoice = BudgetChoice()
    allow_moving_models: bool = False
    damaged: Literal["refuse", "set_aside"] = "refuse"
    invalid: Literal["keep", "rerun"] = "keep"


class RunSpec(_Node):
    """One cell: a scaffold with its roles, on a suite, with seeds, repeats and caps; and how it is run and recorded."""

    name: ExperimentName | None
    question: str
    baseline: VariantName | None
    variants: dict[VariantName, tuple[str, ...]]
    scaffold: Scaffold
    roles: dict[str, str]
    options: dict[str, ModelOptions]
    suite: SuiteChoice
    seeds: tuple[int, ...]
    repeats: int
    caps: Caps
    gate: GateChoice
    sinks: tuple[str, ...]
    executor: ExecutorChoice
    budget: BudgetChoice
    allow_moving_models: bool
    damaged: Literal["refuse", "set_aside"]
    invalid: Literal["keep", "rerun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a configuration: where, and what to do."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class InvalidSpec(ValueError):  # noqa: N818  (named by what is wrong)
    """A configuration that is refused, with every problem that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("invalid configuration:\n" + "\n".join(f"  {problem}" for problem in problems))
        self.problems = tuple(problems)


def build_run_spec(tree: Mapping[str, JsonValue], roots: Sequence[Path], preset: str | None = None) -> RunSpec:
    """Validate a composed configuration. Relative paths of prompt sources are looked for under `roots`, in order.

    `preset` is the name of the experiment if the configuration does not give another.

    Raises:
        InvalidSpec: with every problem of the first kind that is found.
    """
    if problems := list(_reserved(tree, ())):
        raise InvalidSpec(problems)
    try:
        # JSON mode is strict about types (true is no number) and takes lists for tuples.
        config = ConfigTree.model_validate_json(json.dumps(tree), strict=True)
    except ValidationError as error:
        details = error.errors()
        # A list with a wrong item counts as too short besides; the item is what is to be mended.
        items = {detail["loc"][:-1] for detail in details}
        told = [detail for detail in details if not (detail["type"] == "too_short" and detail["loc"] in items)]
        raise InvalidSpec([_explain(detail, tree) for detail in told]) from error
    for path, values in (("seeds", config.seeds), ("suite.tasks", config.suite.tasks or ())):
        if twice := [value for value in values if values.count(value) > 1]:
            raise InvalidSpec([Problem(path=path, text=f"{twice[0]!r} is named more than once; name it once")])
    try:
        scaffold = _scaffold(config, roots)
    except ValidationError as error:
        detail = error.errors()[0]
        raise InvalidSpec(
            [Problem(path="sub_agents", text=str(detail.get("ctx", {}).get("error", detail["msg"])))]
        ) from error
    return RunSpec(
        name=config.name or (preset.replace("/", ".") if preset else None),
        question=config.question,
        baseline=config.baseline,
        variants=config.variants,
        scaffold=scaffold,
        roles=config.role.models(),
        options=config.role.options(),
        suite=config.suite,
        seeds=config.seeds,
        repeats=config.repeats,
        caps=config.caps,
        gate=config.gate,
        sinks=config.tracking.sinks,
        executor=config.executor,
        budget=config.budget,
        allow_moving_models=config.allow_moving_models,
        damaged=config.damaged,
        invalid=config.invalid,
    )


def _scaffold(config: ConfigTree, roots: Sequence[Path]) -> Scaffold:
    """Map the choices onto the content that is hashed; the choices' names are no part of it."""
    prompt: list[PromptSource] = []
    for name, entry in config.prompt.sources.items():
        if entry is not None:
            prompt += _read_prompt(name, entry, roots)
    return Scaffold(
        prompt=tuple(prompt),
        hooks=tuple(HookChoice(name=name, options=options or {}) for name, options in config.hooks.items()),
        tools=ToolPlan(
            tools=tuple(
                ToolChoice(name=name, description=entry.description, hint=entry.hint)
                for name, entry in config.tools.items()
                if entry is not None
            )
        ),
        decomposition=config.scaffold.decomposition,
        repair=config.repair,
        completion=_completion(config),
        sub_agents=tuple(
            SubAgentContract(name=name, tools=entry.tools, limits=entry.limits)
            for name, entry in config.sub_agents.items()
            if entry is not None
        ),
        limits=config.limits,
    )


def _completion(config: ConfigTree) -> CompletionCheck | None:
    judge = config.role.judge
    try:
        return completion_check(config.completion, None if judge is None else judge.model)
    except (ValueError, ConfigurationError) as error:
        raise InvalidSpec([Problem(path="completion", text=str(error))]) from error


def _read_prompt(
    name: str, entry: InlineText | FileSections | RulesFolder, roots: Sequence[Path]
) -> tuple[PromptSource, ...]:
    where = f"prompt.sources.{name}"
    try:
        match entry:
            case InlineText():
                return (PromptSource(text=entry.text),)
            case FileSections():
                return (read_sections(_resolve(entry.path, roots), entry.sections),)
            case RulesFolder():
                return read_rules_folder(_resolve(entry.path, roots))
    except (OSError, ValueError) as error:
        raise InvalidSpec([Problem(path=where, text=str(error))]) from error


def _resolve(path: str, roots: Sequence[Path]) -> Path:
    candidates = [root / Path(path).expanduser() for root in roots]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise FileNotFoundError(f"{path!r} does not exist; looked for {', '.join(dict.fromkeys(map(str, candidates)))}")


def _reserved(value: JsonValue | Mapping[str, JsonValue], path: tuple[str, ...]) -> Iterator[Problem]:
    """Find what no configuration may hold: names of code to be called, and numbers that JSON does not have."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in _RESERVED_KEYS:
                text = f"{key} is refused: configuration names registered parts, it never calls code"
                yield Problem(path=".".join((*path, str(key))), text=text)
            yield from _reserved(item, (*path, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _reserved(item, (*path, str(index)))
    elif isinstance(value, float) and not math.isfinite(value):
        yield Problem(path=".".join(path), text=f"{value} is not a finite number")


def _explain(detail: ErrorDetails, tree: Mapping[str, JsonValue]) -> Problem:
    """Turn one error of pydantic into the config path, the value, and what would be right."""
    path = _path_in(tree, detail["loc"])
    text = detail["msg"][0].lower() + detail["msg"][1:]
    match detail["type"]:
        case "extra_forbidden":
            return Problem(path=".".join(path), text=f"there is no such key{nearest(path[-1], _fields_at(path[:-1]))}")
        case "missing":
            return Problem(path=".".join(path), text="this key is missing and has no default")
        case "string_type" if isinstance(detail["input"], int | float):
            text += f"; quote it to keep it as text: {path[-1]}=\"'{detail['input']}'\""
        case "string_pattern_mismatch" if detail["ctx"]["pattern"] == MODEL_FORM:
            text = "write route/id, such as 'simulated/apprentice'"
        case "string_pattern_mismatch":
            text = "write letters A to Z, digits and _ . - only, 80 at the most, beginning with a letter or a digit"
        case "tuple_type":
            text = f"write a list: {path[-1]}=[...]"
        case "too_short":
            text = "name at least one"
        case "model_type" | "model_attributes_type":
            text = f"set its keys one by one: {', '.join('.'.join((*path, key)) for key in _fields_at(path))}"
        case "union_tag_not_found" | "union_tag_invalid" if path[0] == "executor":
            text = "choose executor=local or executor=workers"
        case "union_tag_not_found" | "union_tag_invalid":
            text = "give it a kind: inline, file_sections or rules_folder"
        case "literal_error":
            text += nearest(str(detail["input"]), detail["ctx"]["expected"].replace("'", "").split(" or "))
    value = repr(detail["input"])
    shown = value if len(value) <= _SHOWN_CHARS_MAX else f"{value[:_SHOWN_CHARS_MAX]}... ({len(value)} characters)"
    return Problem(path=".".join(path), text=f"{shown} is refused: {text}")


def _path_in(tree: Mapping[str, JsonValue], loc: Sequence[int | str]) -> tuple[str, ...]:
    """Drop from `loc` what pydantic adds and the configuration does not hold: the tags of unions."""
    if loc[0] == "executor":
        loc = (loc[0], *loc[2:])  # the tag `workers` is also a key
    path: list[str] = []
    node: JsonValue | Mapping[str, JsonValue] = tree
    for position, part in enumerate(loc):
        if isinstance(node, Mapping) and part in node:
            node = node[str(part)]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        elif position < len(loc) - 1 or part == "[key]":
            continue
        path.append(str(part))
    return tuple(path) or ("config",)


def _fields_at(path: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that the configuration knows under `path`."""
    model: type[BaseModel] = ConfigTree
    for part in path:
        field = model.model_fields.get(part)
        inner = next(_models_in(field.annotation), None) if field is not None else None
        if inner is None:
            # A mapping by free names, such as `tools` or `prompt.sources`: its values are of one model.
            continue
        model = inner
    return tuple(model.model_fields)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for argument in typing.get_args(annotation):
        yield from _models_in(argument)
