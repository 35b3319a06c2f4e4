"""The wires that the suite drives. A wire more is one line in `WIRES`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from geode.dev.fake_provider.script import Ending
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.anthropic import AnthropicMessages
from geode.llm.binding import Binding, ModelOptions
from geode.llm.chat_completions import ChatCompletions
from geode.llm.messages import DeltaObserver, LLMAdapter
from geode.llm.openai_responses import OpenAIResponses
from geode.llm.prices import Prices
from geode.llm.routes import parse_model
from geode.redaction import Redactor

Body: TypeAlias = Mapping[str, Any]
Answers: TypeAlias = list[tuple[str, str]]
PRICES = Prices(input=4, output=20, cache_read=0.4, cache_write=5, as_of="2026-12-01", source="a test")


def messages_answers(body: Body) -> Answers:
    """The results in the last message of a Messages request, by the id of their call."""
    content = body["messages"][-1]["content"]
    return [(block["tool_use_id"], block["content"]) for block in content if block["type"] == "tool_result"]


def responses_answers(body: Body) -> Answers:
    """The results at the end of a Responses request, by the id of their call."""
    return _last(body["input"], lambda item: item.get("type") == "function_call_output", "call_id", "output")


def chat_answers(body: Body) -> Answers:
    """The results at the end of a Chat Completions request, by the id of their call."""
    results = _last(body["messages"], lambda message: message["role"] == "tool", "tool_call_id", "content")
    # A model whose cache wants marks is sent parts.
    return [(call_id, text if isinstance(text, str) else text[0]["text"]) for call_id, text in results]


def _last(items: list[Any], is_result: Callable[[Any], bool], call_id: str, text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for item in reversed(items):
        if not is_result(item):
            break
        found.insert(0, (item[call_id], item[text]))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One wire as the suite sees it.

    `pauses` is whether a model behind it can pause. Where it cannot, no reply means "send this back and I go on", and
    what comes nearest is a reply that was cut at its limit: kept, not taken for an answer, and gone on with.
    """

    model: str
    make: Callable[[Binding, DeltaObserver | None, Redactor | None], LLMAdapter]
    answers: Callable[[Body], Answers]
    pauses: bool = False

    def __str__(self) -> str:
        return self.model

    @property
    def unfinished(self) -> Ending:
        """How a reply ends that is to be gone on with."""
        return Ending.PAUSE if self.pauses else Ending.LENGTH

    def binding(self, double: FakeProvider, options: ModelOptions | None = None) -> Binding:
        """Bind the wire's model to the double."""
        name = parse_model(self.model)
        return Binding(
            model=name,
            key=double.key(name.route),
            base_url=double.base_url(name.route),
            served_as=frozenset({name.model_id}),
            context_tokens=1_000_000,
            output_tokens_max=64_000,
            prices=PRICES,
            options=options or ModelOptions(),
            timeout_s=30.0,
        )


WIRES = (
    Wire(model="anthropic/claude-opus-5-5", make=AnthropicMessages, answers=messages_answers, pauses=True),
    Wire(model="openai/gpt-6-sol", make=OpenAIResponses, answers=responses_answers),
    Wire(model="openai-codex/gpt-6-sol", make=OpenAIResponses, answers=responses_answers),
    Wire(model="openrouter/google/gemini-3-pro", make=ChatCompletions, answers=chat_answers),
    Wire(model="openrouter/anthropic/claude-opus-5-5", make=ChatCompletions, answers=chat_answers),
    Wire(model="zai/glm-5.3", make=ChatCompletions, answers=chat_answers),
)
