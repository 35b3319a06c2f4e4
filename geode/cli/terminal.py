"""What a person at a terminal sees of a turn: the answer while it comes, what is called, and what it cost."""

import json
import sys
from contextlib import suppress
from dataclasses import asdict, replace

import typer
from pydantic import JsonValue

from geode.cli.failure import fail
from geode.events import CallEnded, CheckEnded, Event, ModelCalled
from geode.llm.binding import Effort, ModelOptions
from geode.llm.messages import Delta, DeltaKind
from geode.llm.usage import CostOrigin, shown_usd
from geode.loop.turn import TurnResult
from geode.serve.accounts import Judged

EXIT_NOT_VERIFIED = 3

_ORIGINS = {
    CostOrigin.REPORTED: "as the provider reports",
    CostOrigin.COMPUTED: "by the catalogue's prices",
    CostOrigin.SIMULATED: "nominal",
    CostOrigin.UNKNOWN: "",
}
# A model's text may hold what a terminal takes for commands: none of it but line breaks and tabs reaches one.
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class TurnScreen:
    """Shows a turn while it runs if `stream` says so, and its end in any case.

    `delta` is the observer of a session's model, `event` one of the session. What is shown counts for nothing: a reply
    can break off and begin again, or be sent back by a check, and the screen says so.
    """

    def __init__(self, *, stream: bool, as_json: bool = False) -> None:
        self._stream, self._as_json = stream and not as_json, as_json
        self._reply = ""
        self._at_line_start = True
        self._origins: set[CostOrigin] = set()
        self._replied = False

    @classmethod
    def of_command(cls, *, stream: bool, as_json: bool = False) -> "TurnScreen":
        """Return the screen of a command: it streams where a person reads along, or where that is asked for."""
        return cls(stream=sys.stdout is not None and (stream or sys.stdout.isatty()), as_json=as_json)

    def delta(self, delta: Delta) -> None:
        """See `DeltaObserver`."""
        if not self._stream:
            return
        match delta.kind:
            case DeltaKind.TEXT:
                if self._replied:
                    self._reply, self._replied = "", False
                    self._break_line()
                self._reply += delta.text
                self._write(delta.text)
            case DeltaKind.TOOL:
                self._note(f"calls {delta.text}")
            case DeltaKind.AGAIN:
                self._reply = ""
                self._note("the reply broke off and begins again; what stands above of it does not count")
            case DeltaKind.REASONING:
                pass

    def event(self, event: Event) -> None:
        """See `geode.hooks.system.Observer`."""
        match event:
            case ModelCalled():
                self._replied = True
                if event.cost_origin:
                    self._origins.add(CostOrigin(event.cost_origin))
            case CallEnded() if self._stream and (event.is_error or event.stage):
                self._note(f"{event.tool}: {event.end}{f', refused by {event.stage}' if event.stage else ''}")
            case CheckEnded(decision="repair") if self._stream:
                self._note(f"the answer was checked and is sent back: {'; '.join(event.reasons)}")
            case _:
                pass

    def end(self, result: TurnResult, session: str, judged: Judged | None = None) -> None:
        """Show how the turn ended, and end the command by it: 0 with a checked answer, 3 with another, 1 with none.

        `judged` is what the judge of the session has cost, if one was asked.
        """
        if len(self._origins) == 1:
            result = replace(result, usage=replace(result.usage, cost_origin=next(iter(self._origins))))
        if self._as_json:
            judge = None if judged is None else asdict(judged)
            typer.echo(json.dumps({"session": session, **result_to_json(result), "judge": judge}, ensure_ascii=False))
        else:
            self._break_line()
            if not result.text or "".join(result.text.split()) != "".join(self._reply.split()):
                text = _visible(result.text) if self._stream else result.text
                typer.echo(text or f"No answer: {result.detail}")
            if result.text and not result.verified and result.detail:
                self._note(f"not verified: {result.detail}")
            figures = [*self._figures(result), *([] if judged is None else [f"judge {shown_usd(judged.cost_usd)}"])]
            typer.echo(f"[{', '.join(figures)}, session {session}]", err=True)
        if not result.verified:
            raise typer.Exit(EXIT_NOT_VERIFIED if result.text else 1)

    def _figures(self, result: TurnResult) -> list[str]:
        cost = shown_usd(result.usage.cost_usd)
        if result.usage.cost_usd is None and result.cost_usd_known:
            cost += f" but for {shown_usd(result.cost_usd_known)}"
        elif origins := [_ORIGINS[origin] for origin in CostOrigin if origin in self._origins and _ORIGINS[origin]]:
            cost += f" {' and '.join(origins)}"
        tokens = "unknown" if result.usage.total_tokens is None else result.usage.total_tokens
        return [
            *(["simulated"] if result.simulated else []),
            result.stop,
            f"{result.rounds} rounds",
            f"{tokens} tokens",
            cost,
        ]

    def _note(self, text: str) -> None:
        self._break_line()
        with suppress(OSError):
            typer.echo(f"[{_visible(text)}]", err=True)

    def _break_line(self) -> None:
        if not self._at_line_start:
            self._write("\n")

    def _write(self, text: str) -> None:
        # An observer may not raise: an output that is gone is told of at the end, where the rest of it is written.
        with suppress(OSError):
            sys.stdout.write(_visible(text))
            sys.stdout.flush()
        self._at_line_start = text.endswith("\n") if text else self._at_line_start


def model_options(*, effort: str, max_output_tokens: int | None) -> ModelOptions:
    """Return how a model is to be asked, or end the command: there are no other efforts."""
    if effort and effort not in set(Effort):
        fail(
            f"--effort is {effort!r}; write one of {', '.join(Effort)} (geode models show says which a model takes)", 2
        )
    return ModelOptions(effort=Effort(effort) if effort else None, max_output_tokens=max_output_tokens)


def result_to_json(result: TurnResult) -> dict[str, JsonValue]:
    """Return a turn's result as JSON values."""
    return {**asdict(result), "stop": result.stop.value}


def _visible(text: str) -> str:
    return text.translate(_VISIBLE)
