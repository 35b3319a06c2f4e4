"""An episode can be found by a short name and read as far as it can be read, whatever happened to its folder."""

import io
import json
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from analysis.show import EpisodeNotFound, EpisodeView, find_folder, view_folder, view_to_json
from analysis.show_text import print_view
from experiments.plan import EpisodeSpec
from experiments.records import Caps
from experiments.sinks import Cell
from geode.config.paths import StateRoot
from geode.events import (
    CallEnded,
    CheckEnded,
    ContextCompacted,
    Event,
    HookDecided,
    ModelCalled,
    ModelFailed,
    Notice,
    PromptReceived,
    SessionOpened,
    TurnEnded,
)
from geode.records.timeline import TimelineNewer
from tests.doubles.cells import make_cells, store_cells, write_timeline

OPENED = SessionOpened(
    mode="experiment", scaffold_id="0" * 12, model="simulated/apprentice", plan_hash="a" * 64, resumed=False
)
PROMPT = PromptReceived(turn=1, text="Mend the script.")
MODEL = ModelCalled(
    turn=1, round=1, stop="tool_use", served_model="apprentice", simulated=True, latency_ms=900,
    uncached_input_tokens=1_000, cache_write_tokens=0, cache_read_tokens=500, output_tokens=120, cost_usd=0.0042,
    text="I look at the file.",
)  # fmt: skip


def call(**changes: object) -> CallEnded:
    fields: dict[str, object] = {
        "turn": 1, "round": 1, "call_id": "c1", "tool": "read_file", "arguments": '{"path": "a.py"}',
        "end": "succeeded", "is_error": False, "stage": "", "elapsed_ms": 3.21, "result": "print(1)", "result_chars": 8,
    }  # fmt: skip
    return CallEnded(**{**fields, **changes})  # type: ignore[arg-type]


HOOK = HookDecided(
    turn=1, round=1, point="stop", hook="require_test_run", decision="continue", reason="No test was run.", broken=False
)
CHECK = CheckEnded(turn=1, round=2, passed=False, decision="repair", reasons=("no test ran",), repairs_used=1)
END = TurnEnded(turn=1, stop_reason="completed", verified=True, rounds=2, repairs_used=1, text="All is well.")


@pytest.fixture
def root(tmp_path: Path) -> StateRoot:
    return StateRoot(tmp_path)


@pytest.fixture
def cells(root: StateRoot) -> list[Cell]:
    cells = make_cells({"baseline": {"fix_a": "FP"}, "hook": {"fix_a": "PP"}})
    store_cells(root, cells)
    return cells


def folder_of(root: StateRoot, cell: Cell, events: tuple[Event, ...] = (OPENED, PROMPT, MODEL, call(), END)) -> Path:
    return write_timeline(root.episode(cell.episodes[0].record.episode_key), events)


def screen(view: EpisodeView, *, full: bool = False) -> str:
    console = Console(file=io.StringIO(), width=120, highlight=False, force_terminal=True, color_system=None)
    print_view(console, view, full=full)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_short_prefix_or_a_path_finds_the_folder(root: StateRoot, cells: list[Cell], tmp_path: Path) -> None:
    """Nobody types 64 digits."""
    folder = folder_of(root, cells[0])
    assert find_folder(root, folder.name[:6]) == folder
    assert find_folder(root, folder.name.upper()[:12]) == folder
    assert find_folder(root, str(folder)) == folder.resolve()
    assert find_folder(root, str(folder / "timeline.jsonl")) == folder.resolve()


def test_what_finds_nothing_or_too_much_says_what_to_do(root: StateRoot) -> None:
    """An ambiguous prefix lists the candidates; a guess would show the wrong episode."""
    for ending in ("0" * 56, "1" * 56):
        write_timeline(root.episode("abcdef12" + ending), (OPENED,))
    with pytest.raises(EpisodeNotFound, match="2 episodes begin with 'abcdef'") as ambiguous:
        find_folder(root, "abcdef")
    assert "abcdef120000" in str(ambiguous.value)
    assert "abcdef121111" in str(ambiguous.value)
    assert "unfinished" in str(ambiguous.value)
    with pytest.raises(EpisodeNotFound, match="at least 6 digits"):
        find_folder(root, "abc")
    with pytest.raises(EpisodeNotFound, match="geode ls names what there is"):
        find_folder(root, "123456")
    with pytest.raises(EpisodeNotFound, match="no episode key and no folder"):
        find_folder(root, "hook_ablation")


def test_the_header_says_what_it_is_and_what_came_of_it(root: StateRoot, cells: list[Cell]) -> None:
    """Task, variant, model with its label, outcome with reasons, price."""
    text = screen(view_folder(root, folder_of(root, cells[0])))
    for fact in (
        "fix_a", "ablation/baseline", "SIMULATED: SAYS NOTHING ABOUT A LANGUAGE MODEL", "FAIL", "the test still fails",
        "6 rounds", "2 repairs", "900 tokens in, 100 out", "$0.0125",
    ):  # fmt: skip
        assert fact in text


