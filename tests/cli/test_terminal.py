"""Facts of `geode.cli.terminal`: what a person reads while a turn runs, and what it counts for at its end."""

import json
from contextlib import suppress
from typing import Any

import pytest
import typer

from geode.cli.terminal import TurnScreen, model_options
from geode.events import CallEnded, CheckEnded, ModelCalled
from geode.llm.binding import Effort, ModelOptions
from geode.llm.messages import Delta, DeltaKind
from geode.llm.usage import CostOrigin, Usage
from geode.loop.turn import TurnResult, TurnStop


def text(text: str) -> Delta:
    return Delta(kind=DeltaKind.TEXT, text=text)


def replied(origin: CostOrigin = CostOrigin.COMPUTED) -> ModelCalled:
    return ModelCalled(
        turn=1,
        round=1,
        stop="end_turn",
        served_model="m",
        simulated=False,
        latency_ms=1,
        uncached_input_tokens=1,
        cache_write_tokens=0,
        cache_read_tokens=0,
        output_tokens=1,
        cost_usd=0.01,
        text="",
        cost_origin=origin.value,
    )


def ended(answer: str, *, cost_usd: float | None = 0.0123, **more: Any) -> TurnResult:
    usage = Usage(uncached_input_tokens=10, output_tokens=5, cost_usd=cost_usd)
    parts: dict[str, Any] = {
        "text": answer,
        "stop": TurnStop.COMPLETED,
        "detail": "",
        "verified": True,
        "rounds": 2,
        "repairs_used": 0,
        "model_calls": 2,
        "tool_calls": 1,
        "tool_errors": 0,
        "refused_calls": 0,
        "usage": usage,
        "cost_usd_known": cost_usd or 0.0,
        "unpriced_calls": 0,
        "latency_ms": 1,
        "simulated": False,
        **more,
    }
    return TurnResult(**parts)


def test_an_answer_that_was_read_while_it_came_is_not_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    screen = TurnScreen(stream=True)
    screen.delta(text("The year "))
    screen.delta(text("is 1931."))
    screen.event(replied())
    assert capsys.readouterr().out == "The year is 1931.", "it stands there before the turn has ended"
    screen.end(ended("The year is 1931."), "S")
    shown = capsys.readouterr()
    assert shown.out == "\n"
    assert shown.err == "[completed, 2 rounds, 15 tokens, 0.0123 USD by the catalogue's prices, session S]\n"


