"""Rules that an operator writes: `policy.yaml` under the state root, and `.geode/policy.yaml` in a project.

A project's file comes with the project, so it can only tighten: it may deny and ask, and allow nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from geode.authority import DataClass, SafetyLevel
from geode.canonical import content_hash
from geode.config.plain_yaml import FILE_BYTES_MAX, parse_plain_yaml
from geode.config.settings import BadSettings
from geode.executor.patterns import CommandPattern
from geode.executor.policy import Authority, Mode
from geode.tools.files import content_of
from geode.tools.sandbox import SandboxChoice
from geode.tools.spec import ToolFailed
from geode.tools.workspace import NotThere, Workspace

PROJECT_FILE = ".geode/policy.yaml"
_RULES_MAX = 500
_ATTENDED = (Mode.REPL, Mode.IPC)

Level = Literal["read", "write", "execute", "external", "admin"]
PersonalData = Literal["personal", "secret"]
Stricter = Literal[Authority.ASK, Authority.DENY]
Pattern = Annotated[str, Field(min_length=1, max_length=1_000)]


class PolicyError(BadSettings):
    """A policy file cannot be used. The text names the file and the key."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Part):
    """One rule: what it says (`allow`, `ask` or `deny`, with a tool's name), and of which calls.

    `command` means a simple command of the shell, `path` a file below the workspace, `host` the host of a URL. A rule
    with none of them means every call of the tool. What has several commands or files is allowed if each of them is, by
    whichever rules. `modes` are all but `experiment`, for `allow` the attended ones: an experiment is measured under
    its own configuration, so a rule must name that mode to hold there.
    """

    allow: Pattern | None = None
    ask: Pattern | None = None
    deny: Pattern | None = None
    command: Pattern | None = None
    path: Pattern | None = None
    host: Pattern | None = None
    modes: tuple[Mode, ...] | None = None
    why: str = Field("", max_length=500)

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        if sum(said is not None for said in (self.allow, self.ask, self.deny)) != 1:
            raise ValueError("a rule says exactly one of allow, ask and deny, with the name of a tool")
        if sum(said is not None for said in (self.command, self.path, self.host)) > 1:
            raise ValueError("a rule has at most one of command, path and host; write two rules")
        pattern = CommandPattern.parse(self.command) if self.command is not None else None
        if self.allow is not None:
            if "*" in self.allow or "?" in self.allow:
                raise ValueError("an allowing rule names one tool; * and ? are for ask and deny")
            if self.allow == "shell" and self.command is None:
                raise ValueError("an allowing rule for the shell needs a command")
            if pattern is not None and ("*" in pattern.words[0] or "?" in pattern.words[0]):
                raise ValueError("an allowing rule names one program; * and ? may stand in its arguments")
        return self

    @property
    def says(self) -> Authority:
        """What it says of a call that it means."""
        if self.allow is not None:
            return Authority.ALLOW
        return Authority.ASK if self.ask is not None else Authority.DENY

    @property
    def tool(self) -> str:
        """The tool, or for `ask` and `deny` a pattern of tools."""
        return self.allow or self.ask or self.deny or ""

    @cached_property
    def command_pattern(self) -> CommandPattern | None:
        """The pattern of `command`, read."""
        return CommandPattern.parse(self.command) if self.command is not None else None

    def holds_in(self, mode: Mode) -> bool:
        """Whether it holds in `mode`."""
        if self.modes is not None:
            return mode in self.modes
        return mode in _ATTENDED if self.says is Authority.ALLOW else mode is not Mode.EXPERIMENT


class ModePolicy(_Part):
    """What is stricter in one mode than in the table, and whether what is executed there runs in a sandbox.

    Where nothing is said of it, `sandbox` is `auto`, and its `network` is there where somebody attends. An experiment
    has the sandbox of its own configuration, so that only `require` changes anything there.
    """

    denied_tools: tuple[Pattern, ...] = ()
    levels: Mapping[Level, Stricter] = {}
    data: Mapping[PersonalData, Stricter] = {}
    sandbox: SandboxChoice | None = None
    network: bool | None = None


