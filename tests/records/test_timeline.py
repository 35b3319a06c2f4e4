"""Facts of `geode.records.timeline`: whatever happened is there, in order, with its fields."""

import json
from pathlib import Path

import pytest

from geode import events
from geode.clock import ManualClock
from geode.events import CallEnded, CheckEnded, Event, Notice, SessionOpened, event_fields, preview
from geode.records.timeline import SessionTimeline, TimelineNewer, read_timeline

EVENTS: list[Event] = [
    SessionOpened(mode="repl", scaffold_id="abc", model="simulated/x", plan_hash="p", resumed=False),
    CallEnded(
        turn=1,
        round=2,
        call_id="c1",
        tool="shell",
        arguments="{}",
        end="not_started",
        is_error=True,
        stage="policy",
        elapsed_ms=0.5,
        result="refused",
        result_chars=7,
    ),
    CheckEnded(turn=1, round=3, passed=False, decision="repair", reasons=("a", "b"), repairs_used=1),
    Notice(about="정확도", text="line\nbreak \u2028 and 🍸"),
]


def write(path: Path, *happened: Event, clock: ManualClock | None = None) -> None:
    clock = clock or ManualClock()
    timeline = SessionTimeline(path, "S1", clock)
    for event in happened:
        timeline(event)
        clock.advance(-3_600)
    timeline.close()


def test_the_first_line_says_what_it_is_and_whose(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl")
    assert json.loads((tmp_path / "t.jsonl").read_text()) == {
        "schema": "geode.timeline/1",
        "session_id": "S1",
        "opened_at": "2030-01-01T00:00:00.000Z",
    }


def test_events_read_back_in_order_with_all_their_fields(tmp_path: Path) -> None:
    """R49: the clock was set back an hour after each; order comes from the sequence, not from the time."""
    write(tmp_path / "t.jsonl", *EVENTS)
    read = list(read_timeline(tmp_path / "t.jsonl"))
    assert [line["seq"] for line in read] == [1, 2, 3, 4]
    assert read[1]["at"] == "2029-12-31T23:00:00.000Z"
    for line, event in zip(read, EVENTS, strict=True):
        assert {key: value for key, value in line.items() if key not in ("seq", "at")} == event_fields(event)


def test_every_event_has_a_kind_of_its_own_and_fields_that_json_has() -> None:
    kinds = [member.kind for member in Event.__args__]
    assert len(set(kinds)) == len(kinds)
    assert set(kinds) == {cls.kind for cls in vars(events).values() if isinstance(cls, type) and hasattr(cls, "kind")}
    assert event_fields(EVENTS[2])["reasons"] == ["a", "b"]


def test_a_torn_line_comes_as_a_notice_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, *EVENTS[:2])
    with path.open("ab") as file:
        file.write(b'{"seq":3,"at":"20')
    write(path, EVENTS[3])
    read = list(read_timeline(path))
    assert [line["seq"] for line in read] == [1, 2, None, 3]
    assert read[2]["kind"] == "notice"
    assert "line 4" in str(read[2]["text"])


def test_a_newer_timeline_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"schema":"geode.timeline/2"}\n{"seq":1,"kind":"notice"}\n')
    with pytest.raises(TimelineNewer, match=r"t\.jsonl has schema 'geode.timeline/2', this version reads"):
        list(read_timeline(tmp_path / "t.jsonl"))


def test_a_preview_says_how_much_it_left_out() -> None:
    assert preview("x" * 400) == "x" * 400
    assert preview("x" * 401) == "x" * 400 + "… [1 more characters]"
