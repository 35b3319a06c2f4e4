"""How long a request is, before anybody has counted it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.llm.messages import Message, Speaker, TextBlock, ToolSchema
from geode.llm.tokens import InputMeter, tokens_at_most
from geode.llm.usage import Usage
from tests.doubles.snapshots import asked

MEASURED = {
    "The span was opened to traffic in the autumn, and everybody came to see what had been built over the river.": 23,
    "    def _count(self, raw: bytes) -> int:\n"
    "        return len(raw) - len(raw.translate(None, delete=self._of))\n": 36,
    '{"id":4711,"name":"user 17","tags":["a","b"],"value":0.7319508,"open":true}': 31,
    "73195 08821 64 3 5 9 12 44017 8 6": 22,
    "今天天气很好，我们去公园散步。机器学习模型需要大量数据进行训练。": 35,
    "오늘 날씨가 매우 좋습니다. 기계 학습 모델은 많은 데이터가 필요합니다.": 37,
    "Сегодня очень хорошая погода, и мы идём гулять в парк.": 33,
    "tpZc0TdlRZS8QxF9mUeXYVhVa1nqHc2oBzKJ7gWwIiL5rNfE3kAuD6Pj": 50,
    "xkqzvjwpbhgtrmfncdlsyuoaeixqzkvjwbpghtmrfncldsy": 28,
    "😀🎉🚀👩‍💻🏳️‍🌈": 24,
}
"""Texts, and the most tokens that o200k, cl100k and Claude's public tokenizer make of them."""


@pytest.mark.parametrize(("text", "tokens"), MEASURED.items())
def test_no_tokenizer_makes_more_of_a_text_than_its_bound(text: str, tokens: int) -> None:
    """Money is held by the bound: too little of it, and a cap is passed."""
    assert tokens <= tokens_at_most(text) <= 4 * tokens


@given(st.text(st.characters(codec=None)), st.text())
def test_a_longer_text_is_never_bounded_by_less(text: str, more: str) -> None:
    """Any text a tool can return has a bound, unpaired surrogates included."""
    assert tokens_at_most(text) <= tokens_at_most(text + more) <= len((text + more).encode("utf-8", "replace"))


def message(text: str, raw: str | None = None) -> Message:
    return Message(role=Speaker.ASSISTANT, blocks=(TextBlock(text=text),), raw=raw)


def test_everything_that_is_sent_is_bounded() -> None:
    """The system text, the tools, and what a provider wants to have back as it was."""
    bare, more = InputMeter().at_most(asked()), "x" * 10_000
    tool = ToolSchema(name="read", description=more, input_schema={})
    for snapshot in (
        replace(asked(), system=more),
        replace(asked(), tools=(tool,)),
        replace(asked(), messages=(*asked().messages, message("short", raw=more))),
    ):
        assert InputMeter().at_most(snapshot) >= bare + tokens_at_most(more)


@pytest.mark.parametrize("changed", ["system", "messages", "tools"])
def test_another_request_is_not_bounded_by_the_count_of_the_last(changed: str) -> None:
    """A history that was shortened or begun anew has another length."""
    meter, first = InputMeter(), asked("a " * 5_000)
    meter.count(first, Usage(uncached_input_tokens=9, output_tokens=1))
    goes_on = asked("a " * 5_000, "answer", "more")
    assert meter.at_most(goes_on) < 100
    other = {
        "system": replace(goes_on, system="other"),
        "messages": asked("b " * 5_000, "answer", "more"),
        "tools": replace(goes_on, tools=(ToolSchema(name="t", description="", input_schema={}),)),
    }[changed]
    assert meter.at_most(other) > 5_000


def test_a_count_that_is_not_said_replaces_nothing() -> None:
    """What the provider does not say is no 0."""
    meter, first = InputMeter(), asked("a " * 5_000)
    meter.count(first, Usage(uncached_input_tokens=None, output_tokens=1))
    assert meter.at_most(asked("a " * 5_000, "answer", "more")) > 5_000
