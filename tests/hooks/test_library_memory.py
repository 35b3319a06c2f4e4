"""Facts of the memories of all hooks that ship: they survive a restart, have a bound, and are never half taken."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from geode.hooks.library import ABLATED, LIBRARY, UnknownHook
from geode.hooks.points import (
    HookEvent,
    HookPoint,
    Pass,
    PromptSubmitted,
    Stopping,
    ToolEnded,
    ToolProposed,
    TurnVerified,
)
from geode.hooks.registry import HookRegistry
from tests.hooks.library_events import answered, asked, ended, hook, proposed, stopping

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a.py", "src/b.py", "sh test.sh", "rm -rf src", "/workspace/a.py"])
TOOLS = st.sampled_from(["read_file", "write_file", "edit_file", "list_files", "search", "shell"])
TEXTS = st.sampled_from(["ok", "a.py\nsrc/", "src/b.py:3: x", "exit code: 1\nsrc/b.py is wrong", ""])
EVENTS = st.one_of(
    st.builds(ended, TOOLS, NAMES, TEXTS, is_error=st.booleans(), at=st.integers(1, 9), left=st.integers(0, 9)),
    st.builds(proposed, TOOLS, NAMES, said=st.sampled_from(["", "- one\n- two"]), at=st.integers(1, 9)),
    st.builds(asked, st.sampled_from(["Mend a.py.", "Write c.py."])),
    st.builds(answered, st.sampled_from(["Done.", "All tests pass.", "I created c.py."])),
    st.builds(stopping),
)


POINTS = {
    PromptSubmitted: HookPoint.USER_PROMPT_SUBMIT,
    ToolProposed: HookPoint.PRE_TOOL_USE,
    ToolEnded: HookPoint.POST_TOOL_USE,
    TurnVerified: HookPoint.POST_VERIFY,
    Stopping: HookPoint.STOP,
}


def asked_at(event: HookEvent) -> HookPoint:
    return POINTS[type(event)]  # type: ignore[index]  (the library's hooks are at these points only)


@pytest.mark.parametrize("name", LIBRARY)
@given(before=st.lists(EVENTS, max_size=8), after=st.lists(EVENTS, max_size=4))
async def test_a_restored_hook_decides_as_the_one_that_died(
    name: str, before: list[HookEvent], after: list[HookEvent]
) -> None:
    """After a restart the guards are as they were, not as new; and no event makes one fail or talk nonsense."""
    lived = hook(name)
    registry = HookRegistry([lived])
    for event in before:
        if asked_at(event) in lived.points:
            answer = await registry.ask_one(lived, asked_at(event), event)
            assert answer is None or not answer.broken
    again = hook(name)
    again.restore(json.loads(json.dumps(lived.snapshot())))
    assert again.snapshot() == lived.snapshot()
    for event in after:
        assert await again.decide(event) == await lived.decide(event)


@pytest.mark.parametrize("name", LIBRARY)
async def test_a_memory_does_not_grow_without_end(name: str) -> None:
    """It is saved with every round, so a long session would pay for it again and again."""
    watches = hook(name)
    long = string.ascii_letters * 50
    for n in range(1_200):
        await watches.decide(asked(f"{n}.md " * 50))
        for tool in ("write_file", "read_file", "shell", "list_files"):
            await watches.decide(ended(tool, f"{n}{long}", f"{n}{long}\n" * 3, is_error=tool == "shell", at=n))
        await watches.decide(proposed("write_file", f"{n}", at=n))
    assert len(json.dumps(watches.snapshot())) < 250_000


@pytest.mark.parametrize("name", sorted(set(LIBRARY) - set(ABLATED)))
@pytest.mark.parametrize("damaged", [[1], {"unknown": 1}, "x"])
async def test_a_memory_of_another_shape_makes_the_hook_broken(name: str, damaged: JsonValue) -> None:
    """A guard that starts over as if it had seen nothing would let through what it had settled."""
    guard = hook(name)
    if guard.snapshot() is None:
        return  # it has no memory that could be damaged
    registry = HookRegistry([guard])
    registry.restore({name: damaged})
    answer = await registry.ask_one(guard, next(iter(guard.points)), asked())
    assert answer is not None
    assert "its memory is lost" in answer.problem


@pytest.mark.parametrize("name", LIBRARY)
async def test_each_hook_has_its_name_and_refuses_an_option_that_it_does_not_know(name: str) -> None:
    assert hook(name).name == name
    with pytest.raises(UnknownHook, match=rf"hook '{name}' does not take these options \(nonsense: "):
        hook(name, nonsense=1)


async def test_the_events_above_reach_every_point() -> None:
    """The tests of this file can fail: each kind of event finds its point."""
    events: list[HookEvent] = [asked(), proposed("shell", "ls"), ended("shell", "ls"), answered(), stopping()]
    assert {asked_at(event) for event in events} == {point for name in LIBRARY for point in hook(name).points}
    assert await hook("trim_results").decide(answered()) == Pass()
