"""Facts of `geode.llm.routes`: a model is named exactly, and what cannot be reached is refused before any call."""

import pytest

from geode.llm.errors import ConfigurationError, RouteRefused
from geode.llm.routes import LAUNCHABLE, ModelName, Route, check_launchable, parse_model


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


@pytest.mark.parametrize("text", LAUNCHABLE)
def test_what_can_be_launched_is_let_through(text: str) -> None:
    assert str(check_launchable(text)) == text


@pytest.mark.parametrize(
    "text", ["anthropic/claude-opus-5-5", "simulated/apprentice-2", "openrouter/typesafe/jev-1.13"]
)
def test_what_cannot_be_reached_is_refused_with_what_can(text: str) -> None:
    """R60: an error before the first call is cheaper than a fallback that nobody asked for."""
    with pytest.raises(RouteRefused, match="can be launched: simulated/apprentice"):
        check_launchable(text)


def test_a_recording_can_be_replayed_but_not_launched() -> None:
    with pytest.raises(RouteRefused, match="can be replayed, not launched"):
        check_launchable("recorded/gpt-5.5")
