"""What a turn does is the same on all wires: the assertions know no provider, the double refuses what is ill formed."""

import json
from itertools import pairwise

import pytest

from geode.dev.fake_provider.script import Call, Ending, Figures, Step, Thinking
from geode.events import ModelCalled
from geode.llm.messages import DeltaKind
from geode.loop.turn import TurnStop
from geode.scaffold import LoopLimits
from geode.tools.spec import ToolFailed
from tests.doubles.effects import OutsideWorld, marking_tool, raising, tool
from tests.llm.behaviour.conftest import House

THOUGHT = (Thinking(text="First look, then mark."), Thinking(text=""), Thinking(text="opaque", redacted=True))
ASKS = (
    Call(name="mark", arguments={"b": 2, "a": [1.5, None, "\u00e9\U0001f600"]}),
    Call(name="fail", arguments={}),
    Call(name="nobody_has_it", arguments={"x": 1}),
    Call(name="mark", arguments='{"broken": '),
    Call(name="exact", arguments={"n": "not a number"}),
    Call(name="mark", arguments={}),
    Call(name="mark", arguments={"n": 7}),
    Call(name="fail", arguments={"again": True}),
)
EXACT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.fixture
def world(tmp_path):
    return OutsideWorld(tmp_path / "effects.log")


def tools(world: OutsideWorld):
    return (
        marking_tool(world),
        tool(raising(ToolFailed("it is broken")), name="fail"),
        tool(raising(AssertionError("never dispatched")), name="exact", schema=EXACT),
    )


@pytest.mark.parametrize("count", range(1, 9))
async def test_every_call_gets_one_result_in_order_and_the_model_goes_on(
    house: House, world: OutsideWorld, count: int
) -> None:
    """PROVIDERS 11, 12, 13: 1 to 8 parallel calls, some of which fail, are unknown or make no sense."""
    asked = ASKS[:count]
    house.play(Step(text="I mark.", thinking=THOUGHT, calls=asked), Step(text="All done."))
    bench = house.open(*tools(world))

    result = await bench.loop.arun("Mark it.")

    assert (result.stop, result.text) == (TurnStop.COMPLETED, "All done.")
    assert result.tool_calls == count
    use = bench.loop.messages[1].tool_uses
    answers = house.wire.answers(house.bodies[1])
    assert [call_id for call_id, _ in answers] == [call.call_id for call in use]
    assert [call.name for call in use] == [call.name for call in asked]
    for call, (_, text) in zip(asked, answers, strict=True):
        sound = call.name == "mark" and not isinstance(call.arguments, str)
        assert (text == "marked") is sound, text
    marked = [call for call in asked if call.name == "mark" and not isinstance(call.arguments, str)]
    assert len(world.effects) == len(marked)
    assert json.loads(world.effects[0].removeprefix("mark ")) == ASKS[0].arguments


async def test_what_a_model_said_goes_back_word_by_word_with_every_later_request(
    house: House, world: OutsideWorld
) -> None:
    """PROVIDERS 14, 15, 19: reasoning, seals and unknown blocks come back unchanged, with the same tools each time."""
    house.play(
        Step(thinking=THOUGHT, text="One.", calls=(Call(name="mark", arguments={"z": 1, "a": 2}),)),
        Step(thinking=THOUGHT, calls=(Call(name="mark", arguments={}), Call(name="fail", arguments={}))),
        Step(thinking=THOUGHT, text="Two."),
        Step(text="Three."),
    )
    bench = house.open(*tools(world))
    first = await bench.loop.arun("Mark twice.")
    second = await house.open(*tools(world)).loop.arun("And now?")

    assert (first.text, second.text) == ("Two.", "Three.")
    bodies = house.bodies
    history = [body.get("messages") or body.get("input") for body in bodies]
    bare = [[_unmarked(item) for item in items] for items in history]
    for earlier, later in pairwise(bare):
        assert later[: len(earlier)] == earlier
        assert json.dumps(later[: len(earlier)]) == json.dumps(earlier), "the order of keys is a part of it"
    kept = ("model", "tools", "system", "instructions", "thinking", "reasoning", "provider")
    assert len({json.dumps([body.get(name) for name in kept]) for body in bodies}) == 1


def _unmarked(item):
    """An item without the marks of a cache, which move on with the conversation and are no part of what was said."""
    if isinstance(item, dict):
        return {key: _unmarked(value) for key, value in item.items() if key != "cache_control"}
    return [_unmarked(part) for part in item] if isinstance(item, list) else item


async def test_a_refusal_ends_the_turn_as_such_and_the_next_prompt_is_answered(house: House) -> None:
    """PROVIDERS 17: a refusal is neither an error, which would be tried again, nor an answer."""
    house.play(Step(refusal="That I do not do."), Step(text="Gladly."))
    bench = house.open()

    refused = await bench.loop.arun("Do what is not done.")
    answered = await bench.loop.arun("Say hello.")

    assert refused.stop is TurnStop.MODEL_REFUSED
    assert not refused.verified
    assert "That I do not do." in refused.text + refused.detail
    assert (answered.stop, answered.text) == (TurnStop.COMPLETED, "Gladly.")
    assert len(house.bodies) == 2