def test_each_reply_begins_a_line_and_calls_are_told_apart_from_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output holds what the model said, and nothing else."""
    screen = TurnScreen(stream=True)
    screen.delta(text("I look."))
    screen.delta(Delta(kind=DeltaKind.TOOL, text="read_file"))
    screen.event(replied())
    screen.event(call(end="succeeded", is_error=False, stage=""))
    screen.event(call(end="not_started", is_error=True, stage="policy"))
    screen.delta(Delta(kind=DeltaKind.REASONING, text="hm"))
    screen.delta(text("Done."))
    screen.event(replied())
    screen.end(ended("Done."), "S")
    shown = capsys.readouterr()
    assert shown.out == "I look.\nDone.\n"
    assert shown.err.splitlines()[:2] == ["[calls read_file]", "[read_file: not_started, refused by policy]"]


def call(*, end: str, is_error: bool, stage: str) -> CallEnded:
    return CallEnded(
        turn=1,
        round=1,
        call_id="c",
        tool="read_file",
        arguments="{}",
        end=end,
        is_error=is_error,
        stage=stage,
        elapsed_ms=1,
        result="",
        result_chars=0,
    )


def test_a_reply_that_begins_again_is_told_and_only_the_last_one_counts(capsys: pytest.CaptureFixture[str]) -> None:
    screen = TurnScreen(stream=True)
    screen.delta(text("The year is 19"))
    screen.delta(Delta(kind=DeltaKind.AGAIN))
    screen.delta(text("It is 1931."))
    screen.event(replied())
    screen.end(ended("It is 1931."), "S")
    shown = capsys.readouterr()
    assert shown.out == "The year is 19\nIt is 1931.\n"
    assert "begins again; what stands above of it does not count" in shown.err


def test_an_answer_that_is_sent_back_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    screen = TurnScreen(stream=True)
    check = CheckEnded(turn=1, round=1, passed=False, decision="repair", reasons=("no source",), repairs_used=0)
    screen.event(check)
    assert capsys.readouterr().err == "[the answer was checked and is sent back: no source]\n"


def test_what_was_not_read_is_printed_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """A model that does not stream, and an answer that is another than the last reply."""
    TurnScreen(stream=True).end(ended("answer"), "S")
    TurnScreen(stream=False).end(ended("answer"), "S")
    assert capsys.readouterr().out == "answer\nanswer\n"


def test_without_streaming_nothing_is_shown_before_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    screen = TurnScreen(stream=False)
    screen.delta(text("half"))
    screen.delta(Delta(kind=DeltaKind.TOOL, text="shell"))
    screen.event(call(end="failed", is_error=True, stage=""))
    assert capsys.readouterr() == ("", "")


def test_json_is_one_object_and_says_where_its_cost_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    screen = TurnScreen(stream=True, as_json=True)
    screen.delta(text("half"))
    screen.event(replied(CostOrigin.REPORTED))
    screen.end(ended("whole"), "S")
    body = json.loads(capsys.readouterr().out)
    assert (body["session"], body["text"], body["usage"]["cost_origin"]) == ("S", "whole", "reported")


def test_a_model_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences of an answer could move the cursor over what the person has read, or set the clipboard."""
    screen = TurnScreen(stream=True)
    screen.delta(text("\x1b[2J\x9b1mred\tok\r\n"))
    screen.delta(Delta(kind=DeltaKind.TOOL, text="\x1b]52;c;x\x07"))
    shown = capsys.readouterr()
    assert shown.out == "\\x1b[2J\\x9b1mred\tok\\x0d\n"
    assert shown.err == "[calls \\x1b]52;c;x\\x07]\n"


@pytest.mark.parametrize(
    ("result", "code"),
    [(ended("a"), None), (ended("a", verified=False), 3), (ended("", verified=False, detail="it failed"), 1)],
)
def test_the_command_ends_by_what_the_answer_is_worth(
    result: TurnResult, code: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if code is None:
        TurnScreen(stream=False).end(result, "S")
    else:
        with pytest.raises(typer.Exit) as ending:
            TurnScreen(stream=False).end(result, "S")
        assert ending.value.exit_code == code
    assert capsys.readouterr().out == (f"{result.text}\n" if result.text else "No answer: it failed\n")


def test_a_cost_of_which_only_a_part_is_known_is_not_given_as_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    TurnScreen(stream=False).end(ended("a", cost_usd=None, cost_usd_known=0.5, unpriced_calls=1), "S")
    assert "cost unknown but for 0.5000 USD" in capsys.readouterr().err


def test_outputs_that_are_gone_do_not_reach_the_model_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer that raises would look like a faulty adapter, and end the turn."""
    full = open("/dev/full", "w")  # noqa: SIM115  (closed below, without its error)
    for gone in (None, full):
        monkeypatch.setattr("sys.stdout", gone)
        monkeypatch.setattr("sys.stderr", gone)
        screen = TurnScreen.of_command(stream=True)
        screen.delta(text("One."))
        screen.delta(Delta(kind=DeltaKind.TOOL, text="shell"))
    monkeypatch.undo()
    with suppress(OSError):
        full.close()


def test_an_effort_that_there_is_not_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert model_options(effort="xhigh", max_output_tokens=9) == ModelOptions(effort=Effort.XHIGH, max_output_tokens=9)
    with pytest.raises(typer.Exit):
        model_options(effort="very", max_output_tokens=None)
    assert "--effort is 'very'; write one of none, minimal, low" in capsys.readouterr().err
