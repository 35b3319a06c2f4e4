"""A session's report as a person reads it, and as JSON; and the command that its reader would type next."""

from collections.abc import Iterator
from dataclasses import asdict

from pydantic import JsonValue

from geode.records.receipts import EffectReceipt
from geode.records.report import SessionReport, Standing
from geode.records.story import CallTold, RoundTold, TurnTold

SCHEMA = "geode.session_report/1"
_LINE_CHARS = 100


def report_to_json(report: SessionReport) -> dict[str, JsonValue]:
    """Return everything as JSON values."""
    body = {"schema": SCHEMA, **asdict(report)}
    body["uncertain"] = [str(receipt.key) for receipt in report.uncertain]
    body["children"] = [report_to_json(child) for child in report.children]
    return {**body, "open": list(open_questions(report)), "next": list(next_commands(report))}


def lines(report: SessionReport) -> Iterator[str]:
    """Yield the lines of the report."""
    of = f", sub-agent {'/'.join(report.path)}" if report.path else ""
    yield f"session   {report.name}  {report.standing}{of}"
    if report.mode:
        yield f"what      scaffold {report.scaffold_id}, model {report.model}, {report.mode} mode"
        yield f"status    {report.status} at {report.updated_at}, written by {_owner(report)}"
    for turn in report.turns:
        yield from _turn(turn)
    yield f"used      {_used(report)}"
    for child in report.children:
        yield f"child     {child.name}  {'/'.join(child.path)}  {child.standing}, {_used(child)}"
        yield from (f"          open: {question}" for question in open_questions(child))
    for question in open_questions(report):
        yield f"open      {question}"
    for command in next_commands(report):
        yield f"next      {command}"


def open_questions(report: SessionReport) -> Iterator[str]:
    """Yield what is not settled in a session."""
    last = report.turns[-1] if report.turns else None
    match report.standing:
        case Standing.RUNNING:
            at = f", turn {last.turn}, round {last.rounds[-1].round if last.rounds else 0}" if last else ""
            yield f"a process has it open{at}; its databases can be read when that ends"
        case Standing.UNFINISHED:
            yield f"the prompt of turn {last.turn if last else 1} is unfinished"
        case Standing.UNREADABLE if last is not None and last.unfinished:
            yield f"by its timeline, the prompt of turn {last.turn} is unfinished; it needs its database to be resumed"
        case Standing.UNREADABLE | Standing.ENDED:
            pass
    for receipt in report.uncertain:
        yield f"nobody knows how effect {receipt.key} ended: {receipt.tool} {_brief(receipt.arguments)}"


def next_commands(report: SessionReport) -> Iterator[str]:
    """Yield what to type: what only the operator can settle first, since a resumed prompt is told how it ended."""
    if report.standing is Standing.RUNNING:
        return
    unfinished = report.standing is Standing.UNFINISHED
    for receipt in report.uncertain:
        if not (unfinished and receipt.intent):
            yield _settle(report, receipt)
    if unfinished:
        yield f"geode sessions resume {report.name} --workspace FOLDER"


def _settle(report: SessionReport, receipt: EffectReceipt) -> str:
    return f"geode effects settle {report.name} {receipt.key} END --why HOW_YOU_KNOW"


def _owner(report: SessionReport) -> str:
    if report.pid is None:
        return "an unknown process"
    if report.in_use:
        return f"process {report.pid}" + ("" if report.owner_lives else ", which is gone; another has it open")
    if report.status == "open":
        return f"process {report.pid}, which " + ("lives and has let go of it" if report.owner_lives else "is gone")
    return f"process {report.pid}, which closed it"


def _turn(turn: TurnTold) -> Iterator[str]:
    yield f"turn {turn.turn:<4} {_brief(turn.prompt)}"
    for told in turn.rounds:
        attempts = f", {told.attempts_failed} failed attempts before" if told.attempts_failed else ""
        yield f"  round {told.round}  {_round(told)}{attempts}"
        for call in told.calls:
            yield f"    {call.call_id}  {call.tool}  {_end(call)}  {_brief(call.arguments)}"
    if turn.stop_reason:
        verified = "verified" if turn.verified else "not verified"
        repairs = f", {turn.repairs_used} repairs" if turn.repairs_used else ""
        yield f"  {turn.stop_reason}, {verified}{repairs}  {_brief(turn.answer)}"
    else:
        yield "  no end on record"


def _round(told: RoundTold) -> str:
    if told.failed:
        return f"the model failed: {_brief(told.failed)}"
    if told.used is None:
        return "no model call on record"
    simulated = "simulated, " if told.simulated else ""
    cost = "unknown cost" if told.used.unknown else f"{told.used.cost_usd:.4f} USD"
    return f"{told.model}  {told.stop}  ({simulated}{told.used.tokens} tokens, {cost})"


def _end(call: CallTold) -> str:
    if call.stage:
        rule = f" by {call.rule}" if call.rule else ""
        return f"refused at {call.stage}{rule}: {_brief(call.result)}"
    return f"{call.end}, an error for the model" if call.is_error and call.end == "succeeded" else call.end


def _used(report: SessionReport) -> str:
    used = report.used
    unknown = f", and {used.unknown} calls whose use is unknown" if used.unknown else ""
    simulated = ", simulated" if report.simulated else ""
    return f"{used.model_calls} model calls, {used.tokens} tokens, {used.cost_usd:.4f} USD{unknown}{simulated}"


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}..."
