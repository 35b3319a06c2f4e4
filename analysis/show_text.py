"""An episode to read from top to bottom: what it is, what came of it, and everything that happened."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import assert_never, get_args

from pydantic import JsonValue, TypeAdapter, ValidationError
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analysis.compare import SIMULATED_NOTE
from analysis.show import EpisodeView
from analysis.terminal import printable
from experiments.episode import EpisodeRecord
from experiments.suite import OutcomeKind
from geode.events import (
    ApprovalDecided,
    AttemptFailed,
    CallEnd,
    CallEnded,
    CheckEnded,
    ContextCompacted,
    EffectSettled,
    Event,
    HookDecided,
    ModelCalled,
    ModelFailed,
    Notice,
    PromptReceived,
    SessionOpened,
    TurnEnded,
)
from geode.llm.usage import shown_usd

_LINES_SHOWN = 8
_CHARS_SHOWN = 700
_ARGUMENT_CHARS_SHOWN = 160
_OUTCOME_STYLE = {OutcomeKind.PASS: "bold green", OutcomeKind.FAIL: "bold red", OutcomeKind.INVALID: "bold magenta"}
_EVENTS: dict[str, TypeAdapter[Event]] = {kind.kind: TypeAdapter(kind) for kind in get_args(Event)}


def print_view(console: Console, view: EpisodeView, *, full: bool = False) -> None:
    """Print the episode; `full` cuts no text beyond what the timeline itself left out."""
    console.print(Group(_header(view), *(Text(printable(p), style="bold yellow") for p in view.problems), Text()))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    opened = _at(view.events[0]) if view.events else None
    last_call: CallEnded | None = None
    for body in view.events:
        at, event = _at(body), _typed(body)
        since = f"{(at - opened).total_seconds():.3f}" if at and opened else ""
        if isinstance(event, CallEnded) and last_call and _is_repeated(event, last_call):
            line: RenderableType = Text.assemble(
                (printable(event.tool), "cyan"), ("  the same call, the same result", "dim")
            )
        elif event is None:
            # An event of another version: a reader rather sees it raw than not at all.
            line = Text(cut(json.dumps(body, ensure_ascii=False), full=full), style="dim")
        else:
            line = _event(event, full=full)
        last_call = event if isinstance(event, CallEnded) else last_call
        table.add_row(since, line)
    console.print(table)


def _header(view: EpisodeView) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _facts(view):
        table.add_row(label, text)
    return table


def _facts(view: EpisodeView) -> Iterator[tuple[str, Text]]:
    what = view.record or view.spec
    yield ("episode" if what else "session"), Text(view.folder.name, style="bold")
    if what:
        where = f"family {what.family}, suite {what.suite}, seed {what.seed}, repetition {what.repetition}"
        yield "task", Text(printable(f"{what.task_id}  ({where})"))
        hooks = f", hooks {', '.join(hook.name for hook in view.spec.scaffold.hooks) or 'none'}" if view.spec else ""
        yield (
            "variant",
            Text(f"{', '.join(view.used_by) or 'of no experiment here'}  (scaffold {what.scaffold_id}{hooks})"),
        )
    models = sorted(what.roles.values() if what else {str(body["model"]) for body in view.events if "model" in body})
    simulated = any(model.startswith("simulated/") for model in models) or any(
        body.get("simulated") is True for body in view.events
    )
    yield (
        "model",
        Text.assemble(
            printable(", ".join(models)), (f"  {SIMULATED_NOTE.upper()}" if simulated else "", "bold yellow")
        ),
    )
    if view.record:
        yield from _outcome(view.record)


def _outcome(record: EpisodeRecord) -> Iterator[tuple[str, Text]]:
    score = "" if record.outcome.score is None else f"  score {record.outcome.score:g}"
    reasons = "".join(f"\n{printable(reason)}" for reason in record.outcome.reasons)
    yield "outcome", Text.assemble((record.outcome.kind, _OUTCOME_STYLE[record.outcome.kind]), score, reasons)
    verified = "accepted by the completion check" if record.verified else "not verified"
    calls = f"{record.tool_calls} calls ({record.tool_errors} errors, {record.refused_calls} refused)"
    yield (
        "ended",
        Text(f"{record.stop_reason}, {verified}; {record.rounds} rounds, {calls}, {record.repairs_used} repairs"),
    )
    usages = record.usage.values()
    sent = sum(usage.uncached_input_tokens + usage.cache_write_tokens + usage.cache_read_tokens for usage in usages)
    received, model_s = sum(usage.output_tokens for usage in usages), sum(usage.latency_ms for usage in usages) / 1_000
    tokens = f"{sent:,} tokens in, {received:,} out"
    cost = "cost unknown" if record.known_cost_usd is None else f"${record.known_cost_usd:.4f}"
    yield "took", Text(f"{tokens}, {cost}, model {model_s:.1f} s, host {record.wall_s:.2f} s")


def _at(body: dict[str, JsonValue]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(body.get("at")))
    except ValueError:
        return None


def _typed(body: dict[str, JsonValue]) -> Event | None:
    try:
        return _EVENTS[str(body["kind"])].validate_python(body)
    except (KeyError, ValidationError):
        return None


def _is_repeated(call: CallEnded, last: CallEnded) -> bool:
    return replace(call, call_id=last.call_id, round=last.round, elapsed_ms=last.elapsed_ms) == last


def _event(event: Event, *, full: bool) -> RenderableType:
    text = ""
    match event:
        case ModelCalled():
            return _model_called(event, full=full)
        case CallEnded():
            return _call_ended(event, full=full)
        case SessionOpened():
            title, style = f"session {'resumed' if event.resumed else 'opened'}, mode {event.mode}", "dim"
        case PromptReceived():
            title, style, text = "prompt", "bold", event.text
        case AttemptFailed() | ModelFailed():
            title, style, text = _failed(event)
        case HookDecided() | ApprovalDecided():
            title, style = _decided(event)
            text = event.reason
        case ContextCompacted():
            title, style = f"the results of {event.elided_rounds} older rounds are left out from here on", "yellow"
        case CheckEnded():
            outcome, style = ("passed", "green") if event.passed else ("failed", "yellow")
            title, text = (
                f"check {outcome}: {event.decision}, {event.repairs_used} repairs used",
                "\n".join(event.reasons),
            )
        case TurnEnded():
            verified = "verified" if event.verified else "not verified"
            title, style, text = f"end: {event.stop_reason}, {verified}, {event.rounds} rounds", "bold", event.text
        case EffectSettled():
            title, style, text = f"effect {event.effect} settled by {event.by}: {event.end}", "yellow", event.note
        case Notice():
            title, style, text = f"notice, {event.about}", "yellow", event.text
        case _:
            assert_never(event)
    return over(Text(printable(title), style=style), text, full=full)


def _decided(event: HookDecided | ApprovalDecided) -> tuple[str, str]:
    if isinstance(event, ApprovalDecided):
        return f"approval of {event.tool}, level {event.level}: {event.answer}", "magenta"
    if event.broken:
        return f"hook {event.hook} at {event.point}: BROKEN, which counts as its strictest answer", "bold red"
    return f"hook {event.hook} at {event.point}: {event.decision}", "magenta"


def _failed(event: AttemptFailed | ModelFailed) -> tuple[str, str, str]:
    if isinstance(event, ModelFailed):
        return f"round {event.round}: the model call failed", "bold red", event.error
    status = f", HTTP {event.status}" if event.status else ""
    waited = f"; sent again after {event.waited_ms / 1_000:.1f} s" if event.waited_ms else ""
    return f"round {event.round}: a request failed: {event.error}{status}{waited}", "red", ""


def _model_called(event: ModelCalled, *, full: bool) -> RenderableType:
    sent = (event.uncached_input_tokens or 0) + (event.cache_write_tokens or 0) + (event.cache_read_tokens or 0)
    simulated = ", simulated" if event.simulated else ""
    title = Text.assemble(
        (f"round {event.round}", "bold blue"),
        (
            printable(
                f"  {event.served_model}{simulated}, {sent:,} tokens in, {event.output_tokens or 0:,} out,"
                f" {event.latency_ms / 1_000:.1f} s, {shown_usd(event.cost_usd)}, {event.stop}"
            ),
            "dim",
        ),
    )
    return over(title, event.text, full=full)


def _call_ended(event: CallEnded, *, full: bool) -> RenderableType:
    arguments = printable(event.arguments)
    if not full and len(arguments) > _ARGUMENT_CHARS_SHOWN:
        arguments = f"{arguments[:_ARGUMENT_CHARS_SHOWN]}… [{len(arguments) - _ARGUMENT_CHARS_SHOWN} more characters]"
    if event.stage:
        end, style = f"REFUSED at {event.stage}", "bold red"
    elif event.end == CallEnd.SUCCEEDED and not event.is_error:
        end, style = f"{event.elapsed_ms:.1f} ms", "dim"
    else:
        end, style = f"{event.end}{', error result' if event.is_error else ''}, {event.elapsed_ms:.1f} ms", "red"
    title = Text.assemble((printable(event.tool), "cyan"), f" {arguments}  ", (printable(end), style))
    return over(title, event.result, full=full)


def over(title: Text, text: str, *, full: bool) -> RenderableType:
    """Put `title` above `text`, which is indented, and cut unless it is to be `full`."""
    shown = cut(text.strip("\n"), full=full)
    return Group(title, Padding(Text(shown), (0, 0, 0, 2))) if shown else title


def cut(text: str, *, full: bool) -> str:
    """Return the first lines of `text`, and how much more there is."""
    lines = printable(text).split("\n")
    if full:
        return "\n".join(lines)
    head = "\n".join(lines[:_LINES_SHOWN])[:_CHARS_SHOWN]
    whole = "\n".join(lines)
    return head if head == whole else f"{head}… [{len(whole) - len(head)} more characters: --full]"
