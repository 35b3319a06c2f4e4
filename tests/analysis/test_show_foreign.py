"""An attempt of a foreign log is read whole: what came of it, every message and call, and what is wrong with it."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from analysis.foreign import LogsRefused
from analysis.importers.files import DamagedArchive
from analysis.show_foreign import LineKind, foreign_view_to_json, is_foreign, view_foreign
from analysis.show_foreign_text import print_foreign_view
from tests.doubles.evals import Body, judged, sample, write_eval
from tests.doubles.foreign_logs import write_mcpmark

LONG = "a long story " * 100
REFERENCE = "attachment://" + "0" * 32
TALK: list[Body] = [
    {"role": "system", "content": REFERENCE},
    {"role": "user", "content": [{"type": "text", "text": "Look around."}]},
    {
        "role": "assistant",
        "model": "acme-1",
        "content": [{"type": "reasoning", "reasoning": "I had better look."}, {"type": "text", "text": "I look."}],
        "tool_calls": [{"id": "c1", "function": "look", "arguments": {"where": "\u001b[31mhere"}}],
    },
    {
        "role": "tool",
        "content": f"nothing\n{LONG}",
        "function": "look",
        "tool_call_id": "c1",
        "error": {"message": "too dark"},
    },
    {"role": "assistant", "model": "acme-1", "content": "Nothing is here."},
]
SCORES = judged({"calm": 3, "odd": float("nan")})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    usage: Body = {"target": {"input_tokens": 1_500, "output_tokens": 40, "total_cost": 0.5}}
    whole = sample("a/b c", SCORES, messages=TALK, attachments={"0" * 32: LONG}, role_usage=usage, epoch=2)
    return write_eval(tmp_path / "my logs" / "x.eval", [whole, sample("s1", error="out of memory")], epochs=2)


def screen(wanted: str, *, full: bool = False, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_foreign_view(console, view_foreign(wanted), full=full)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_foreign_attempt_is_told_from_an_episode(log: Path, tmp_path: Path) -> None:
    """A folder of ours has no meta.json, and no key has a suffix."""
    attempt = write_mcpmark(tmp_path / "m", "P") / "acme-1__files" / "run-1" / "attic__task_0"
    assert [is_foreign(text) for text in (str(log), f"{log}#a/b c/2", str(attempt))] == [True] * 3
    assert [is_foreign(text) for text in ("3fa2c1d9", str(tmp_path), "x.evaluation")] == [False] * 3


def test_the_conversation_is_told_in_order_with_every_call_and_its_answer(log: Path) -> None:
    """Attachments are put in, reasoning stands apart, and a failed call is no answer."""
    view = view_foreign(f"{log}#a/b c/2")
    assert [(line.kind, line.who, line.text[:12]) for line in view.lines] == [
        (LineKind.MESSAGE, "system", "a long story"),
        (LineKind.MESSAGE, "user", "Look around."),
        (LineKind.REASONING, "assistant acme-1", "I had better"),
        (LineKind.MESSAGE, "assistant acme-1", "I look."),
        (LineKind.CALL, "look", '{"where": "\\'),
        (LineKind.RESULT, "look", "nothing\na lo"),
        (LineKind.ERROR, "look", "too dark"),
        (LineKind.MESSAGE, "assistant acme-1", "Nothing is h"),
    ]
    assert view.shown_as == f"{log}#a/b c/2"


def test_the_head_says_what_it_is_what_it_took_and_what_was_scored(log: Path) -> None:
    """A score that nobody gave is told as such, beside what the judge said."""
    text = " ".join(screen(f"{log}#a/b c/2").split())
    for fact in (
        "acme/audit, success", "a/b c, epoch 2", "target acme/worker-1, auditor acme/inquirer-2, judge other/arbiter-3",
        "60.5 s; target 1,500 in, 40 out, $0.5000", "calm 3, odd unscored (the scorer gave NaN)", "explanation as seen",
    ):  # fmt: skip
        assert fact in text


def test_what_is_long_is_cut_unless_it_is_asked_for_and_nothing_acts_on_the_terminal(log: Path) -> None:
    """A system prompt of a hundred screens hides what came after it; an escape in a tool call must not act."""
    assert screen(f"{log}#a/b c/2").count("more characters: --full]") == 2  # the prompt, and a tool's result
    full = screen(f"{log}#a/b c/2", full=True)
    assert "more characters" not in full
    assert " ".join(full.split()).count("a long story") == 200
    assert "\x1b" not in full


def test_a_failed_sample_without_a_message_is_shown_with_what_is_known(log: Path) -> None:
    """That nothing happened is a finding, too."""
    text = screen(f"{log}#s1")
    assert "the sample failed: out of memory" in text
    assert "the sample has no message" in text
    assert "scores" in text


def test_a_sample_that_is_not_there_is_answered_with_those_that_are(log: Path, tmp_path: Path) -> None:
    """Each as the command that shows it. A log of one sample needs no name."""
    for wanted, why in ((str(log), "name one of its samples"), (f"{log}#a/b c", "no sample 'a/b c' of epoch 1")):
        with pytest.raises(LogsRefused, match=why) as refused:
            view_foreign(wanted)
        assert f"  geode show '{log}#a/b c/2'" in str(refused.value)
    only = write_eval(tmp_path / "one.eval", [sample("s1", SCORES)])
    assert view_foreign(str(only)).shown_as == f"{only}#s1/1"
    many = write_eval(tmp_path / "many.eval", [sample(f"s{n}", SCORES) for n in range(12)])
    with pytest.raises(LogsRefused, match=r"it has 12:[\s\S]*and 2 more: geode ls"):
        view_foreign(str(many))


def test_an_attempt_of_mcpmark_shows_its_calls_its_answer_and_its_verifier(tmp_path: Path) -> None:
    """The log has no turns, so it is told as calls; an error of the server is one here."""
    run = write_mcpmark(tmp_path / "m", "FI") / "acme-1__files" / "run-1"
    view = view_foreign(str(run / "attic__task_0"))
    assert [(line.kind, line.who, line.text) for line in view.lines] == [
        (LineKind.CALL, "list", '{"path": "/attic"}'),
        (LineKind.RESULT, "list", "a.txt\nb.txt"),
        (LineKind.CALL, "read", '{"path": "/attic"}'),
        (LineKind.ERROR, "read", "Error: no such file"),
        (LineKind.MESSAGE, "answer", "I am done, says F."),
    ]
    text = " ".join(screen(str(run / "attic__task_0")).split())
    for fact in (
        "service files", "acme/acme-1, effort high", "outcome FAIL", "40.0 s, 900 tokens in, 100 tokens out, 3 turns,"
        " 2 calls, $0.2500", "verification the file is missing", "verifier checked",
    ):  # fmt: skip
        assert fact in text
    ended = " ".join(screen(str(run / "attic__task_1")).split())
    assert "outcome INVALID took 40.0 s error no network" in ended
    assert "infrastructure ended it (no network)" in ended


def test_a_damaged_attempt_does_not_hide_its_neighbour(tmp_path: Path) -> None:
    """One is asked for, and one is read."""
    run = write_mcpmark(tmp_path / "m", "FP") / "acme-1__files" / "run-1"
    (run / "attic__task_0" / "meta.json").write_text("{")
    assert view_foreign(str(run / "attic__task_1")).facts[2].text == "PASS"
    with pytest.raises(DamagedArchive, match=r"attic__task_0/meta\.json is damaged JSON"):
        view_foreign(str(run / "attic__task_0"))


def test_everything_is_json(log: Path) -> None:
    """A program gets what a person is shown, uncut."""
    body = json.loads(json.dumps(foreign_view_to_json(view_foreign(f"{log}#a/b c/2")), allow_nan=False))
    assert body["schema"] == "geode.shown_attempt/1"
    assert body["lines"][0] == {"kind": "message", "who": "system", "text": LONG}
