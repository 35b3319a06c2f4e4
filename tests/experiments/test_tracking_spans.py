"""An episode as spans: everything that the timeline says, in its order and at its times, and nothing else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.sinks import StoredEpisode
from experiments.suite import OutcomeKind
from experiments.tracking_spans import EpisodeTrace, NotATimeline, SpanKind, read_trace
from geode.records.timeline import TimelineNewer
from tests.doubles.tracked_episodes import EpisodeMaker, make_experiment


@pytest.fixture
def episode(tmp_path: Path) -> StoredEpisode:
    experiment = make_experiment()
    maker = EpisodeMaker(tmp_path, rounds=4)
    return maker.episode(experiment, experiment.variant("baseline"), experiment.ruler.tasks[0], repetition=2)


@pytest.fixture
def trace(episode: StoredEpisode) -> EpisodeTrace:
    return read_trace(episode)


def test_the_spans_tell_the_episode_in_order(trace: EpisodeTrace) -> None:
    """A reader follows the agent from top to bottom."""
    assert [(span.kind.value, span.name) for span in trace.spans] == [
        ("AGENT", "fix_slugify seed 1 repetition 2"),
        ("LLM", "round 1"),
        ("TOOL", "edit_file"),
        ("LLM", "round 2"),
        ("TOOL", "shell"),
        ("LLM", "round 3"),
        ("TOOL", "read_file"),
        ("LLM", "round 4"),
        ("GUARDRAIL", "hook require_test_run: continue"),
        ("EVALUATOR", "completion check: accept"),
    ]
    starts = [span.start_ns for span in trace.spans]
    assert starts == sorted(set(starts))


def test_no_span_begins_before_what_led_to_it_or_outlasts_the_episode(trace: EpisodeTrace) -> None:
    """A simulated model reports 900 ms where 4 passed: the span shows what passed, the attribute what was reported."""
    root, first, tool = trace.spans[:3]
    assert (first.end_ns - first.start_ns) // 1_000_000 == 4
    assert first.attributes["geode.latency_ms"] == 900
    assert (tool.end_ns - tool.start_ns) // 100_000 == 25  # 2.6 ms by its own clock, less its place in the order
    assert all(root.start_ns <= span.start_ns <= span.end_ns <= root.end_ns for span in trace.spans)


def test_the_sums_are_those_of_the_model_calls(trace: EpisodeTrace) -> None:
    """Cached tokens are input too, and each call is counted once."""
    assert trace.tokens.input == 4 * 1_500
    assert trace.tokens.cache_read == 4 * 500
    assert trace.tokens.output == 4 * 120
    assert trace.tokens.cost_usd == pytest.approx(4 * 0.0042)
    assert [span.kind for span in trace.spans if span.tokens] == [SpanKind.LLM] * 4


def test_a_refused_call_says_where_it_was_refused(trace: EpisodeTrace) -> None:
    """A call that never ran must not look like one that ran and failed."""
    refused, failed = trace.spans[4], trace.spans[6]
    assert refused.error == "refused at pre_hook"
    assert refused.attributes["geode.end"] == "not_started"
    assert failed.error == "error result"
    assert failed.attributes["geode.refused_at"] == ""
    assert trace.spans[2].error == ""


def test_the_root_has_the_prompt_and_the_outcome(trace: EpisodeTrace) -> None:
    """The first look at a trace answers what was asked and what came of it."""
    assert str(trace.root.inputs["prompt"]).startswith("The tests of fix_slugify fail.")
    assert trace.root.outputs["answer"] == "slugify collapses repeated separators; all tests pass."
    assert list(trace.root.outputs)[-3:] == ["answer", "reasons", "outcome"], "what MLflow shows side by side"
    assert trace.root.outputs["outcome"] == "PASS"
    assert trace.root.outputs["transcript"] == f"geode show {trace.record.episode_key[:12]}"
    assert trace.spans[1].outputs["tool_calls"] == ["edit_file"]
    assert trace.spans[2].inputs == {"path": "slugify.py", "old": "-+", "new": "-{2,}"}


def test_only_an_invalid_episode_is_an_error_of_the_agents_span(tmp_path: Path) -> None:
    """FAIL is a measurement; INVALID says that nothing was measured."""
    experiment = make_experiment()
    maker, task = EpisodeMaker(tmp_path), experiment.ruler.tasks[0]
    failed, invalid = (
        read_trace(maker.episode(experiment, experiment.variant("baseline"), task, repetition=number, kind=kind))
        for number, kind in enumerate((OutcomeKind.FAIL, OutcomeKind.INVALID))
    )
    assert failed.root.error == ""
    assert invalid.root.error


def test_a_torn_last_line_is_told_and_the_rest_is_kept(episode: StoredEpisode) -> None:
    """A crash costs the entry that was being written, not the trace."""
    timeline = episode.folder / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes()[:-40])
    trace = read_trace(episode)
    assert [event.name for event in trace.root.events] == ["timeline"]
    assert "cut off" in trace.root.events[0].attributes["text"]
    assert len(trace.spans) == 10


def test_malformed_arguments_are_shown_as_they_were(episode: StoredEpisode) -> None:
    """What the model sent is evidence, also when it is no JSON."""
    timeline = episode.folder / "timeline.jsonl"
    timeline.write_text(timeline.read_text().replace('"arguments":"{', '"arguments":"{{', 1))
    assert read_trace(episode).spans[2].inputs["arguments"].startswith("{{")  # type: ignore[union-attr]


def test_an_episode_that_opened_no_session_is_its_outcome_alone(episode: StoredEpisode) -> None:
    """There is no timeline to be missed: its tools could not be bound, or its process died again and again."""
    (episode.folder / "timeline.jsonl").unlink()
    unopened = replace(episode, record=episode.record.model_copy(update={"session_id": ""}))
    assert [span.kind for span in read_trace(unopened).spans] == [SpanKind.AGENT]
    with pytest.raises(FileNotFoundError):
        read_trace(episode)


def test_what_a_provider_did_not_say_is_left_out_of_the_sums_and_named(episode: StoredEpisode) -> None:
    """MLflow has no word for unknown, and an episode of which a figure is missing is still shown there."""
    timeline = episode.folder / "timeline.jsonl"
    entries = [json.loads(line) for line in timeline.read_text().splitlines()]
    first = next(entry for entry in entries if entry.get("kind") == "model_called")
    first |= {"cache_read_tokens": None, "cost_usd": None}
    timeline.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    trace = read_trace(episode)
    assert trace.tokens.cache_read == 3 * 500
    assert trace.tokens.cost_usd == pytest.approx(3 * 0.0042)
    unknown = [span.attributes.get("geode.unknown") for span in trace.spans if span.tokens]
    assert unknown == ["cache_read_tokens, cost_usd", None, None, None]


def test_an_entry_without_its_field_names_the_file(episode: StoredEpisode) -> None:
    """Guessing a zero would put a false sum beside true ones."""
    timeline = episode.folder / "timeline.jsonl"
    timeline.write_text(timeline.read_text().replace('"output_tokens"', '"outputs"', 1))
    with pytest.raises(NotATimeline, match=r"timeline\.jsonl.*output_tokens"):
        read_trace(episode)


def test_a_newer_timeline_is_refused(episode: StoredEpisode) -> None:
    """A newer version may mean something else by the same word."""
    timeline = episode.folder / "timeline.jsonl"
    timeline.write_text(timeline.read_text().replace("geode.timeline/1", "geode.timeline/2"))
    with pytest.raises(TimelineNewer):
        read_trace(episode)
