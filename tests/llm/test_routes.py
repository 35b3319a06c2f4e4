"""Facts of `geode.llm.routes`: a model is named exactly."""

import pytest

from geode.llm.errors import ConfigurationError
from geode.llm.routes import ModelName, Route, parse_model


@pytest.mark.parametrize(
    ("text", "route", "model_id"),
    [
        ("anthropic/claude-opus-5-5", Route.ANTHROPIC, "claude-opus-5-5"),
        ("openrouter/typesafe/jev-1.13", Route.OPENROUTER, "typesafe/jev-1.13"),
        ("openai-codex/gpt-5.5", Route.OPENAI_CODEX, "gpt-5.5"),
        ("simulated/apprentice", Route.SIMULATED, "apprentice"),
        ("recorded//odd", Route.RECORDED, "/odd"),
    ],
)
def test_a_name_is_split_at_the_first_slash_and_kept_exactly(text: str, route: Route, model_id: str) -> None:
    """An id may hold slashes of its own, and is never upgraded or trimmed."""
    name = parse_model(text)
    assert name == ModelName(route, model_id)
    assert str(name) == text


@pytest.mark.parametrize("text", ["", "claude", "anthropic/", "/x", "Anthropic/x", " anthropic/x", "anthropic /x"])
def test_what_is_no_name_is_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_model(text)
    assert repr(text) in str(refused.value)
    assert "route/id" in str(refused.value) or "openrouter" in str(refused.value)


def test_an_unknown_route_is_refused_with_all_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="'antropic'; there are anthropic, openai, openai-codex, zai"):
        parse_model("antropic/claude-opus-5-5")


@pytest.mark.parametrize(
    ("text", "wire_id"),
    [
        ("openrouter/auto", "openrouter/auto"),
        ("openrouter/openrouter/free", "openrouter/free"),
        ("openrouter/anthropic/claude-opus-5.5", "anthropic/claude-opus-5.5"),
        ("zai/auto", "auto"),
    ],
)
def test_the_provider_is_asked_for_what_it_calls_the_model(text: str, wire_id: str) -> None:
    """GEODE's name of the selector is shorter than OpenRouter's, which answers 404 to `auto`."""
    assert parse_model(text).wire_id == wire_id
