"""Judge engines by configuration: `configs/judge/NAME.yaml`, changed by words `key=value`, becomes an engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol, Self, assert_never

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from geode.clock import Clock
from geode.llm.admission import check_registered
from geode.llm.binding import ModelOptions
from geode.llm.opening import open_adapter
from geode.llm.routes import Route
from geode.llm.spending import NoPurse, Purse
from geode.redaction import Redactor
from judges.cascade import Band, Cascade, Stage
from judges.engine import JudgeEngine
from judges.independence import Independent
from judges.jev import open_jev
from judges.jev_answers import AbstainBelow
from judges.jev_wire import WAYS
from judges.llm import LLMJudge
from judges.panel import Panel, Rule
from judges.recorded import Record, Recorded
from judges.rules import Rules

JUDGES_GROUP: Final = "geode.judges"
_PREFIX = "judge."


class JudgeConfigError(ValueError):
    """A judge's configuration cannot be used. The text names the file or the word, the place and what to do."""


class _Choice(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RulesChoice(_Choice):
    """See `judges.rules`."""

    engine: Literal["rules"] = "rules"
    checks: dict[str, str] = {}


class RecordedChoice(_Choice):
    """See `judges.recorded`."""

    engine: Literal["recorded"] = "recorded"
    scorer: str = ""


class JevChoice(_Choice):
    """See `judges.jev`. Without a `model_id` it is the pinned one of the route, in the route's own spelling."""

    engine: Literal["jev"] = "jev"
    route: Literal["openrouter", "typesafe"]
    model_id: str = ""
    abstain_below: AbstainBelow = AbstainBelow()
    allow_moving: bool = False

    @property
    def model(self) -> str:
        """The model as `route/id`."""
        return f"{self.route}/{self.model_id}" if self.model_id else WAYS[Route(self.route)].model


class LLMChoice(_Choice):
    """See `judges.llm`. `model` is `route/id`; `allow_same_family` lifts the guard of `judges.independence`."""

    engine: Literal["llm"] = "llm"
    model: str | None = None
    options: ModelOptions = ModelOptions()
    input_tokens_max: Annotated[int, Field(ge=1_000)] | None = None
    leave_out_middle: bool = False
    allow_same_family: bool = False
    allow_moving: bool = False

    @model_validator(mode="after")
    def _names_a_model(self) -> Self:
        if not self.model:
            raise ValueError("it names no model; name one with --model route/id, see geode models ls")
        return self


class PackageChoice(_Choice):
    """An engine of an installed package: `name` in the entry-point group `geode.judges`, see `EngineFactory`."""

    engine: Literal["package"] = "package"
    name: str
    options: dict[str, JsonValue] = {}
    allow_same_family: bool = False


_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class CascadeChoice(_Choice):
    """See `judges.cascade`. Stages by name in their order; `escalate` has the band of certainty of a stage."""

    engine: Literal["cascade"] = "cascade"
    stages: Annotated[dict[_Name, "PartChoice"], Field(min_length=1)]
    escalate: dict[str, Band] = {}

    @model_validator(mode="after")
    def _bands_are_of_stages(self) -> Self:
        *before_last, _ = self.stages
        if stray := sorted(set(self.escalate) - set(before_last)):
            raise ValueError(f"{stray[0]!r} is no stage with another one behind it; there are {', '.join(before_last)}")
        return self

    @property
    def allow_same_family(self) -> bool:
        """Whether the guard is lifted for any stage."""
        return any(map(lifts_guard, self.stages.values()))


class PanelChoice(_Choice):
    """See `judges.panel`."""

    engine: Literal["panel"] = "panel"
    members: Annotated[dict[_Name, "PartChoice"], Field(min_length=2)]
    quorum: Annotated[int, Field(ge=1)] | None = None
    spread_max: Annotated[float, Field(ge=0, le=1)] = 0.25

    @model_validator(mode="after")
    def _has_a_quorum(self) -> Self:
        if self.quorum is not None and self.quorum > len(self.members):
            raise ValueError(f"the quorum {self.quorum} is more than the {len(self.members)} members")
        return self

    @property
    def allow_same_family(self) -> bool:
        """Whether the guard is lifted for any member."""
        return any(map(lifts_guard, self.members.values()))


PartChoice = Annotated[
    RulesChoice | JevChoice | LLMChoice | PackageChoice | CascadeChoice | PanelChoice, Field(discriminator="engine")
]
EngineChoice = Annotated[
    RulesChoice | RecordedChoice | JevChoice | LLMChoice | PackageChoice | CascadeChoice | PanelChoice,
    Field(discriminator="engine"),
]
CascadeChoice.model_rebuild()
PanelChoice.model_rebuild()
_CHOICE: TypeAdapter[EngineChoice] = TypeAdapter(EngineChoice)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """What engines are made of; whoever opens one gives what there is.

    `environment` is that of the settings: keys and addresses of models come from it. `records` are those of foreign
    logs by the name of the episode, for the engine `recorded`.
    """

    clock: Clock
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    purse: Purse = field(default_factory=NoPurse)
    redactor: Redactor = field(default_factory=Redactor)
    records: Mapping[str, Record] = field(default_factory=dict)


class EngineFactory(Protocol):
    """What a package offers in the entry-point group `geode.judges`. It is called once for each command.

    It may raise `ValueError` for options that it cannot use, with a text for the user. What it returns keeps the
    contract of `JudgeEngine`; its `models` are held against those of the targets.
    """

    def __call__(self, options: Mapping[str, JsonValue], parts: EngineParts) -> JudgeEngine:
        """Return the engine."""
        ...


def read_choice(folder: Path, name: str, words: Sequence[str] = ()) -> EngineChoice:
    """Read the engine `name` from `folder`, and change it by `words`: `key=value` with the value as YAML.

    Without a file of that name it is the engine of an installed package.

    Raises:
        JudgeConfigError: if there is none of that name, or it cannot be used.
    """
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    installed = sorted(point.name for point in entry_points(group=JUDGES_GROUP))
    if name not in {*names, *installed}:
        raise JudgeConfigError(f"there is no judge {name!r}; there are {', '.join([*names, *installed])}")
    if name in names:
        return choice_of(name, _read_body(folder / f"{name}.yaml"), words)
    return choice_of(name, {"engine": "package", "name": name}, words)


def _read_body(path: Path) -> dict[str, JsonValue]:
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise JudgeConfigError(f"{path} cannot be read as YAML ({error})") from error
    if not isinstance(body, dict):
        raise JudgeConfigError(f"{path} holds no mapping; it begins with a line such as engine: rules")
    return body


def choice_of(name: str, body: dict[str, JsonValue], words: Sequence[str] = ()) -> EngineChoice:
    """Validate a configuration, changed by `words`. `name` is what the errors call it.

    Raises:
        JudgeConfigError: if it cannot be used.
    """
    for word in words:
        _set(body, word)
    try:
        return _CHOICE.validate_python(body)
    except ValidationError as error:
        detail = error.errors()[0]
        place = ".".join(map(str, detail["loc"][1:] or detail["loc"])) or "engine"
        raise JudgeConfigError(f"the judge {name!r}: {place}: {detail['msg']}; got {detail['input']!r:.80}") from error


def model_words(engine: str, model: str) -> Sequence[str]:
    """Return the words that make `route/id` the model of an engine; `jev` takes its route and its id apart."""
    if engine != "jev":
        return [f"model={model}"]
    route, _, model_id = model.partition("/")
    return [f"route={route}", f"model_id={model_id}"]


def _set(body: dict[str, JsonValue], word: str) -> None:
    key, equals, text = word.partition("=")
    *path, last = key.removeprefix(_PREFIX).split(".")
    if not equals or not last:
        raise JudgeConfigError(f"{word!r} is no setting of a judge; write key=value, as in checks.care=loops")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise JudgeConfigError(f"the value of {word!r} cannot be read as YAML ({error})") from error
    for part in path:
        inner = body.setdefault(part, {})
        if not isinstance(inner, dict):
            raise JudgeConfigError(f"{word!r}: {part!r} holds {inner!r}, and has nothing in it that could be set")
        body = inner
    body[last] = value


def open_engine(choice: EngineChoice, parts: EngineParts) -> JudgeEngine:
    """Return the engine that `choice` describes, with the guard of `judges.independence` around one that asks models.

    Raises:
        JudgeConfigError, RubricRefused, ConfigurationError: if it cannot be used as configured; nothing was asked.
    """
    engine = _open(choice, parts)
    return Independent(engine, allow_same_family=lifts_guard(choice)) if engine.models else engine


def lifts_guard(choice: EngineChoice) -> bool:
    """Return whether an engine may judge models of its own family."""
    match choice:
        case RulesChoice() | RecordedChoice() | JevChoice():
            return False
        case LLMChoice() | PackageChoice() | CascadeChoice() | PanelChoice():
            return choice.allow_same_family
    assert_never(choice)


def _open(choice: EngineChoice, parts: EngineParts) -> JudgeEngine:
    match choice:
        case RulesChoice():
            return Rules(parts.clock, choice.checks)
        case RecordedChoice():
            return Recorded(parts.clock, parts.records)
        case JevChoice():
            return open_jev(
                choice.model,
                parts.environment,
                parts.clock,
                abstain_below=choice.abstain_below,
                purse=parts.purse,
                redactor=parts.redactor,
                allow_moving=choice.allow_moving,
            )
        case LLMChoice():
            return _open_llm(choice, parts)
        case PackageChoice():
            return _open_package(choice, parts)
        case CascadeChoice():
            stages = [
                Stage(name=name, engine=_open(stage, parts), escalate=choice.escalate.get(name))
                for name, stage in choice.stages.items()
            ]
            return Cascade(stages, parts.clock)
        case PanelChoice():
            members = {name: _open(member, parts) for name, member in choice.members.items()}
            return Panel(members, parts.clock, Rule(quorum=choice.quorum, spread_max=choice.spread_max))
    assert_never(choice)


def _open_llm(choice: LLMChoice, parts: EngineParts) -> JudgeEngine:
    assert choice.model  # a choice without one is refused
    check_registered(choice.model, allow_moving=choice.allow_moving)
    adapter = open_adapter(
        choice.model, parts.environment, options=choice.options, purse=parts.purse, redactor=parts.redactor
    )
    return LLMJudge(
        adapter,
        parts.clock,
        options=choice.options,
        input_tokens_max=choice.input_tokens_max,
        leave_out_middle=choice.leave_out_middle,
    )


def _open_package(choice: PackageChoice, parts: EngineParts) -> JudgeEngine:
    points = entry_points(group=JUDGES_GROUP, name=choice.name)
    if not points:
        known = ", ".join(sorted(point.name for point in entry_points(group=JUDGES_GROUP))) or "none"
        raise JudgeConfigError(f"no installed package has the judge {choice.name!r}; there are {known}")
    (point, *_) = points
    try:
        factory: EngineFactory = point.load()
        return factory(choice.options, parts)
    except Exception as error:  # whatever foreign code raises is that package's fault, and is named so
        raise JudgeConfigError(
            f"the judge {choice.name!r} of {point.value} cannot be opened ({type(error).__name__}: {error})"
        ) from error
