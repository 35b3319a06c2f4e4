"""Judge engines by configuration: `configs/judge/NAME.yaml`, changed by words `key=value`, becomes an engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, assert_never

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from geode.clock import Clock
from geode.llm.routes import Route
from geode.llm.spending import NoPurse, Purse
from geode.redaction import Redactor
from judges.engine import JudgeEngine
from judges.jev import open_jev
from judges.jev_answers import AbstainBelow
from judges.jev_wire import WAYS
from judges.recorded import Record, Recorded
from judges.rules import Rules

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
    route: Literal[Route.OPENROUTER, Route.TYPESAFE]
    model_id: str = ""
    abstain_below: AbstainBelow = AbstainBelow()
    allow_moving: bool = False

    @property
    def model(self) -> str:
        """The model as `route/id`."""
        return f"{self.route}/{self.model_id}" if self.model_id else WAYS[self.route].model


EngineChoice = Annotated[RulesChoice | RecordedChoice | JevChoice, Field(discriminator="engine")]
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


def read_choice(folder: Path, name: str, words: Sequence[str] = ()) -> EngineChoice:
    """Read the engine `name` from `folder`, and change it by `words`: `key=value` with the value as YAML.

    Raises:
        JudgeConfigError: if there is none of that name, or it cannot be used.
    """
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in names:
        raise JudgeConfigError(f"there is no judge {name!r}; there are {', '.join(names)}")
    path = folder / f"{name}.yaml"
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise JudgeConfigError(f"{path} cannot be read as YAML ({error})") from error
    if not isinstance(body, dict):
        raise JudgeConfigError(f"{path} holds no mapping; it begins with a line such as engine: rules")
    for word in words:
        _set(body, word)
    try:
        return _CHOICE.validate_python(body)
    except ValidationError as error:
        detail = error.errors()[0]
        place = ".".join(map(str, detail["loc"][1:] or detail["loc"])) or "engine"
        raise JudgeConfigError(f"the judge {name!r}: {place}: {detail['msg']}; got {detail['input']!r:.80}") from error


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
    """Return the engine that `choice` describes.

    Raises:
        RubricRefused, ConfigurationError: if it cannot be used as configured; nothing was asked.
    """
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
    assert_never(choice)
