"""Reads hook files: JSON in the shape of the `hooks` key of Claude Code's settings; other keys beside it are let be.

    {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]}}

Besides `type`, `command` and `timeout` (seconds), an entry may say `"observer": true` (its answer is never heard),
`"on_error": "allow"` (when it is broken it counts as no opinion) and `"priority"` (the higher ones first).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from geode.hooks.command import CommandEntry
from geode.hooks.observing import HAVE_A_MATCHER, KINDS, Observed, ObserverEntry
from geode.hooks.points import HookPoint

_Model = TypeVar("_Model", bound=BaseModel)

FILE_BYTES_MAX = 1_000_000
_LIMIT_S = 60.0
_PROMPT_LIMIT_S = 30.0
_HAVE_A_MATCHER = frozenset({HookPoint.PRE_TOOL_USE, HookPoint.PERMISSION_REQUEST, HookPoint.POST_TOOL_USE})


class HookFileError(ValueError):
    """A hook file that is refused. Nothing of it is used: half of somebody's guards is a false sense of safety."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFile:
    """What a hook file holds: `entries` decide, `observing` are told what happened.

    `not_used` are entries for what there is no point, no event or no handler of here, and why.
    """

    entries: tuple[CommandEntry, ...] = ()
    observing: tuple[ObserverEntry, ...] = ()
    not_used: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        """All that it may run."""
        return (*(entry.command for entry in self.entries), *(entry.command for entry in self.observing))


class _Handler(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["command"]
    command: Annotated[str, Field(min_length=1, max_length=100_000)]
    timeout: Annotated[float, Field(gt=0, le=3_600)] | None = None
    observer: bool = False
    on_error: Literal["allow", "block"] = "block"
    priority: Annotated[int, Field(ge=-1_000, le=1_000)] = 0
    status_message: str | None = Field(default=None, alias="statusMessage")
    shell: Literal["bash", "sh"] | None = None


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    matcher: str = ""
    hooks: tuple[JsonValue, ...]


def read_hook_file(path: Path) -> HookFile:
    """Read the hooks in `path`; a file that does not exist has none.

    Raises:
        HookFileError: naming the file, the place in it, and what would be right.
    """
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return HookFile()
    return parse_hook_file(content, path)


def parse_hook_file(content: bytes, path: Path) -> HookFile:
    """Read what `path` holds; see `read_hook_file`."""
    if len(content) > FILE_BYTES_MAX:
        raise HookFileError(f"{path} is longer than {FILE_BYTES_MAX} bytes; a hook file names commands, it holds none")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise HookFileError(
            f"{path} is not JSON ({error}); repair it, or move it away to go on without hooks"
        ) from error
    hooks = body.get("hooks", {}) if isinstance(body, dict) else None
    if not isinstance(hooks, dict):
        raise HookFileError(f'{path}: hooks must be an object, as {{"hooks": {{"PreToolUse": [...]}}}}')
    entries: list[CommandEntry] = []
    observing: list[ObserverEntry] = []
    not_used: list[str] = []
    for event, groups in hooks.items():
        where = f"{path}: hooks.{event}"
        if event in set(HookPoint):
            point = HookPoint(event)
            found = _read(event, groups, where, not_used, has_a_matcher=point in _HAVE_A_MATCHER)
            entries += (_deciding(point, read) for read in found)
        elif event in KINDS or event in set(Observed):
            found = _read(event, groups, where, not_used, has_a_matcher=event in HAVE_A_MATCHER)
            observing += (_observing(event, read) for read in found)
        else:
            known = ", ".join((*HookPoint, *Observed, *sorted(KINDS)))
            not_used.append(f"{where}: there is no such point or event; there are {known}")
    entries.sort(key=lambda entry: -entry.priority)  # stable: equals keep their places
    return HookFile(entries=tuple(entries), observing=tuple(observing), not_used=tuple(not_used))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    name: str
    matcher: str
    handler: _Handler


def _deciding(point: HookPoint, read: _Read) -> CommandEntry:
    usual = _PROMPT_LIMIT_S if point is HookPoint.USER_PROMPT_SUBMIT else _LIMIT_S
    return CommandEntry(
        name=read.name,
        point=point,
        command=read.handler.command,
        time_limit_s=read.handler.timeout or usual,
        matcher=read.matcher,
        observer=read.handler.observer,
        on_error_allow=read.handler.on_error == "allow",
        priority=read.handler.priority,
    )


def _observing(event: str, read: _Read) -> ObserverEntry:
    limit_s = read.handler.timeout or _LIMIT_S
    return ObserverEntry(
        name=read.name, event=event, command=read.handler.command, time_limit_s=limit_s, matcher=read.matcher
    )


def _read(event: str, groups: JsonValue, where: str, not_used: list[str], *, has_a_matcher: bool) -> Iterator[_Read]:
    if not isinstance(groups, list):
        raise HookFileError(f"{where} must be a list of groups, each with a matcher and hooks")
    for at, raw_group in enumerate(groups):
        group = _valid(_Group, raw_group, f"{where}[{at}]")
        try:
            re.compile(group.matcher if group.matcher != "*" else "")
        except re.error as error:
            raise HookFileError(
                f"{where}[{at}].matcher {group.matcher!r} is no regular expression ({error})"
            ) from error
        if group.matcher not in ("", "*") and not has_a_matcher:
            raise HookFileError(f"{where}[{at}].matcher: {event} is not about a tool, so nothing can match it; drop it")
        for number, raw in enumerate(group.hooks):
            place = f"{where}[{at}].hooks[{number}]"
            if isinstance(raw, dict) and isinstance(raw.get("type"), str) and raw["type"] != "command":
                not_used.append(f"{place}: handlers of type {raw['type']!r} are not known here, only 'command'")
                continue
            yield _Read(name=f"{event}[{at}.{number}]", matcher=group.matcher, handler=_valid(_Handler, raw, place))


def _valid(model: type[_Model], raw: JsonValue, where: str) -> _Model:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        detail = error.errors()[0]
        place = ".".join((where, *map(str, detail["loc"])))
        raise HookFileError(f"{place}: {detail['msg']}; known keys are {', '.join(_keys(model))}") from error


def _keys(model: type[BaseModel]) -> Sequence[str]:
    fields: Mapping[str, object] = model.model_fields
    return [getattr(field, "alias", None) or name for name, field in fields.items()]
