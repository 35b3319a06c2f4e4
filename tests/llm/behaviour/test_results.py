"""Whatever calls a model makes, and wherever the process ends, the next request has exactly one result for each."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geode.dev.fake_provider.script import Call, Step, Thinking
from geode.dev.fake_provider.server import FakeProvider
from geode.loop.turn import TurnStop
from geode.tools.spec import Arguments, ToolFailed, ToolOutput, ToolSpec
from tests.doubles.effects import OutsideWorld, marking_tool, raising, tool
from tests.llm.behaviour.conftest import House
from tests.llm.behaviour.wires import WIRES, Wire

pytestmark = pytest.mark.slow

CALL = st.one_of(
    st.builds(
        Call, name=st.just("mark"), arguments=st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=2)
    ),
    st.builds(Call, name=st.sampled_from(["fail", "nobody_has_it"])),
    st.builds(Call, name=st.just("mark"), arguments=st.sampled_from(["", "{", '"text"', "[1]", "null", "nonsense"])),
    st.just(Call(name="hang")),
)
ROUND = st.lists(CALL, min_size=1, max_size=8)


def tools(world: OutsideWorld, stuck: asyncio.Event) -> tuple[ToolSpec, ...]:
    async def hang(_: Arguments) -> ToolOutput:
        stuck.set()
        return await asyncio.get_running_loop().create_future()

    return (
        marking_tool(world),
        tool(raising(ToolFailed("broken")), name="fail"),
        tool(hang, name="hang", timeout_s=9_999),
    )


async def lived(house: House, world: OutsideWorld) -> None:
    """Let a prompt be worked on by one process after another; each that hangs is ended, and the next goes on."""
    begun = False
    while True:
        stuck = asyncio.Event()
        bench = house.open(*tools(world, stuck))
        work = asyncio.create_task(bench.loop.aresume() if begun else bench.loop.arun("Do it."))
        begun = True
        hung = asyncio.create_task(stuck.wait())
        await asyncio.wait({work, hung}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
        hung.cancel()
        try:
            result = await work
        except asyncio.CancelledError:
            continue
        assert result.stop in (TurnStop.COMPLETED, TurnStop.ESCALATED), result
        return


@pytest.mark.parametrize("wire", WIRES, ids=str)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rounds=st.lists(ROUND, min_size=1, max_size=3))
def test_each_call_has_one_result_in_the_request_that_follows(
    running: FakeProvider, wire: Wire, rounds: list[list[Call]]
) -> None:
    """PROVIDERS 11, 12: 1 to 8 calls a round, sound, failing, senseless, or under way when the process ended."""
    thinking = (Thinking(text="I go on."), Thinking(text=""))
    with tempfile.TemporaryDirectory() as folder:
        world, house = OutsideWorld(Path(folder) / "effects.log"), House(Path(folder) / "session", wire, running)
        house.play(*(Step(thinking=thinking, calls=tuple(calls)) for calls in rounds), Step(text="Done."))
        asyncio.run(lived(house, world))
        messages, effects = house.messages, len(world.effects)
        house.close()

    assert all(request.status == 200 for request in running.requests), "the double refuses what is ill formed"
    assert len(running.requests) == len(rounds) + 1
    asked = [message.tool_uses for message in messages if message.tool_uses]
    for calls, uses, body in zip(rounds, asked, house.bodies[1:], strict=True):
        assert [call.name for call in calls] == [use.name for use in uses]
        answers = house.wire.answers(body)
        assert [call_id for call_id, _ in answers] == [use.call_id for use in uses]
        assert all(text for _, text in answers)
    calls_of_mark = [call for calls in rounds for call in calls if call.name == "mark"]
    # Empty text is no arguments; a call that comes after one that hangs may not have begun.
    assert effects <= sum(not isinstance(call.arguments, str) or call.arguments == "" for call in calls_of_mark)
