"""Facts of the strict provider: it takes what the loop sends, and refuses each thing that real ones refuse."""

import copy
from typing import Any

import pytest

from geode.dev.fake_provider.anthropic_rules import refusals
from geode.dev.strict_provider import StrictProvider, to_body
from geode.llm.errors import ConfigurationError
from geode.llm.messages import Message, Speaker, TextBlock, ToolResult, ToolUse
from tests.doubles.toy_loop import snapshot

HISTORY = (
    Message(role=Speaker.USER, blocks=(TextBlock(text="go"),)),
    Message(
        role=Speaker.ASSISTANT,
        blocks=(
            TextBlock(text="I look."),
            ToolUse(call_id="a", name="read_file", arguments='{"path": "x"}'),
            ToolUse(call_id="b", name="list_files", arguments="{}"),
        ),
    ),
    Message(
        role=Speaker.USER,
        blocks=(
            ToolResult(call_id="a", text="text", is_error=False),
            ToolResult(call_id="b", text="none", is_error=True),
            TextBlock(text="and a word of the host"),
        ),
    ),
)


async def test_a_sound_request_is_answered_and_kept() -> None:
    provider = StrictProvider()
    response = await provider.acomplete(snapshot(HISTORY))
    assert response.blocks == (TextBlock(text="I have looked."),)
    assert provider.bodies[0]["messages"][1]["content"][1] == {
        "type": "tool_use",
        "id": "a",
        "name": "read_file",
        "input": {"path": "x"},
    }


async def test_a_request_with_a_fault_is_refused_in_the_providers_words() -> None:
    with pytest.raises(ConfigurationError, match=r"400 .*invalid_request_error.*without `tool_result` blocks"):
        await StrictProvider().acomplete(snapshot((*HISTORY[:2], HISTORY[0])))


def changed(*path: Any, to: Any) -> Any:
    def change(body: dict[str, Any]) -> None:
        at: Any = body
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = to

    return change


def dropped(*path: Any) -> Any:
    def change(body: dict[str, Any]) -> None:
        at: Any = body
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed("messages", to=[]), "at least one message"),
        (dropped("messages", 0), "first message must use the user role"),
        (dropped("messages", 2), "without `tool_result` blocks"),
        (dropped("messages", 2, "content", 1), "immediately after: b"),
        (dropped("messages", 1), "unexpected `tool_use_id`"),
        (changed("messages", 2, "content", 0, "tool_use_id", to="z"), "immediately after: a"),
        (changed("messages", 1, "content", 2, "id", to="a"), "must be unique"),
        (changed("messages", 1, "content", 1, "id", to=""), "should match pattern"),
        (changed("messages", 1, "content", 1, "input", to=[]), "valid dictionary"),
        (changed("messages", 1, "content", 0, "text", to=" "), "must be non-empty"),
        (changed("messages", 2, "content", 0, "content", to=""), "must not be empty"),
        (changed("messages", 2, "content", to=[]), "content must not be empty"),
        (changed("messages", 2, "role", to="assistant"), "prefilled"),
        (lambda body: body["messages"][2]["content"].insert(0, {"type": "text", "text": "x"}), "must come first"),
        (changed("tools", 0, "name", to="drive.search"), "is not allowed"),
        (changed("tools", 0, "name", to="read_file"), "must be unique"),
    ],
)
def test_each_thing_that_real_ones_refuse_is_refused(change: Any, said: str) -> None:
    """A permissive double lets a bug through to the first paid call."""
    body = to_body(snapshot(HISTORY))
    assert refusals(body) == []
    broken = copy.deepcopy(body)
    change(broken)
    assert any(said in refusal for refusal in refusals(broken)), refusals(broken)
