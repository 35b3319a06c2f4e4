"""Facts of a session's report: what the records tell, what they do not, and that nothing is changed by asking."""

from dataclasses import replace
from pathlib import Path

import pytest

from geode.clock import ManualClock
from geode.records.folder import SessionFolder
from geode.records.report import NothingOnRecord, SessionReport, Standing, read_report
from geode.records.story import tell, used
from tests.doubles.models import ScriptedModel, calls, says
from tests.doubles.sessions import SESSION_ID, Bench, open_bench
from tests.doubles.tools import CountingTool

ASKED = calls(("a", "count", '{"n": 1}'), ("b", "nowhere", "{}"))


async def lived(folder: Path) -> Bench:
    """A session that answered one prompt: a call that ran, one that was refused, and two model calls."""
    bench = open_bench(folder, ScriptedModel([ASKED, says("There.")]), {"count": CountingTool().spec})
    await bench.loop.arun("Do it.")
    bench.folder.write_state({"session_id": SESSION_ID, "mode": "repl", "status": "open", "pid": 1})
    return bench


def report(folder: Path) -> SessionReport:
    return read_report(SessionFolder(folder), ManualClock())


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_a_session_is_told_from_its_prompt_to_its_answer(tmp_path: Path) -> None:
    (await lived(tmp_path)).close()
    before = content(tmp_path)
    told = report(tmp_path)
    (turn,) = told.turns
    assert (told.standing, turn.prompt, turn.answer, told.problems) == (Standing.ENDED, "Do it.", "There.", ())
    ran, refused = turn.rounds[0].calls
    assert (ran.call_id, ran.tool, ran.end, ran.stage) == ("a", "count", "succeeded", "")
    assert (refused.end, refused.stage) == ("not_started", "scope")
    assert "nowhere" in refused.result
    assert told.used.model_calls == 2
    assert content(tmp_path) == before


async def test_a_running_session_is_told_by_its_timeline(tmp_path: Path) -> None:
    """Its databases belong to its process; whoever watches must neither wait for it nor disturb it."""
    bench = await lived(tmp_path)
    told = report(tmp_path)
    assert (told.standing, told.in_use, told.turns[0].answer) == (Standing.RUNNING, True, "There.")
    assert await bench.loop.arun("Again.")
    bench.close()


async def test_without_a_timeline_the_messages_and_receipts_tell_what_they_know(tmp_path: Path) -> None:
    """Stages and usage are lost with it; what was asked for, and what took effect, is not."""
    bench = await lived(tmp_path)
    bench.close()
    whole = report(tmp_path)
    bench.folder.timeline.unlink()
    told = report(tmp_path)
    assert any("timeline.jsonl is gone" in problem for problem in told.problems)
    ran, refused = told.turns[0].rounds[0].calls
    assert (told.turns[0].prompt, ran.end, refused.end) == ("Do it.", "succeeded", "answered with an error")
    assert (told.used.model_calls, whole.used.model_calls) == (0, 2)


async def test_a_torn_timeline_is_filled_in_from_the_databases(tmp_path: Path) -> None:
    """A process that dies writes half a line, and what it had already stored is on record all the same."""
    bench = await lived(tmp_path)
    bench.close()
    text = bench.folder.timeline.read_text()
    bench.folder.timeline.write_text(text[: text.index('"kind":"call_ended"') + 10])
    told = report(tmp_path)
    assert any("cut off" in problem for problem in told.problems)
    assert [(call.call_id, call.end) for call in told.turns[0].rounds[0].calls] == [
        ("a", "succeeded"),
        ("b", "answered with an error"),
    ]
    assert told.standing is Standing.ENDED, "the checkpoint says so, whatever the timeline lacks"


@pytest.mark.parametrize("lost", ["session.db", "effects.db", "state.json"])
async def test_what_is_damaged_is_named_and_the_rest_is_told(tmp_path: Path, lost: str) -> None:
    bench = await lived(tmp_path)
    bench.close()
    (tmp_path / lost).write_bytes(b"\0 not what it was" * 300)
    told = report(tmp_path)
    assert any(str(tmp_path / lost) in problem for problem in told.problems)
    assert told.turns[0].answer == "There."
    assert (told.standing is Standing.UNREADABLE) == (lost == "session.db")


def test_a_folder_without_a_record_has_nothing_to_tell(tmp_path: Path) -> None:
    with pytest.raises(NothingOnRecord, match=r"state\.json is gone"):
        report(tmp_path)


async def test_the_session_of_a_sub_agent_is_told_with_its_parents(tmp_path: Path) -> None:
    """What it left open is the parent's matter, too."""
    (await lived(tmp_path)).close()
    child = SessionFolder(tmp_path).children / "01CHILD"
    (await lived(child)).close()
    (SessionFolder(tmp_path).children / "01EMPTY").mkdir()
    told = report(tmp_path)
    assert [inner.name for inner in told.children] == ["01CHILD"]
    assert replace(told.children[0], name="").used == told.used
    assert any("sub-agent 01EMPTY" in problem for problem in told.problems)


def test_what_failed_attempts_cost_is_part_of_what_was_used_and_what_is_unknown_is_counted() -> None:
    """A figure that nobody gave is not zero."""
    place = {"turn": 1, "round": 1}
    (turn,) = tell(
        (
            {"kind": "attempt_failed", **place, "cost_usd": 0.25},
            {"kind": "attempt_failed", **place, "cost_usd": None},
            {"kind": "model_called", **place, "output_tokens": 5, "uncached_input_tokens": 7, "cost_usd": 0.5},
            {"kind": "model_called", "turn": 1, "round": 2, "output_tokens": None, "cost_usd": None},
            {"kind": "notice", "about": "of no turn"},
        ),
        (),
        (),
    )
    assert (turn.rounds[0].attempts_failed, turn.unfinished) == (2, True)
    total = used([turn])
    assert (total.model_calls, total.tokens, total.cost_usd, total.unknown) == (2, 12, 0.75, 1)
