"""One attempt of a foreign log as a person asks for it: what came of it, and the whole conversation as far as told."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from analysis.foreign import LogsRefused, total
from analysis.foreign_inspect import TARGET, attempt_name, parse_attempt_name
from analysis.importers.inspect_eval import EvalLog
from analysis.importers.inspect_records import EvalStatus, Message, Sample
from analysis.importers.mcpmark import Attempt, outcome, read_attempt
from geode.redaction import clean_text

SHOWN_ATTEMPT_SCHEMA = "geode.shown_attempt/1"
_NAMES_SHOWN = 10


class LineKind(StrEnum):
    """What a line of a transcript is."""

    MESSAGE = "message"
    REASONING = "reasoning"
    CALL = "call"
    RESULT = "result"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLine:
    """One step: `who` is a role, or the tool; `text` is never cut here."""

    kind: LineKind
    who: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A line of the header."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignView:
    """One attempt. `problems` are what a reader must know of the record itself."""

    shown_as: str
    facts: tuple[Fact, ...]
    scores: tuple[Fact, ...]
    lines: tuple[TranscriptLine, ...]
    problems: tuple[str, ...]


def is_foreign(wanted: str) -> bool:
    """Say whether `geode show` is asked for a foreign attempt: `LOG.eval#SAMPLE/EPOCH`, or an MCPMark task folder."""
    return parse_attempt_name(wanted) is not None or (Path(wanted).expanduser() / "meta.json").is_file()


def view_foreign(wanted: str) -> ForeignView:
    """Read the attempt that `wanted` names.

    Raises:
        ArchiveError: if its log cannot be read.
        LogsRefused: if it names no attempt, with those that there are.
    """
    named = parse_attempt_name(wanted)
    if named is None:
        return _mcpmark_view(Path(wanted).expanduser())
    return _sample_view(EvalLog.open(named.log.expanduser()), named.sample_id, named.epoch)


def foreign_view_to_json(view: ForeignView) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {"schema": SHOWN_ATTEMPT_SCHEMA, **asdict(view)}


def _sample_view(log: EvalLog, sample_id: str | None, epoch: int) -> ForeignView:
    keys = [key.rpartition("_epoch_")[::2] for key in log.sample_keys]
    if sample_id is None and len(keys) == 1:
        sample_id, epoch = keys[0][0], int(keys[0][1])
    if sample_id is None or (sample_id, str(epoch)) not in keys:
        why = "name one of its samples" if sample_id is None else f"it has no sample {sample_id!r} of epoch {epoch}"
        known = [f"  geode show {shlex.quote(f'{log.path}#{name}/{number}')}" for name, number in keys]
        more = [f"  and {len(known) - _NAMES_SHOWN} more: geode ls {log.path}"] if len(known) > _NAMES_SHOWN else []
        raise LogsRefused("\n".join([f"{log.path}: {why}; it has {len(known)}:", *known[:_NAMES_SHOWN], *more]))
    sample = log.sample(sample_id, epoch)
    header = log.header
    facts = [
        Fact(name="log", text=f"{log.path}  ({header.task or 'no task'}, {header.status.value})"),
        Fact(name="sample", text=f"{sample.sample_id}, epoch {sample.epoch}"),
        Fact(name="models", text=_roles(header.roles) or header.model or "unknown"),
        Fact(name="took", text=_took(sample)),
    ]
    problems = [f"the sample failed: {sample.error}"] if sample.error is not None else []
    if header.status is not EvalStatus.SUCCESS:
        problems.append(f"the log's status is {header.status.value!r}")
    if not sample.message_count:
        problems.append("the sample has no message")
    return ForeignView(
        shown_as=attempt_name(log.path, sample.sample_id, sample.epoch),
        facts=tuple(facts),
        scores=tuple(_scores(sample)),
        lines=tuple(line for message in sample.messages() for line in _message_lines(message)),
        problems=tuple(problems),
    )


def _roles(roles: Mapping[str, str]) -> str:
    ordered = sorted(roles.items(), key=lambda item: (item[0] != TARGET, item[0]))
    return ", ".join(f"{role} {model}" for role, model in ordered)


def _took(sample: Sample) -> str:
    parts = [f"{sample.total_s:.1f} s"] if sample.total_s is not None else []
    for usage in sample.usage:
        sent = total((usage.input_tokens, usage.cache_write_tokens, usage.cache_read_tokens))
        spent = [
            f"{tokens:,} {way}" for tokens, way in ((sent, "in"), (usage.output_tokens, "out")) if tokens is not None
        ]
        spent += [f"${usage.cost_usd:.4f}"] if usage.cost_usd is not None else []
        parts.append(f"{usage.role or usage.model} {', '.join(spent) or 'unknown'}")
    return "; ".join(parts) or "unknown"


def _scores(sample: Sample) -> Iterator[Fact]:
    """Yield each scorer's values on one line, then what it said of them."""
    by_scorer: dict[str, list[str]] = {}
    for score in sample.scores:
        value = f"{score.value:g}" if score.value is not None else f"unscored ({score.unscored})"
        by_scorer.setdefault(score.scorer, []).append(f"{score.dimension} {value}".strip())
    bodies = sample.body.get("scores")
    for scorer, values in by_scorer.items():
        yield Fact(name=scorer or "scores", text=", ".join(values))
        body = bodies.get(scorer) if isinstance(bodies, dict) else None
        for name in ("answer", "explanation"):
            said: JsonValue = body.get(name) if isinstance(body, dict) else None
            if isinstance(said, str) and said:
                yield Fact(name=name, text=clean_text(sample.resolve(said)))