class PolicyFile(_Part):
    """One policy file. `data_classes` says which paths hold personal or secret data (not in experiments)."""

    schema_: Literal["geode.policy/1"] = Field(alias="schema")
    modes: Mapping[Mode, ModePolicy] = {}
    data_classes: Mapping[PersonalData, tuple[Pattern, ...]] = {}
    rules: Annotated[tuple[Rule, ...], Field(max_length=_RULES_MAX)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRule:
    """A rule with the place where it stands, for whoever is refused by it."""

    rule: Rule
    place: str

    @property
    def shown(self) -> str:
        """The rule and its place in one line."""
        rule = self.rule
        meant = next((f" {key} {value!r}" for key, value in _meant(rule) if value is not None), "")
        return f"{self.place}: {rule.says} {rule.tool}{meant}" + (f" ({rule.why})" if rule.why else "")


def _meant(rule: Rule) -> tuple[tuple[str, str | None], ...]:
    return ("command", rule.command), ("path", rule.path), ("host", rule.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All that policy files say for one mode. An empty one changes nothing."""

    placed: tuple[PlacedRule, ...] = ()
    denied_tools: tuple[str, ...] = ()
    levels: Mapping[SafetyLevel, Authority] = field(default_factory=dict)
    data: Mapping[DataClass, Authority] = field(default_factory=dict)
    data_paths: tuple[tuple[DataClass, str], ...] = ()

    @property
    def digest(self) -> str:
        """A name for what they say, for the record of a session that they held in; empty if they say nothing."""
        tables = (*self.levels.values(), *self.data.values())
        if not (self.placed or self.denied_tools or self.data_paths or set(tables) - {Authority.ALLOW}):
            return ""
        rules = [placed.rule.model_dump(mode="json") for placed in self.placed]
        paths = [(int(kind), pattern) for kind, pattern in self.data_paths]
        return content_hash([rules, self.denied_tools, tables, paths])[:12]

    @classmethod
    def of(cls, mode: Mode, *files: tuple[str, PolicyFile]) -> "Rules":
        """Join files, each with its name, for `mode`. Where two speak of the same cell, the stricter counts."""
        levels: dict[SafetyLevel, Authority] = {}
        data: dict[DataClass, Authority] = {}
        for _, file in files:
            own = file.modes.get(mode, ModePolicy())
            for level, authority in own.levels.items():
                key = SafetyLevel[level.upper()]
                levels[key] = stricter(levels.get(key, Authority.ALLOW), authority)
            for name, authority in own.data.items():
                kind = DataClass[name.upper()]
                data[kind] = stricter(data.get(kind, Authority.ALLOW), authority)
        return cls(
            placed=tuple(
                PlacedRule(rule=rule, place=f"{name}, rules.{index}")
                for name, file in files
                for index, rule in enumerate(file.rules)
                if rule.holds_in(mode)
            ),
            denied_tools=tuple(tool for _, file in files for tool in file.modes.get(mode, ModePolicy()).denied_tools),
            levels=_rising(levels, SafetyLevel),
            data=_rising(data, DataClass),
            data_paths=tuple(
                (DataClass[name.upper()], pattern)
                for _, file in files
                for name, patterns in file.data_classes.items()
                for pattern in patterns
                if mode is not Mode.EXPERIMENT
            ),
        )


_Scale = TypeVar("_Scale", SafetyLevel, DataClass)


def _rising(said: Mapping[_Scale, Authority], scale: type[_Scale]) -> dict[_Scale, Authority]:
    """Let what is said of one step hold for all above it: more power never needs less permission."""
    strictest, result = Authority.ALLOW, {}
    for step in scale:
        strictest = stricter(strictest, said.get(step, Authority.ALLOW))
        result[step] = strictest
    return result


def stricter(one: Authority, other: Authority) -> Authority:
    """Return the stricter of two."""
    order = (Authority.ALLOW, Authority.ASK, Authority.DENY)
    return max(one, other, key=order.index)


def read_policy(path: Path) -> PolicyFile | None:
    """Read the operator's policy file, None if there is none.

    Raises:
        PolicyError: if it cannot be used.
    """
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None  # a state root below a file has none either, and whoever writes there says so
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror}; repair it, or remove it") from error
    return parse_policy(content, str(path))


def read_project_policy(workspace: Workspace) -> PolicyFile | None:
    """Read the policy file of the project in `workspace`, None if it has none.

    Raises:
        PolicyError: if it cannot be used, or says more than a project may.
    """
    try:
        with workspace.locate(PROJECT_FILE) as place:
            content = content_of(place, FILE_BYTES_MAX)
    except NotThere:
        return None
    except ToolFailed as error:
        raise PolicyError(f"{PROJECT_FILE} of the project cannot be read ({error}); repair it, or remove it") from error
    file = parse_policy(content, PROJECT_FILE)
    for index, rule in enumerate(file.rules):
        if rule.says is Authority.ALLOW:
            raise PolicyError(
                f"{PROJECT_FILE}: rules.{index}: a project's file can only deny and ask; what may go without asking"
                " is the operator's to say, in policy.yaml under the state root"
            )
    return file


def parse_policy(content: bytes, name: str) -> PolicyFile:
    """Read the content of a policy file.

    Raises:
        PolicyError: naming the file, the key and what is wrong.
    """
    try:
        return PolicyFile.model_validate(parse_plain_yaml(content))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PolicyError(f"{name}: {place}: {first['msg'].removeprefix('Value error, ')}") from error
    except ValueError as error:
        raise PolicyError(f"{name}: {error}") from error