def test_all_that_happened_is_told_in_order(root: StateRoot, cells: list[Cell]) -> None:
    """Every kind of event has its line, refused calls and broken hooks included."""
    broken = HookDecided(
        turn=1, round=1, point="pre_tool_use", hook="guard", decision="block", reason="it hung", broken=True
    )
    events = (
        OPENED, PROMPT, MODEL, call(), call(stage="policy", end="not_started", is_error=True, result="not allowed"),
        call(tool="shell", end="uncertain"), HOOK, broken, ContextCompacted(turn=1, round=2, elided_rounds=3),
        ModelFailed(turn=1, round=2, error="overloaded"), CHECK, Notice(about="history", text="was repaired"), END,
    )  # fmt: skip
    text = screen(view_folder(root, folder_of(root, cells[0], events)))
    told = (
        "session opened", "prompt", "Mend the script.", "round 1", "1,500 tokens in, 120 out", "I look at the file.",
        'read_file {"path": "a.py"}  3.2 ms', "print(1)", "REFUSED at policy", "not allowed", "uncertain",
        "hook require_test_run at stop: continue", "No test was run.", "BROKEN", "3 older rounds", "overloaded",
        "check failed: repair, 1 repairs used", "no test ran", "was repaired", "end: completed, verified",
        "All is well.",
    )  # fmt: skip
    assert sorted(told, key=text.index) == list(told)
    assert "0.500" in text


def test_a_call_that_is_repeated_with_the_same_result_is_told_in_a_word(root: StateRoot, cells: list[Cell]) -> None:
    """Forty equal calls are one finding."""
    events = (OPENED, call(), call(call_id="c2", round=2, elapsed_ms=9.0), call(call_id="c3", result="print(2)"))
    text = screen(view_folder(root, folder_of(root, cells[0], events)))
    assert text.count("the same call, the same result") == 1
    assert text.count("print(") == 2


def test_text_from_a_tool_prints_literally(root: StateRoot, cells: list[Cell]) -> None:
    """Neither rich markup nor an escape sequence in a result may style, hide or move anything."""
    hostile = "[red]danger[/red] \x1b[2J\x1b]0;title\x07 [link=http://x]y[/link]"
    events = (OPENED, call(result=hostile, arguments=hostile, tool="[b]t"), TurnEnded(
        turn=1, stop_reason="completed", verified=False, rounds=1, repairs_used=0, text=hostile))  # fmt: skip
    text = screen(view_folder(root, folder_of(root, cells[0], events)))
    assert text.count(r"[red]danger[/red] \x1b[2J\x1b]0;title\x07 [link=http://x]y[/link]") == 3
    assert "\x1b" not in text
    assert "[b]t" in text


def test_long_results_are_cut_with_their_count_and_shown_on_request(root: StateRoot, cells: list[Cell]) -> None:
    """The screen stays readable, and nothing is cut without saying so."""
    events = (OPENED, call(result="\n".join(f"line {number}" for number in range(30))))
    view = view_folder(root, folder_of(root, cells[0], events))
    assert "more characters: --full" in screen(view)
    assert "line 29" not in screen(view)
    assert "line 29" in screen(view, full=True)
    assert "more characters" not in screen(view, full=True)


def test_an_unfinished_episode_is_shown_from_its_spec(root: StateRoot, cells: list[Cell]) -> None:
    """What a killed process left is what one wants to look at."""
    record, variant = cells[1].episodes[0].record, cells[1].variant
    folder = folder_of(root, cells[1], (OPENED, PROMPT))
    (folder / "episode.json").unlink()
    spec = EpisodeSpec(
        episode_key=record.episode_key, scaffold_id=record.scaffold_id, suite="workspace", task_id=record.task_id,
        family=record.family, task_hash=record.task_hash, seed=record.seed, repetition=record.repetition,
        roles=record.roles, caps=Caps(), scaffold=variant.scaffold,
    )  # fmt: skip
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec.model_dump(mode="json", by_alias=True)))
    view = view_folder(root, folder)
    assert view.record is None
    assert not view.damaged
    assert view.used_by == ("ablation/hook",)
    assert "unfinished: there is no episode.json" in screen(view)
    assert "Mend the script." in screen(view)


def test_a_torn_last_line_is_reported_and_the_rest_is_shown(root: StateRoot, cells: list[Cell]) -> None:
    """A crash tears at most the last line; the reader is told."""
    folder = folder_of(root, cells[0], (OPENED, PROMPT))
    with (folder / "timeline.jsonl").open("a") as file:
        file.write('{"seq":3,"at":"2030-01')
    view = view_folder(root, folder)
    assert len(view.events) == 2
    assert "line 4 is cut off and was skipped" in screen(view)