async def test_a_reply_that_is_to_be_gone_on_with_is_no_answer(house: House) -> None:
    """PROVIDERS 16: a pause is sent back as it is; where no reply pauses, one that was cut is gone on with."""
    house.play(
        Step(thinking=THOUGHT[:1], text="So far", ending=house.wire.unfinished),
        Step(text="The whole answer."),
    )
    bench = house.open()

    result = await bench.loop.arun("Answer at length.")

    assert (result.stop, result.text) == (TurnStop.COMPLETED, "The whole answer.")
    assert "So far" in json.dumps(house.bodies[1])
    if house.wire.pauses:
        assert house.bodies[1]["messages"][-1]["role"] == "assistant", "no user turn is added"


async def test_replies_that_never_end_are_gone_on_with_a_limited_number_of_times(house: House) -> None:
    """PROVIDERS 16: bounded."""
    house.play(then=Step(text="So far", ending=house.wire.unfinished))
    bench = house.open(limits=LoopLimits(cut_answers_in_a_row=3))

    result = await bench.loop.arun("Answer at length.")

    assert result.stop is TurnStop.CUT_ANSWERS
    assert len(house.bodies) == 3


async def test_a_call_that_was_cut_at_the_limit_is_answered_and_not_run(house: House, world: OutsideWorld) -> None:
    """PROVIDERS 13: its arguments may be half of what was meant, also where they are sound JSON."""
    half = (Call(name="mark", arguments={"n": 1}), Call(name="mark", arguments='{"n": 2, "and'))
    house.play(Step(thinking=THOUGHT, text="Both.", calls=half, ending=Ending.LENGTH), Step(text="Then not."))
    bench = house.open(*tools(world))

    result = await bench.loop.arun("Mark twice.")

    assert (result.stop, result.text) == (TurnStop.COMPLETED, "Then not.")
    assert world.effects == []
    assert ["cut at the output limit" in text for _, text in house.wire.answers(house.bodies[1])] == [True, True]


async def test_a_stop_that_nobody_knows_is_an_error_and_never_an_answer(house: House) -> None:
    """PROVIDERS 18."""
    house.play(Step(text="Looks like an answer.", ending="sunspots"))

    result = await house.open().loop.arun("Answer.")

    assert result.stop is TurnStop.MODEL_FAILED
    assert "UnknownStop" in result.detail
    assert "sunspots" in result.detail
    assert len(house.bodies) == 1


async def test_another_model_than_the_bound_one_fails_the_turn_and_its_cost_counts(house: House) -> None:
    """PROVIDERS 25, 26."""
    house.play(Step(text="An answer.", served_model="somebody-else"))

    result = await house.open().loop.arun("Answer.")

    assert result.stop is TurnStop.MODEL_FAILED
    assert "ServedModelDiffers" in result.detail
    assert "'somebody-else'" in result.detail
    assert result.cost_usd_known > 0


async def test_what_is_shown_while_it_comes_is_what_was_said(house: House, world: OutsideWorld) -> None:
    said = "A long line that comes in more than one piece, and then some."
    house.play(Step(thinking=THOUGHT[:1], text=said, calls=ASKS[:1]), Step(text="Done."))

    await house.open(*tools(world)).loop.arun("Mark it.")

    shown = {kind: "".join(delta.text for delta in house.seen if delta.kind is kind) for kind in DeltaKind}
    assert shown[DeltaKind.TEXT] == said + "Done."
    assert shown[DeltaKind.REASONING] == THOUGHT[0].text
    assert shown[DeltaKind.TOOL] == "mark"
    assert not shown[DeltaKind.AGAIN]
    assert len(house.seen) > 5


async def test_tokens_and_cost_are_those_that_the_provider_says(house: House) -> None:
    """PROVIDERS 23, 24: input counts each token once, whatever a wire calls a part of what."""
    figures = Figures(input_tokens=100, cache_read_tokens=1_000, output_tokens=50, reasoning_tokens=20)
    house.play(Step(text="Done.", figures=figures))
    bench = house.open()

    result = await bench.loop.arun("Answer.")

    usage = result.usage
    assert (usage.uncached_input_tokens, usage.cache_read_tokens, usage.input_tokens) == (100, 1_000, 1_100)
    assert (usage.output_tokens, usage.reasoning_tokens, usage.total_tokens) == (50, 20, 1_150)
    called = [event for event in bench.events if isinstance(event, ModelCalled)]
    assert called[0].request_id
    assert called[0].cost_origin in ("computed", "reported")
    if called[0].cost_origin == "computed":
        assert result.cost_usd_known == pytest.approx((100 * 4 + 1_000 * 0.4 + 50 * 20) / 1e6)
