"""What OpenRouter and Z.ai make of Chat Completions, each in its own way: all that differs between them, as data.

OpenRouter: https://openrouter.ai/docs/api-reference/overview. Z.ai: https://docs.z.ai/api-reference/llm/chat-completion.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from geode.llm.binding import Binding, Effort
from geode.llm.catalog import is_decision_only
from geode.llm.errors import ConfigurationError, RouteRefused
from geode.llm.messages import StopReason
from geode.llm.routes import Route
from geode.llm.streaming import Words, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One provider's Chat Completions.

    Attributes:
        check: refuses a binding that the provider would refuse, or misunderstand.
        settings: what a request says besides its model, messages and tools.
        words: reads its error bodies.
        stops: finish reasons that end a response. `WINDOWS` and `failures` are none; any other is unknown.
        failures: finish reasons of a reply that failed, and the word for it if the reply says none.
        refusals: words in an error that mean a refusal: an outcome, not a fault.
        marks_cache: whether the model's cache must be told what to keep.
        names_requests: whether a reply's `id` is the provider's name of the request.
        forces_tools: whether a model can be made to call one tool; if not, the prompt has to ask for it.
    """

    check: Callable[[Binding], None]
    settings: Callable[[Binding], dict[str, Any]]
    words: Callable[[object], Words]
    stops: Mapping[str, StopReason]
    failures: Mapping[str, str]
    refusals: frozenset[str]
    marks_cache: Callable[[Binding], bool]
    names_requests: bool
    forces_tools: bool


WINDOWS: Final = frozenset({"model_context_window_exceeded"})
"""Finish reasons of a reply that filled the model's window."""

_STOPS: Final = {"stop": StopReason.END_TURN, "tool_calls": StopReason.TOOL_USE, "length": StopReason.MAX_TOKENS}


def _is_claude(binding: Binding) -> bool:
    return binding.model.model_id.startswith("anthropic/")


def _check_openrouter(binding: Binding) -> None:
    if is_decision_only(binding.model):
        raise RouteRefused(
            f"{str(binding.model)!r} is decision-only: it answers questions about a text; bind it as a judge"
        )
    if _is_claude(binding) and binding.options.temperature is not None:
        raise ConfigurationError(
            f"temperature {binding.options.temperature:g} is set for {binding.model}, which takes no sampling"
            " parameters; remove `temperature` from its options"
        )


def _openrouter_settings(binding: Binding) -> dict[str, Any]:
    options = binding.options
    said: dict[str, Any] = {}
    if options.temperature is not None:
        said["temperature"] = options.temperature
    if options.effort is not None:
        said["reasoning"] = {"effort": options.effort.value}
    if options.upstream:
        said["provider"] = {
            "order": [options.upstream],
            "only": [options.upstream],
            "allow_fallbacks": False,
            "require_parameters": True,
        }
    return said


def _openrouter_words(body: object) -> Words:
    """Read OpenRouter's error: the limit that was met or the state of the model is more exact than the status."""
    plain = words_of(body)
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return plain
    metadata, available = _mapping(error.get("metadata")), _mapping(error.get("availability"))
    retryable, retry_after = available.get("retryable"), available.get("retry_after")
    return Words(
        type=str(metadata.get("error_type") or ""),
        code=str(metadata.get("limit_source") or available.get("code") or plain.code),
        message=plain.message,
        retryable=retryable if isinstance(retryable, bool) else None,
        retry_after_s=float(retry_after) if isinstance(retry_after, int | float) else None,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _check_zai(binding: Binding) -> None:
    temperature = binding.options.temperature
    if temperature is not None and not 0 < temperature < 1:
        raise ConfigurationError(
            f"temperature {temperature:g} is set for {binding.model}, which takes one between 0 and 1, neither of them"
        )


def _zai_settings(binding: Binding) -> dict[str, Any]:
    effort = binding.options.effort
    said: dict[str, Any] = {"thinking": {"type": "enabled", "clear_thinking": False}}
    if effort is Effort.NONE:
        said["thinking"] = {"type": "disabled"}
    elif effort is not None:
        said["reasoning_effort"] = effort.value
    if binding.options.temperature is not None:
        said["temperature"] = binding.options.temperature
    return said


DIALECTS: Final[Mapping[Route, Dialect]] = {
    Route.OPENROUTER: Dialect(
        check=_check_openrouter,
        settings=_openrouter_settings,
        words=_openrouter_words,
        stops={**_STOPS, "content_filter": StopReason.REFUSAL},
        failures={"error": "provider_unavailable"},
        refusals=frozenset({"refusal", "content_policy_violation"}),
        marks_cache=_is_claude,
        names_requests=True,
        forces_tools=True,
    ),
    Route.ZAI: Dialect(
        check=_check_zai,
        settings=_zai_settings,
        words=words_of,
        stops={**_STOPS, "sensitive": StopReason.REFUSAL},
        failures={"network_error": "network_error"},
        refusals=frozenset({"1301"}),
        marks_cache=lambda _: False,
        names_requests=False,
        forces_tools=False,
    ),
}
