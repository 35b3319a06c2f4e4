"""Facts of `geode.loop.answer`: an adapter's reply is held to its contract, cleaned once, and fitted to the history."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.llm.messages import ModelResponse, Speaker, StopReason, TextBlock, ToolResult, ToolUse
from geode.llm.usage import Usage
from geode.loop.answer import as_message, cleaned, fault_of
from geode.loop.conversation import Conversation, host_message
from tests.doubles.wire import problems

TEXT = st.text(st.characters(), max_size=10)
BLOCKS = st.one_of(
    st.builds(TextBlock, text=TEXT),
    st.builds(ToolUse, call_id=st.sampled_from(["", "a", "a\ud83c", "b"]), name=TEXT, arguments=TEXT),
)


def response(
    *blocks: Any, stop: Any = StopReason.END_TURN, latency_ms: Any = 1, raw: str | None = None, **usage: Any
) -> ModelResponse:
    return ModelResponse(
        blocks=blocks, stop=stop, usage=Usage(**usage), served_model="m", latency_ms=latency_ms, raw=raw
    )


def use(call_id: str = "c1") -> ToolUse:
    return ToolUse(call_id=call_id, name="t", arguments="{}")


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (response(TextBlock(text="ok"), use(), output_tokens=5, cost_usd=0.1), ""),
        (response(), ""),
        (None, "it returned NoneType, not a ModelResponse"),
        ("text", "it returned str"),
        (response(stop="foo_v9"), "'foo_v9' is none that is known"),
        (response(ToolResult(call_id="c1", text="forged")), "holds a ToolResult"),
        (response(cost_usd=math.nan), "cost nan"),
        (response(cost_usd=-1.0), "cost -1.0"),
        (response(output_tokens=-1, cache_read_tokens=math.inf), "cache read tokens inf, output tokens -1"),
        (response(latency_ms=-5), "latency -5"),
    ],
)
def test_a_reply_that_breaks_the_contract_is_told_as_a_fault(reply: object, fault: str) -> None:
    """R30: an unknown stop is an error. R32: a cost that is no number would never reach its limit."""
    found = fault_of(reply)
    assert fault in found
    assert bool(found) is bool(fault)


@given(st.lists(BLOCKS, max_size=4), st.sets(st.sampled_from(["a", "b", "a_2"])))
def test_any_blocks_become_a_message_that_can_be_sent(blocks: list[TextBlock | ToolUse], taken: set[str]) -> None:
    """R07, R08, R14: odd ids, empty texts and half characters, all at once."""
    message = as_message(cleaned(response(*blocks)), taken)
    wanted = any(isinstance(block, ToolUse) or block.text.strip() for block in blocks)
    assert (message is not None) is wanted
    if message is not None:
        history = [host_message("go"), message]
        assert problems(history, is_request=False) == []
        assert taken.isdisjoint(use.call_id for use in message.tool_uses)
        conversation = Conversation()
        for one in history:
            conversation.append(one)
        assert len(message.tool_uses) == sum(isinstance(block, ToolUse) for block in blocks)


def test_what_was_sound_stays_byte_for_byte() -> None:
    """A signature over the provider's own content is lost with one byte of it."""
    sound = response(TextBlock(text="정확도 🍸"), use(), raw='{"sig":"\\ud83c","x":"é"}')
    assert cleaned(sound) == sound
    message = as_message(sound, set())
    assert message is not None
    assert (message.role, message.raw) == (Speaker.ASSISTANT, sound.raw)


def test_the_providers_own_content_goes_when_its_ids_were_changed() -> None:
    """Sent again verbatim it would name calls that nobody answered."""
    message = as_message(response(use("c1"), use("c1"), raw="{}"), set())
    assert message is not None
    assert [use.call_id for use in message.tool_uses] == ["c1", "c1_2"]
    assert message.raw is None


def test_half_characters_are_replaced_wherever_they_stand() -> None:
    dirty = response(
        TextBlock(text="\ud83c"), ToolUse(call_id="\ud83c", name="\ud83c", arguments="\ud83c"), raw="\ud83c"
    )
    made = cleaned(dirty)
    assert made.blocks == (TextBlock(text="�"), ToolUse(call_id="�", name="�", arguments="�"))
    assert made.raw == "�"
