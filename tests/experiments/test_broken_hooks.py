"""A hook that fails is found in the timelines of an episode, and told beside every figure that it may have bent."""

from dataclasses import replace
from pathlib import Path

from experiments.broken_hooks import broken_hooks, broken_hooks_warnings
from geode.clock import ManualClock
from geode.events import HookDecided
from geode.records.timeline import SessionTimeline
from tests.doubles.cells import make_cells


def decided(hook: str, reason: str, *, broken: bool) -> HookDecided:
    decision = "broken" if broken else "addcontext"
    return HookDecided(turn=1, round=2, point="PostToolUse", hook=hook, decision=decision, reason=reason, broken=broken)


def timeline(folder: Path, *events: HookDecided) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = SessionTimeline(folder / "timeline.jsonl", "01JZ", ManualClock())
    for event in events:
        lines(event)
    lines.close()


def test_each_broken_hook_is_named_with_what_went_wrong_first(tmp_path: Path) -> None:
    """Later failures of a hook tend to follow from its first one. A hook that decides is not broken."""
    timeline(
        tmp_path,
        decided("remind", "Run the check.", broken=False),
        decided("look", "it raised KeyError: 'path'", broken=True),
        decided("look", "it raised ValueError: memory", broken=True),
    )
    assert broken_hooks(tmp_path) == {"look": "at PostToolUse it raised KeyError: 'path'"}


def test_hooks_are_asked_in_sub_agents_too(tmp_path: Path) -> None:
    """A sub-agent works under its parent's hooks, with a timeline of its own."""
    timeline(tmp_path, decided("remind", "Run the check.", broken=False))
    timeline(tmp_path / "children" / "a", decided("look", "it took more than 5 s", broken=True))
    assert broken_hooks(tmp_path) == {"look": "at PostToolUse it took more than 5 s"}


def test_a_folder_without_a_timeline_has_none(tmp_path: Path) -> None:
    """An episode whose session never opened is INVALID, and that is all there is to say."""
    assert broken_hooks(tmp_path) == {}


def test_the_warning_counts_episodes_and_says_why() -> None:
    """How many are concerned tells a rare slip from a hook that never worked."""
    baseline, hooked = make_cells({"baseline": {"a": "PFP"}, "hook": {"a": "PPP"}})
    broken = {"look": "at PostToolUse it raised KeyError: 'path'"}
    episodes = [
        replace(stored, record=stored.record.model_copy(update={"broken_hooks": broken if number else {}}))
        for number, stored in enumerate(hooked.episodes)
    ]
    assert list(broken_hooks_warnings([baseline, replace(hooked, episodes=tuple(episodes))])) == [
        "the hook 'look' is broken in 2 of 3 episodes of hook, which counts as its strictest answer:"
        " at PostToolUse it raised KeyError: 'path'"
    ]
