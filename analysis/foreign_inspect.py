"""Inspect's `.eval` logs as logs to compare: one attempt a sample and epoch, every scorer's every dimension."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from analysis.foreign import AttemptFacts, ForeignRun, Unit, total
from analysis.importers.inspect_eval import EvalLog
from analysis.importers.inspect_records import EvalStatus, Header, Sample, Score, Usage
from geode.redaction import clean_text

HARNESS = "inspect"
EVAL_SUFFIX = ".eval"
TARGET = "target"
_NAMED = re.compile(rf"(?P<log>.+?{re.escape(EVAL_SUFFIX)})(?:#(?P<sample>.+?)(?:/(?P<epoch>[0-9]+))?)?", re.DOTALL)
# What of `eval` measures: two logs that differ in it were measured with two rulers. What tells when, where and how fast
# a log was written is left out; anything else may matter, and is a surrounding.
_RULER = frozenset({"task", "task_version", "dataset.name", "scorers"})
_RULER_GROUPS = ("task_args.", "config.", "model_roles.")
_SURROUNDINGS = ("packages.", "revision.commit", "revision.dirty", "model_generate_config.", "model_args.")
_PACE = frozenset(
    f"config.{name}"
    for name in (
        "max_samples", "max_tasks", "max_subprocesses", "max_sandboxes", "max_connections", "sandbox_cleanup",
        "log_samples", "log_realtime", "log_images", "log_shared", "log_buffer", "log_model_api", "score_display",
    )
)  # fmt: skip


def read_inspect(path: Path) -> ForeignRun:
    """Read the log at `path`.

    Raises:
        ArchiveError: if it cannot be read, or is none.
    """
    log = EvalLog.open(path)
    header, scores = log.header, log.scores()
    attempts = {_unit(score): _unread(path, score.sample_id, score.epoch) for score in scores}
    values: dict[str, dict[Unit, float | None]] = {}
    names = _score_names(scores)
    for score in scores:
        if score.scorer:
            of_score = values.setdefault(names[score.scorer, score.dimension], dict.fromkeys(attempts))
            of_score[_unit(score)] = score.value
    for sample in log.samples():
        unit = _unit(sample)
        measured = any(of_score.get(unit) is not None for of_score in values.values())
        attempts[unit] = _facts(path, sample, measured=measured, by_role=TARGET in header.roles)
    fields = dict(_flat(header.eval))
    return ForeignRun(
        name=str(path),
        harness=HARNESS,
        subject=header.roles.get(TARGET) or header.model or "unknown",
        ruler={_told_as(name): text for name, text in fields.items() if _is_ruler(name)},
        surroundings={name: text for name, text in fields.items() if name.startswith(_SURROUNDINGS)},
        attempts=attempts,
        values=values,
        passes_and_failures=False,
        notes=tuple(_notes(header, attempts.values())),
    )


def attempt_name(path: Path, sample_id: str, epoch: int) -> str:
    """Name a sample of a log as `geode show` takes it."""
    return f"{path}#{sample_id}/{epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAttempt:
    """A sample as `geode show` is asked for it. Without an id, the only one of the log is meant."""

    log: Path
    sample_id: str | None
    epoch: int


def parse_attempt_name(text: str) -> NamedAttempt | None:
    """Read what `attempt_name` writes, or a log's path alone, or without an epoch; None if it is nothing of these."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return None
    return NamedAttempt(log=Path(found["log"]), sample_id=found["sample"], epoch=int(found["epoch"] or 1))


def _unit(of: Score | Sample) -> Unit:
    return Unit(of.sample_id, f"epoch {of.epoch}")


def _unread(path: Path, sample_id: str, epoch: int) -> AttemptFacts:
    name = attempt_name(path, sample_id, epoch)
    return AttemptFacts(identity=f"{path.resolve()}#{sample_id}/{epoch}", shown_as=name)


def _facts(path: Path, sample: Sample, *, measured: bool, by_role: bool) -> AttemptFacts:
    unread = _unread(path, sample.sample_id, sample.epoch)
    messages = sample.messages()
    of_target = [usage for usage in sample.usage if not by_role or usage.role == TARGET]
    of_others = [usage for usage in sample.usage if by_role and usage.role not in {"", TARGET}]
    costs = [usage.cost_usd for usage in of_target if usage.cost_usd is not None]
    return AttemptFacts(
        identity=sample.uuid or unread.identity,
        shown_as=unread.shown_as,
        invalid=None if measured or sample.error is None else sample.error,
        started_at=sample.started_at,
        wall_s=sample.total_s,
        tokens=total(map(_tokens, of_target)),
        other_tokens=total(map(_tokens, of_others)),
        cost_usd=sum(costs) if costs else None,
        turns=sum(message.role == "assistant" for message in messages),
        tool_calls=sum(len(message.tool_uses) for message in messages),
        tool_errors=sum(message.error is not None for message in messages),
    )


def _tokens(usage: Usage) -> int | None:
    kinds = (usage.input_tokens, usage.cache_write_tokens, usage.cache_read_tokens, usage.output_tokens)
    return total(kinds)


def _score_names(scores: Iterable[Score]) -> dict[tuple[str, str], str]:
    """Name a dimension by itself, by its scorer if it has no name, and by both where two scorers share it."""
    pairs = dict.fromkeys((score.scorer, score.dimension) for score in scores if score.scorer)
    shared = Counter(dimension or scorer for scorer, dimension in pairs)
    return {
        (scorer, dimension): dimension or scorer if shared[dimension or scorer] == 1 else f"{scorer}.{dimension}"
        for scorer, dimension in pairs
    }


def _flat(body: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each field below `body` with its dotted name. A list is one field."""
    for name, value in body.items():
        full = clean_text(f"{prefix}{name}")
        if isinstance(value, dict):
            yield from _flat(value, f"{full}.")
        else:
            yield full, clean_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _is_ruler(name: str) -> bool:
    grouped = name.startswith(_RULER_GROUPS) and name not in _PACE and not name.startswith(f"model_roles.{TARGET}.")
    return grouped or name in _RULER


def _told_as(name: str) -> str:
    """Call a role's model by the role."""
    return name.removeprefix("model_roles.").removesuffix(".model")


def _notes(header: Header, attempts: Iterable[AttemptFacts]) -> Iterator[str]:
    facts = list(attempts)
    if header.status is not EvalStatus.SUCCESS:
        yield f"the log's status is {header.status.value!r}: what did not end is not in it"
    if invalid := sum(attempt.invalid is not None for attempt in facts):
        yield f"{invalid} of {len(facts)} samples are INVALID: an error ended them"
