"""What stands in an Inspect log, as values: a field of the wrong type is reported, and a score nobody gave is none."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from pydantic import JsonValue

from analysis.fields import Fields, Oddity
from analysis.importers.files import DamagedArchive
from geode.redaction import clean_text

VERSION = 2
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
# Inspect's own words for correct, partly correct, incorrect and no answer, with the numbers its metrics give them.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_NUMBER_MAX = 2**63


class EvalStatus(StrEnum):
    """How a log ended. `started` is also what a log without header gets: its run was killed."""

    STARTED = "started"
    SUCCESS = "success"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a log says of itself. None is null, absent, or of another type than Inspect's (see `oddities`)."""

    status: EvalStatus
    has_header: bool
    eval_id: str | None
    task: str | None
    task_id: str | None
    created: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    model: str | None
    roles: Mapping[str, str]
    dataset: str | None
    dataset_samples: int | None
    limit: JsonValue
    epochs: int | None
    inspect_version: str | None
    commit: str | None
    error: str | None
    reported_means: Mapping[str, float]
    eval: Mapping[str, JsonValue]
    oddities: tuple[Oddity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One dimension of one sample by one scorer: a value, or the reason why there is none.

    `scorer` is empty if the sample has no score at all; `dimension` is empty if the scorer gave one value, or nothing.
    """

    sample_id: str
    epoch: int
    scorer: str
    dimension: str
    value: float | None
    unscored: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of a role in a sample; `input_tokens` are those outside any cache, `role` is empty if it is not known."""

    role: str
    model: str | None
    input_tokens: int | None
    cache_write_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call in a message; `arguments` is JSON."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a sample, with its attachments put in. `tool` names the tool whose result it is."""

    role: str
    text: str
    reasoning: str
    tool_uses: tuple[ToolUse, ...]
    tool: str | None
    call_id: str | None
    model: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample of one epoch. What is large stays as it is until it is asked for."""

    sample_id: str
    epoch: int
    uuid: str | None
    started_at: datetime | None
    completed_at: datetime | None
    total_s: float | None
    working_s: float | None
    error: str | None
    retries: int
    scores: tuple[Score, ...]
    usage: tuple[Usage, ...]
    message_count: int
    oddities: tuple[Oddity, ...]
    body: Mapping[str, JsonValue] = field(repr=False)

    def messages(self) -> tuple[Message, ...]:
        """The conversation; what is no message is left out."""
        return tuple(self.message(item) for item in _list(self.body.get("messages")) if isinstance(item, dict))

    def resolve(self, text: str) -> str:
        """Put attachments in the place of their references. A reference to none of this sample stays as it is."""
        attachments = _dict(self.body.get("attachments"))

        def attached(found: re.Match[str]) -> str:
            whole = attachments.get(found.group(1))
            return whole if isinstance(whole, str) else found.group(0)

        return _ATTACHMENT.sub(attached, text)

    def message(self, item: dict[str, JsonValue]) -> Message:
        """Return a message as the log holds it, its attachments put in."""
        content = item.get("content")
        parts = [part for part in _list(content) if isinstance(part, dict)]
        uses = [call for call in _list(item.get("tool_calls")) if isinstance(call, dict)]
        error = item.get("error")
        return Message(
            role=_text(item.get("role")) or "",
            text=self._clean(content if isinstance(content, str) else _joined(parts, "text")),
            reasoning=self._clean(_joined(parts, "reasoning")),
            tool_uses=tuple(
                ToolUse(
                    call_id=_text(call.get("id")) or "",
                    tool=_text(call.get("function")) or "",
                    arguments=clean_text(json.dumps(self._resolved(call.get("arguments")), ensure_ascii=False)),
                )
                for call in uses
            ),
            tool=_text(item.get("function")),
            call_id=_text(item.get("tool_call_id")),
            model=_text(item.get("model")),
            error=None if error is None else _error_text(error),
        )

    def _resolved(self, value: JsonValue) -> JsonValue:
        """Resolve inside `value`, before it is written as JSON: an attachment may hold quotes."""
        match value:
            case str():
                return self.resolve(value)
            case list():
                return [self._resolved(item) for item in value]
            case dict():
                return {key: self._resolved(item) for key, item in value.items()}
            case _:
                return value

    def _clean(self, text: str) -> str:
        return clean_text(self.resolve(text))


def parse_header(body: dict[str, JsonValue], has_header: bool, place: str) -> Header:
    """Return the header in `body`, the object at `place`.

    Raises:
        DamagedArchive: if its version or its status is not known here.
    """
    if body.get("version") != VERSION:
        raise DamagedArchive(f"{place} has version {body.get('version')!r}; this version reads {VERSION}")
    status = body.get("status") if has_header else EvalStatus.STARTED
    if status not in set(EvalStatus):
        raise DamagedArchive(f"{place} has the status {status!r}, which is none of {', '.join(EvalStatus)}")
    fields = Fields(body)
    evaluation, stats = fields.nested("eval"), Fields(_dict(body.get("stats")), "stats.", fields.oddities)
    dataset, config = evaluation.nested("dataset"), evaluation.nested("config")
    error = body.get("error")
    return Header(
        status=EvalStatus(str(status)),
        has_header=has_header,
        eval_id=evaluation.text("eval_id"),
        task=evaluation.text("task"),
        task_id=evaluation.text("task_id"),
        created=evaluation.moment("created"),
        started_at=_moment(stats, "started_at"),
        completed_at=_moment(stats, "completed_at"),
        model=evaluation.text("model"),
        roles=_roles(evaluation.body.get("model_roles")),
        dataset=_optional_text(dataset, "name"),
        dataset_samples=dataset.integer("samples") if "samples" in dataset.body else None,
        limit=config.body.get("limit"),
        epochs=config.integer("epochs") if "epochs" in config.body else None,
        inspect_version=_text(_dict(evaluation.body.get("packages")).get("inspect_ai")),
        commit=_text(_dict(evaluation.body.get("revision")).get("commit")),
        error=None if error is None else _error_text(error),
        reported_means=_reported_means(body.get("results")),
        eval=evaluation.body,
        oddities=tuple(fields.oddities),
    )


def _roles(value: JsonValue) -> dict[str, str]:
    models = {role: _text(_dict(bound).get("model")) for role, bound in _dict(value).items()}
    return {clean_text(role): model for role, model in models.items() if model is not None}


def _reported_means(results: JsonValue) -> dict[str, float]:
    """The means that the run itself computed, by dimension; where two scorers share a name, neither is kept."""
    found: dict[str, list[float | None]] = {}
    for score in _list(_dict(results).get("scores")):
        item = _dict(score)
        mean = _number(_dict(_dict(item.get("metrics")).get("mean")).get("value"))
        found.setdefault(str(item.get("name")), []).append(mean)
    return {name: means[0] for name, means in found.items() if len(means) == 1 and means[0] is not None}


def parse_sample(body: dict[str, JsonValue], roles: Mapping[str, str], place: str) -> Sample:
    """Return the sample in `body`; `roles` says which model each role is bound to.

    Raises:
        DamagedArchive: if it has no id.
    """
    sample_id, epoch = identity(body, place)
    fields = Fields(body)
    error = body.get("error")
    return Sample(
        sample_id=sample_id,
        epoch=epoch,
        uuid=_optional_text(fields, "uuid"),
        started_at=_moment(fields, "started_at"),
        completed_at=_moment(fields, "completed_at"),
        total_s=fields.number("total_time") if "total_time" in body else None,
        working_s=fields.number("working_time") if "working_time" in body else None,
        error=None if error is None else _error_text(error),
        retries=len(_list(body.get("error_retries"))),
        scores=parse_scores(body, sample_id, epoch),
        usage=_usage(fields, roles),
        message_count=len(_list(body.get("messages"))),
        oddities=tuple(fields.oddities),
        body=body,
    )


def identity(body: Mapping[str, JsonValue], place: str) -> tuple[str, int]:
    """Return id and epoch of a sample, or of its summary.

    Raises:
        DamagedArchive: if they name none.
    """
    sample_id, epoch = body.get("id"), body.get("epoch")
    if not isinstance(sample_id, str | int) or isinstance(sample_id, bool) or type(epoch) is not int:
        raise DamagedArchive(f"{place} has the sample id {sample_id!r} and the epoch {epoch!r}, which name no sample")
    return clean_text(str(sample_id)), epoch


def parse_scores(body: Mapping[str, JsonValue], sample_id: str, epoch: int) -> tuple[Score, ...]:
    """Return every score of a sample, or of its summary: they have the same values."""
    found = []
    for scorer, item in _dict(body.get("scores")).items():
        value = _dict(item).get("value")
        dimensions = value if isinstance(value, dict) and value else {"": value}
        for dimension, given in dimensions.items():
            number, unscored = _judged(given)
            found.append((clean_text(scorer), clean_text(dimension), number, unscored))
    if not found:
        error = body.get("error")
        why = "no scorer gave anything" if error is None else f"the sample failed: {_error_text(error)[:200]}"
        found.append(("", "", None, why))
    return tuple(
        Score(sample_id=sample_id, epoch=epoch, scorer=scorer, dimension=dimension, value=value, unscored=why)
        for scorer, dimension, value, why in found
    )


def _judged(given: JsonValue) -> tuple[float | None, str | None]:
    """Return the number that was given, or why there is none: NaN and free text are never turned into one."""
    if isinstance(given, bool):
        return float(given), None
    if (number := _number(given)) is not None:
        return number, None
    if isinstance(given, str) and given in _LETTERS:
        return _LETTERS[given], None
    if isinstance(given, float) and math.isnan(given):
        return None, "the scorer gave NaN"
    return None, f"the scorer gave no number: {clean_text(repr(given)[:80])}"


def _number(value: JsonValue) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _NUMBER_MAX:  # false for NaN
        return float(value)
    return None


def _usage(fields: Fields, roles: Mapping[str, str]) -> tuple[Usage, ...]:
    by_role, by_model = _dict(fields.body.get("role_usage")), _dict(fields.body.get("model_usage"))
    named = [(role, roles.get(role), _dict(spent)) for role, spent in by_role.items()]
    if not named:
        named = [("", model, _dict(spent)) for model, spent in by_model.items()]
    return tuple(_of_role(role, model, Fields(spent, "usage.", fields.oddities)) for role, model, spent in named)


def _of_role(role: str, model: str | None, spent: Fields) -> Usage:
    def tokens(name: str) -> int | None:
        return spent.integer(name) if name in spent.body else None

    return Usage(
        role=clean_text(role),
        model=model,
        input_tokens=tokens("input_tokens"),
        cache_write_tokens=tokens("input_tokens_cache_write"),
        cache_read_tokens=tokens("input_tokens_cache_read"),
        output_tokens=tokens("output_tokens"),
        cost_usd=spent.number("total_cost") if "total_cost" in spent.body else None,
    )


def _moment(fields: Fields, name: str) -> datetime | None:
    return fields.moment(name) if fields.body.get(name) else None  # a run that never began has an empty text here


def _optional_text(fields: Fields, name: str) -> str | None:
    return fields.text(name) if name in fields.body else None


def _joined(parts: list[dict[str, JsonValue]], kind: str) -> str:
    texts = [part.get(kind) for part in parts if part.get("type") == kind]
    return "\n".join(text for text in texts if isinstance(text, str))


def _error_text(error: JsonValue) -> str:
    """An error's message: a whole sample has an object, a summary the text alone."""
    message = error.get("message") if isinstance(error, dict) else error
    return clean_text(message if isinstance(message, str) else repr(message))


def _text(value: JsonValue) -> str | None:
    return clean_text(value) if isinstance(value, str) else None


def _dict(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
