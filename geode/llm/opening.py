"""From the name of a model to an adapter that reaches it: checked by the catalogue, opened by the settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from geode.llm.admission import check_launchable, check_options
from geode.llm.anthropic import AnthropicMessages
from geode.llm.binding import Binding, ModelOptions
from geode.llm.catalog import catalog
from geode.llm.chat_completions import ChatCompletions
from geode.llm.credentials import credentials
from geode.llm.errors import RouteRefused
from geode.llm.messages import DeltaObserver, LLMAdapter
from geode.llm.openai_responses import OpenAIResponses
from geode.llm.retry import Retrying, RetryPolicy, Shown
from geode.llm.routes import Route, parse_model
from geode.llm.spending import NoPurse, Purse
from geode.redaction import Redactor

_NO_OPTIONS, _POLICY = ModelOptions(), RetryPolicy()
_OUTPUT_TOKENS, _OUTPUT_TOKENS_NOBODY_ASKED = 16_384, 8_192
"""How long a reply may be where nothing else is said. A provider's models think within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What of a model's window is for the conversation, None if it has none, and how long a reply may be."""

    context_tokens: int | None
    output_tokens: int


def room_of(model: str, options: ModelOptions = _NO_OPTIONS) -> Room:
    """Return the room that `model` has. It depends on the name alone, so that a recording of it has the same."""
    entry = catalog().find(parse_model(model))
    if entry is None:
        return Room(context_tokens=None, output_tokens=options.max_output_tokens or _OUTPUT_TOKENS_NOBODY_ASKED)
    output = min(options.max_output_tokens or _OUTPUT_TOKENS, entry.output_tokens_max)
    return Room(context_tokens=entry.context_tokens - output, output_tokens=output)


def bind(model: str, environment: Mapping[str, str], options: ModelOptions = _NO_OPTIONS) -> Binding:
    """Return `model` with its key, address, limits and prices.

    Raises:
        ConfigurationError: if it cannot be reached as configured; no request was sent, and no text shows a key.
    """
    name = check_launchable(model)
    entry = catalog().find(name)
    if entry is None:
        raise RouteRefused(f"{model!r} asks no provider")
    check_options(name, options)
    access = credentials(name, environment)
    return Binding(
        model=name,
        key=access.key,
        base_url=access.base_url,
        served_as=entry.served_as_by(name),
        context_tokens=entry.context_tokens,
        output_tokens_max=entry.output_tokens_max,
        prices=entry.prices_by(name.route),
        options=options,
    )


def open_adapter(
    model: str,
    environment: Mapping[str, str],
    *,
    options: ModelOptions = _NO_OPTIONS,
    purse: Purse | None = None,
    on_delta: DeltaObserver | None = None,
    redactor: Redactor | None = None,
    policy: RetryPolicy = _POLICY,
) -> LLMAdapter:
    """Return an adapter that reaches `model` over the network, with the one owner of retries around it.

    Args:
        model: `route/id`.
        environment: the settings' environment; where keys and addresses come from.
        options: how the model is asked.
        purse: who is asked before each request that may be billed.
        on_delta: who is told each part of a reply as it comes.
        redactor: what keeps secrets out of the texts of errors.
        policy: how often a request is sent again.

    Raises:
        ConfigurationError: see `bind`.
    """
    binding = bind(model, environment, options)
    shown = None if on_delta is None else Shown(on_delta)
    return Retrying(
        inner=_wire(binding, shown, redactor or Redactor()),
        binding=binding,
        policy=policy,
        purse=purse or NoPurse(),
        shown=shown,
    )


def _wire(binding: Binding, shown: DeltaObserver | None, redactor: Redactor) -> LLMAdapter:
    match binding.model.route:
        case Route.ANTHROPIC:
            return AnthropicMessages(binding, shown, redactor)
        case Route.OPENAI | Route.OPENAI_CODEX:
            return OpenAIResponses(binding, shown, redactor)
        case Route.ZAI | Route.OPENROUTER:
            return ChatCompletions(binding, shown, redactor)
        case Route.TYPESAFE | Route.SIMULATED | Route.RECORDED:
            raise RouteRefused(f"{str(binding.model)!r} holds no conversation over a network")
    assert_never(binding.model.route)
