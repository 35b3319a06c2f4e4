"""Facts of `geode.llm.admission`: what cannot be, or would not be what it says, is refused before any request."""

from datetime import date

import pytest

from geode.llm.admission import check_launchable, check_options, check_registered, check_role
from geode.llm.binding import Effort, ModelOptions
from geode.llm.errors import ConfigurationError, RouteRefused
from geode.llm.routes import ARCHIVED, SIMULATED, parse_model

TODAY = date(2026, 12, 1)


@pytest.mark.parametrize(
    "text",
    [
        *SIMULATED,
        "anthropic/claude-opus-5-5",
        "openai-codex/gpt-6-sol",
        "zai/glm-4.7-flash",
        "openrouter/auto",
        "openrouter/typesafe/jev-router",
        "openrouter/some/model",
    ],
)
def test_a_session_can_be_opened_on_what_a_route_reaches(text: str) -> None:
    assert str(check_launchable(text, today=TODAY)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("anthropic/claude-opus-5.5", "did you mean 'anthropic/claude-opus-5-5'"),
        ("anthropic/claude-sonnet-4-5", "did you mean 'anthropic/claude-sonnet-4-5-20250929'"),
        ("openrouter/free", "did you mean 'openrouter/openrouter/free'"),
        ("openrouter/glm-5.3", "it is by zai/glm-5.3"),
        ("zai/glm-5.4", "did you mean 'zai/glm-5"),
        ("openai/davinci", "geode models ls --route openai"),
        ("openai-codex/gpt-5.4", "it is by openai/gpt-5.4"),
        ("anthropic/gpt-6-sol", "it is by openai/gpt-6-sol, openai-codex/gpt-6-sol"),
        ("simulated/apprentice-2", "the simulated models are simulated/apprentice"),
        ("recorded/gpt-5.5", "can be replayed, not launched"),
    ],
)
def test_what_no_route_reaches_is_refused_with_the_next_step(text: str, said: str) -> None:
    """DESIGN 5.13: an id is never upgraded to a neighbour; the neighbour is named."""
    with pytest.raises(RouteRefused) as refused:
        check_launchable(text, today=TODAY)
    assert repr(text.partition("/")[2]) in str(refused.value) or repr(text) in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["typesafe/jev-1.13.0", "openrouter/typesafe/jev-1.13", "openrouter/typesafe/jev-77"])
def test_a_decision_only_model_holds_no_session_and_is_a_judge_alone(text: str) -> None:
    """PROVIDERS 28, DESIGN 5.13."""
    with pytest.raises(RouteRefused, match="decision-only"):
        check_launchable(text)
    for role in ("target", "auditor", "mutator"):
        with pytest.raises(RouteRefused, match=f"decision-only: it can be a judge, not the {role}"):
            check_role(role, text)
    assert str(check_role("judge", text)) == text


def test_a_judge_may_be_a_model_that_answers_in_text() -> None:
    assert str(check_role("judge", "openai/gpt-6-luna")) == "openai/gpt-6-luna"


@pytest.mark.parametrize("text", ARCHIVED)
def test_an_archived_binding_plays_no_new_role(text: str) -> None:
    with pytest.raises(RouteRefused, match="bound as run-2606 has it on record"):
        check_role("target", text)


def test_a_model_that_is_on_record_can_still_be_talked_to() -> None:
    """What is refused is another answer under the old run's role, not the model."""
    assert check_launchable("anthropic/claude-opus-4-8")


@pytest.mark.parametrize(
    ("text", "last"),
    [("anthropic/claude-sonnet-4-5-20250929", date(2026, 11, 30)), ("anthropic/claude-opus-4-5", date(2027, 1, 22))],
)
def test_a_model_is_refused_from_the_day_after_its_last(text: str, last: date) -> None:
    assert check_launchable(text, today=last)
    with pytest.raises(RouteRefused, match=f"was served until {last}; bind another model, such as anthropic/"):
        check_launchable(text, today=date.fromordinal(last.toordinal() + 1))


def test_who_else_runs_a_model_may_do_so_longer_than_its_maker() -> None:
    assert check_launchable("openrouter/anthropic/claude-sonnet-4.5", today=date(2028, 1, 1))


@pytest.mark.parametrize("text", ["openrouter/auto", "openrouter/x/y:free", "typesafe/jev-latest"])
def test_a_moving_id_is_refused_for_a_registered_experiment_unless_it_is_allowed(text: str) -> None:
    """PROVIDERS 26."""
    with pytest.raises(RouteRefused, match="different models at different times"):
        check_registered(text)
    assert str(check_registered(text, allow_moving=True)) == text
    assert check_registered("anthropic/claude-opus-5-5")


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("anthropic/claude-opus-5-5", ModelOptions(temperature=0.5), "takes no sampling parameters; leave it out"),
        ("openrouter/anthropic/claude-opus-5.5", ModelOptions(temperature=0.5), "takes no sampling parameters"),
        ("openrouter/anthropic/claude-9", ModelOptions(temperature=0.5), "takes no sampling parameters"),
        ("zai/glm-5.3", ModelOptions(temperature=0), "between 0 and 1, neither of them"),
        ("zai/glm-5.3", ModelOptions(temperature=1), "between 0 and 1, neither of them"),
        ("openai/gpt-6-sol", ModelOptions(temperature=0.5), "only with effort none"),
        ("openai/gpt-6-sol", ModelOptions(temperature=0.5, effort=Effort.LOW), "only with effort none"),
        ("openai-codex/gpt-6-sol", ModelOptions(temperature=0.5, effort=Effort.NONE), "takes no sampling parameters"),
        ("anthropic/claude-opus-4-5", ModelOptions(effort=Effort.MAX), "takes one of low, medium, high"),
        ("anthropic/claude-haiku-4-5-20251001", ModelOptions(effort=Effort.LOW), "takes none at all"),
        ("zai/glm-5.3-flash", ModelOptions(effort=Effort.NONE), "takes one of minimal"),
        ("anthropic/claude-opus-4-5", ModelOptions(max_output_tokens=64_001), "writes at most 64000 in one reply"),
        ("openai-codex/gpt-6-sol", ModelOptions(max_output_tokens=9), "lets nobody set it; leave it out"),
        ("zai/glm-5.3", ModelOptions(upstream="novita"), "only OpenRouter leads to several"),
    ],
)
def test_an_option_that_the_provider_would_refuse_fails_before_it_is_sent(
    model: str, options: ModelOptions, said: str
) -> None:
    """PROVIDERS 20 and 22: failing validation, never dropped in silence."""
    with pytest.raises(ConfigurationError, match=said):
        check_options(parse_model(model), options)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("zai/glm-5.3", ModelOptions(temperature=0.01)),
        ("openai/gpt-6-sol", ModelOptions(temperature=2, effort=Effort.NONE)),
        ("openrouter/some/model", ModelOptions(temperature=0, upstream="novita")),
        ("anthropic/claude-opus-4-5", ModelOptions(max_output_tokens=64_000, effort=Effort.LOW)),
    ],
)
def test_an_option_that_the_model_takes_is_let_through(model: str, options: ModelOptions) -> None:
    check_options(parse_model(model), options)