def _message_lines(message: Message) -> Iterator[TranscriptLine]:
    who = " ".join(part for part in (message.role, message.model) if part)
    if message.reasoning:
        yield TranscriptLine(kind=LineKind.REASONING, who=who, text=message.reasoning)
    if message.role == "tool":
        yield TranscriptLine(kind=LineKind.RESULT, who=message.tool or message.call_id or "tool", text=message.text)
    elif message.text or not (message.tool_uses or message.reasoning):
        yield TranscriptLine(kind=LineKind.MESSAGE, who=who, text=message.text)
    for use in message.tool_uses:
        yield TranscriptLine(kind=LineKind.CALL, who=use.tool, text=use.arguments)
    if message.error is not None:
        yield TranscriptLine(kind=LineKind.ERROR, who=message.tool or who, text=message.error)


def _mcpmark_view(folder: Path) -> ForeignView:
    attempt, issues = read_attempt(folder)
    meta = attempt.meta
    spent = [f"{meta.agent_execution_time:.1f} s"] if meta.agent_execution_time is not None else []
    for count, unit in (
        (meta.input_tokens, "tokens in"),
        (meta.output_tokens, "tokens out"),
        (meta.turn_count, "turns"),
        (None if attempt.log is None else len(attempt.calls), "calls"),
    ):
        spent += [f"{count:,} {unit}"] if count is not None else []
    spent += [f"${meta.cost_usd:.4f}"] if meta.cost_usd is not None else []
    checks = (
        ("error", meta.error_message),
        ("verification", meta.verification_error),
        ("verifier", meta.verification_output),
    )
    return ForeignView(
        shown_as=str(folder),
        facts=(
            Fact(name="attempt", text=f"{folder}  (service {meta.mcp or 'unknown'})"),
            Fact(
                name="model", text=f"{meta.litellm_run_model_name or meta.model_name}, effort {meta.reasoning_effort}"
            ),
            Fact(name="outcome", text=outcome(attempt).value),
            Fact(name="took", text=", ".join(spent) or "unknown"),
        ),
        scores=tuple(Fact(name=name, text=clean_text(text)) for name, text in checks if text),
        lines=tuple(_call_lines(attempt)),
        problems=tuple(issue.text for issue in issues),
    )


def _call_lines(attempt: Attempt) -> Sequence[TranscriptLine]:
    lines = []
    for call in attempt.calls:
        tool = call.tool or "unknown tool"
        kind = LineKind.ERROR if call.is_error else LineKind.RESULT
        lines.append(TranscriptLine(kind=LineKind.CALL, who=tool, text=call.arguments or ""))
        lines.append(TranscriptLine(kind=kind, who=tool, text=call.result or "(no result)"))
    if attempt.final_answer is not None:
        lines.append(TranscriptLine(kind=LineKind.MESSAGE, who="answer", text=attempt.final_answer))
    return lines
