"""An episode as a trace: what `timeline.jsonl` says, as spans. Knows nothing of where traces are stored.

One root span for the agent; below it, in the order of the timeline, one span a model call, a tool call, a hook's
decision and a completion check. Times are the recorded ones: an entry is written when its matter ends, and its own
duration says when it began, but never before what must have come before it. A simulated model reports the time that
it pretends to take; its span shows the time that really passed, and `geode.latency_ms` what was reported.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import cast

from pydantic import JsonValue

from experiments.episode import EpisodeRecord
from experiments.roles import Role
from experiments.sinks import StoredEpisode
from experiments.suite import OutcomeKind
from geode.records.folder import SessionFolder
from geode.records.timeline import read_timeline

KEY_DIGITS = 12
"""So much of an episode's key is shown; `geode show` takes any beginning that names one episode only."""

_FIGURES = ("uncached_input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens", "cost_usd")
_OF_PROVIDERS = ("cost_origin", "provider", "request_id", "reasoning_tokens")
_NS_PER_MS = 1_000_000


class SpanKind(StrEnum):
    """MLflow's own span types, as far as we use them."""

    AGENT = "AGENT"
    LLM = "LLM"
    TOOL = "TOOL"
    GUARDRAIL = "GUARDRAIL"
    EVALUATOR = "EVALUATOR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens and cost of one or several model calls. `input` counts all input tokens, cached or not.

    MLflow's figures have no word for unknown, and it fills a missing cost in from a price list of its own. So what a
    provider did not say is left out of the sums, and the span says which figures that are (`geode.unknown`).
    """

    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """A moment within a span."""

    name: str
    at_ns: int
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span. `error` is empty when all went well. Free text stands in `inputs` and `outputs` only."""

    name: str
    kind: SpanKind
    start_ns: int
    end_ns: int
    inputs: Mapping[str, JsonValue]
    outputs: Mapping[str, JsonValue]
    attributes: Mapping[str, JsonValue]
    error: str = ""
    tokens: Tokens | None = None
    model: str = ""
    provider: str = ""
    events: tuple[SpanEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTrace:
    """An episode as spans, the root first. `tokens` is the sum over its model calls."""

    record: EpisodeRecord
    spans: tuple[Span, ...]
    tokens: Tokens

    @property
    def root(self) -> Span:
        """The agent's span: the whole episode."""
        return self.spans[0]


class NotATimeline(Exception):  # noqa: N818  (named by what was found)
    """A timeline lacks what its kind of entry must have."""


def read_trace(episode: StoredEpisode) -> EpisodeTrace:
    """Read the timeline of a finished episode as a trace.

    Raises:
        OSError: if the timeline cannot be read.
        NotATimeline: if an entry lacks a field.
        geode.records.timeline.TimelineNewer: if a newer version wrote it.
    """
    if not episode.record.session_id:
        return trace_of(episode.record, ())  # no session was opened, so there is no timeline
    path = SessionFolder(episode.folder).timeline
    try:
        return trace_of(episode.record, list(read_timeline(path)))
    except (KeyError, TypeError, ValueError) as error:
        raise NotATimeline(f"{path} has an entry that cannot be read as a span ({error!r})") from error


def trace_of(record: EpisodeRecord, timeline: Iterable[Mapping[str, JsonValue]]) -> EpisodeTrace:
    """Turn the entries of a timeline into spans."""
    builder = _Builder(record)
    entries = list(timeline)
    for entry in entries:
        if entry["kind"] == "call_ended":
            builder.calls[_round(entry)].append(str(entry["tool"]))
    for entry in entries:
        builder.add(entry)
    return builder.finish()


@dataclass(slots=True)
class _Builder:
    record: EpisodeRecord
    calls: dict[tuple[int, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    spans: list[Span] = field(default_factory=list)
    events: list[SpanEvent] = field(default_factory=list)
    prompt: str = ""
    answer: str = ""
    now_ns: int = 0
    batch_began_ns: int = 0

    def __post_init__(self) -> None:
        self.now_ns = self.batch_began_ns = _ns(self.record.started_at)

    def add(self, entry: Mapping[str, JsonValue]) -> None:
        before_ns = self.now_ns
        if isinstance(at := entry["at"], str):
            self.now_ns = max(self.now_ns, _ns(datetime.fromisoformat(at)))
        match entry["kind"]:
            case "prompt_received":
                self.prompt = self.prompt or str(entry["text"])
            case "model_called":
                self.batch_began_ns = self.now_ns
                self.spans.append(self._model_call(entry, before_ns))
            case "model_failed":
                self.batch_began_ns = self.now_ns
                name, error = f"round {entry['round']}", str(entry["error"])
                self.spans.append(self._span(entry, SpanKind.LLM, before_ns, name=name, error=error))
            case "call_ended":
                self.spans.append(self._tool_call(entry))
            case "hook_decided":
                self.spans.append(self._hook(entry))
            case "check_ended":
                self.spans.append(self._check(entry))
            case "turn_ended":
                self.answer = str(entry["text"])
            case "notice":
                self._event(str(entry["about"]), {"text": str(entry["text"])})
            case "attempt_failed":
                self._event("request failed", {name: str(entry[name]) for name in ("error", "status", "waited_ms")})
            case "context_compacted":
                self._event("context compacted", {"elided_rounds": str(entry["elided_rounds"])})
            case _:
                pass  # the opening of the session is in the record; what newer versions add has no span

    def finish(self) -> EpisodeTrace:
        record = self.record
        start_ns = _ns(record.started_at)
        outcome = record.outcome
        root = Span(
            name=f"{record.task_id} seed {record.seed} repetition {record.repetition}",
            kind=SpanKind.AGENT,
            start_ns=start_ns,
            end_ns=max(_ns(record.ended_at), self.now_ns, *(span.end_ns for span in self.spans), start_ns),
            inputs={"prompt": self.prompt},
            # Where MLflow shows two traces side by side, it shows the last three of these.
            outputs={
                "transcript": f"geode show {record.episode_key[:KEY_DIGITS]}",
                "stop_reason": record.stop_reason,
                "verified": record.verified,
                "answer": self.answer,
                "reasons": list(outcome.reasons),
                "outcome": outcome.kind.value,
            },
            attributes={"geode.scaffold_id": record.scaffold_id, "geode.simulated": record.simulated},
            error="; ".join(outcome.reasons) or "INVALID" if outcome.kind is OutcomeKind.INVALID else "",
            events=tuple(self.events),
        )
        used = [span.tokens for span in self.spans if span.tokens]
        tokens = Tokens(
            input=sum(part.input for part in used),
            output=sum(part.output for part in used),
            cache_read=sum(part.cache_read for part in used),
            cache_write=sum(part.cache_write for part in used),
            cost_usd=sum(part.cost_usd for part in used),
        )
        return EpisodeTrace(record=record, spans=(root, *self.spans), tokens=tokens)

    def _model_call(self, entry: Mapping[str, JsonValue], before_ns: int) -> Span:
        began_ns = max(before_ns, self.now_ns - int(_number(entry, "latency_ms") * _NS_PER_MS))
        unknown = [name for name in _FIGURES if entry[name] is None]
        known = {name: 0 if name in unknown else _number(entry, name) for name in _FIGURES}
        cache_read, cache_write = int(known["cache_read_tokens"]), int(known["cache_write_tokens"])
        tokens = Tokens(
            input=int(known["uncached_input_tokens"]) + cache_read + cache_write,
            output=int(known["output_tokens"]),
            cache_read=cache_read,
            cache_write=cache_write,
            cost_usd=known["cost_usd"],
        )
        return self._span(
            entry,
            SpanKind.LLM,
            began_ns,
            name=f"round {entry['round']}",
            outputs={"text": entry["text"], "tool_calls": cast("JsonValue", self.calls[_round(entry)])},
            attributes={
                "geode.stop": entry["stop"],
                "geode.simulated": entry["simulated"],
                "geode.latency_ms": entry["latency_ms"],
                **{f"geode.{name}": entry[name] for name in _OF_PROVIDERS if entry.get(name)},
                **({"geode.unknown": ", ".join(unknown)} if unknown else {}),
            },
            tokens=tokens,
            model=str(entry["served_model"]),
            provider=self.record.roles.get(Role.TARGET, "").split("/", 1)[0],
        )

    def _tool_call(self, entry: Mapping[str, JsonValue]) -> Span:
        stage = str(entry["stage"])
        error = f"refused at {stage}" if stage else "error result" if entry["is_error"] else ""
        return self._span(
            entry,
            SpanKind.TOOL,
            max(self.batch_began_ns, self.now_ns - int(_number(entry, "elapsed_ms") * _NS_PER_MS)),
            name=str(entry["tool"]),
            inputs=_arguments(str(entry["arguments"])),
            outputs={"result": entry["result"]},
            attributes={
                "geode.call_id": entry["call_id"],
                "geode.end": entry["end"],
                "geode.refused_at": stage,
                "geode.elapsed_ms": entry["elapsed_ms"],
                "geode.result_chars": entry["result_chars"],
            },
            error=error,
        )

    def _hook(self, entry: Mapping[str, JsonValue]) -> Span:
        return self._span(
            entry,
            SpanKind.GUARDRAIL,
            self.now_ns,
            name=f"hook {entry['hook']}: {entry['decision']}",
            inputs={"point": entry["point"]},
            outputs={"decision": entry["decision"], "reason": entry["reason"]},
            attributes={"geode.broken": entry["broken"]},
            error="the hook is broken: it failed instead of deciding" if entry["broken"] else "",
        )

    def _check(self, entry: Mapping[str, JsonValue]) -> Span:
        return self._span(
            entry,
            SpanKind.EVALUATOR,
            self.now_ns,
            name=f"completion check: {entry['decision']}",
            outputs={"passed": entry["passed"], "decision": entry["decision"], "reasons": entry["reasons"]},
            attributes={"geode.repairs_used": entry["repairs_used"]},
        )

    def _span(
        self,
        entry: Mapping[str, JsonValue],
        kind: SpanKind,
        start_ns: int,
        *,
        name: str,
        inputs: Mapping[str, JsonValue] | None = None,
        outputs: Mapping[str, JsonValue] | None = None,
        attributes: Mapping[str, JsonValue] | None = None,
        error: str = "",
        tokens: Tokens | None = None,
        model: str = "",
        provider: str = "",
    ) -> Span:
        # The clock of the timeline ticks in milliseconds, and viewers order spans by their start: a nanosecond for
        # each span before it keeps the order of those that the clock holds for simultaneous.
        start_ns += len(self.spans) + 1
        return Span(
            name=name,
            kind=kind,
            start_ns=start_ns,
            end_ns=max(self.now_ns, start_ns),
            inputs=inputs or {},
            outputs=outputs or {},
            attributes={"geode.turn": entry["turn"], "geode.round": entry["round"], **(attributes or {})},
            error=error,
            tokens=tokens,
            model=model,
            provider=provider,
        )

    def _event(self, name: str, attributes: Mapping[str, str]) -> None:
        self.events.append(SpanEvent(name=name, at_ns=self.now_ns, attributes=attributes))


def _ns(at: datetime) -> int:
    return round(at.timestamp() * 1000) * _NS_PER_MS


def _round(entry: Mapping[str, JsonValue]) -> tuple[int, int]:
    return int(_number(entry, "turn")), int(_number(entry, "round"))


def _number(entry: Mapping[str, JsonValue], name: str) -> float:
    value = entry[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}, not a number")
    return value


def _arguments(text: str) -> Mapping[str, JsonValue]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"arguments": text}