def test_lines_of_other_shapes_are_shown_raw(root: StateRoot, cells: list[Cell]) -> None:
    """What a hand or another program wrote into the file is no reason to hide the rest."""
    folder = folder_of(root, cells[0], (OPENED, PROMPT))
    with (folder / "timeline.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "odd"}\n{"seq": "three", "at": 5}\n[]\n{"seq": null}\n')
    view = view_folder(root, folder)
    assert view.problems == ("timeline.jsonl line 6 is no object and was skipped",)
    assert '{"kind": "odd"}' in screen(view)
    assert "Mend the script." in screen(view)


def test_a_timeline_without_events_is_no_record_of_many_rounds(root: StateRoot, cells: list[Cell]) -> None:
    """An emptied file looks like an episode in which nothing happened."""
    folder = folder_of(root, cells[0])
    (folder / "timeline.jsonl").write_bytes(b"")
    view = view_folder(root, folder)
    assert view.damaged
    assert "holds no event" in view.problems[0]


def test_a_gap_in_the_timeline_is_reported(root: StateRoot, cells: list[Cell]) -> None:
    """Lines that were taken out must not go unnoticed."""
    folder = folder_of(root, cells[0])
    lines = (folder / "timeline.jsonl").read_text().splitlines(keepends=True)
    (folder / "timeline.jsonl").write_text("".join(lines[:2] + lines[4:]))
    assert "goes from event 1 to 4" in screen(view_folder(root, folder))


def test_damage_is_named_with_the_file_and_the_next_step(root: StateRoot, cells: list[Cell]) -> None:
    """A damaged record hides neither itself nor what is still readable."""
    folder = folder_of(root, cells[0])
    (folder / "episode.json").write_text('{"schema":"geode.episode/9"}')
    view = view_folder(root, folder)
    assert view.damaged
    assert f"{folder / 'episode.json'} is damaged: its schema is 'geode.episode/9'" in view.problems[0]
    assert "damaged=set_aside" in view.problems[0]
    assert "Mend the script." in screen(view)


def test_a_lost_timeline_leaves_the_outcome(root: StateRoot, cells: list[Cell]) -> None:
    """The record is the truth of the outcome; that the timeline is gone is said."""
    view = view_folder(root, root.episode(cells[0].episodes[0].record.episode_key))
    assert view.damaged
    assert "timeline.jsonl is gone" in screen(view)
    assert "FAIL" in screen(view)


def test_a_folder_in_which_nothing_happened_is_no_episode(root: StateRoot, tmp_path: Path) -> None:
    """An empty screen would read as an empty episode."""
    with pytest.raises(EpisodeNotFound, match=r"neither timeline\.jsonl nor episode\.json"):
        view_folder(root, tmp_path)


def test_a_timeline_of_a_newer_version_is_refused(root: StateRoot, cells: list[Cell]) -> None:
    """Reading it by the old rules could show what did not happen."""
    folder = folder_of(root, cells[0])
    lines = (folder / "timeline.jsonl").read_text().replace("geode.timeline/1", "geode.timeline/2")
    (folder / "timeline.jsonl").write_text(lines)
    with pytest.raises(TimelineNewer, match=r"geode\.timeline/2"):
        view_folder(root, folder)


def test_an_event_of_an_unknown_kind_is_shown_raw(root: StateRoot, cells: list[Cell]) -> None:
    """A reader rather sees it raw than not at all."""
    folder = folder_of(root, cells[0], (OPENED,))
    with (folder / "timeline.jsonl").open("a") as file:
        file.write('{"seq":2,"at":"2030-01-01T00:00:01.000Z","kind":"dream","text":"sheep"}\n')
        file.write('{"seq":3,"at":"never","kind":"prompt_received","turn":"x"}\n')
    text = screen(view_folder(root, folder))
    assert '"kind": "dream"' in text
    assert '"turn": "x"' in text


def test_a_session_without_an_experiment_is_shown_too(root: StateRoot, tmp_path: Path) -> None:
    """Production sessions have the same layout."""
    text = screen(view_folder(root, write_timeline(tmp_path / "01JZ", (OPENED, PROMPT))))
    assert "session" in text
    assert "simulated/apprentice" in text
    assert "unfinished" not in text


def test_everything_is_json(root: StateRoot, cells: list[Cell]) -> None:
    """A program reads the same record, events and problems."""
    body = json.loads(json.dumps(view_to_json(view_folder(root, folder_of(root, cells[0])))))
    assert body["schema"] == "geode.shown/1"
    assert body["record"]["outcome"]["kind"] == "FAIL"
    assert [event["kind"] for event in body["events"]][:2] == ["session_opened", "prompt_received"]
    assert body["used_by"] == ["ablation/baseline"]
