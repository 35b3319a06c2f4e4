"""Facts of `geode.llm.catalog`: the ids are exact, each figure has a source, and what is not known is not invented."""

from datetime import date

import pytest

from geode.llm.catalog import Sampling, Tier, catalog, is_decision_only, is_moving, parse_catalog
from geode.llm.routes import ModelName, Route, parse_model
from geode.llm.usage import Usage

ANTHROPIC = [
    "claude-fable-5-1",
    "claude-opus-5-5",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-4-5-20251001",
    "claude-fable-5",
    "claude-opus-4-8",
    "claude-opus-4-7",
    "claude-opus-4-6",
    "claude-opus-4-5",
    "claude-sonnet-4-6",
    "claude-sonnet-4-5-20250929",
]
OPENAI_AND_CODEX = ["gpt-6-astra", "gpt-6-sol", "gpt-6-luna", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna"]
OPENAI_ALONE = ["gpt-5.5", "gpt-5.3-codex", "gpt-5.4", "gpt-5.4-mini", "gpt-5.4-nano"]
ZAI = [
    "glm-5.3",
    "glm-5.3-flash",
    "glm-5.3-flashx",
    "glm-5.2",
    "glm-5.1",
    "glm-5",
    "glm-4.7",
    "glm-4.7-flashx",
    "glm-4.7-flash",
]
REQUIRED = [
    *(f"anthropic/{name}" for name in ANTHROPIC),
    *(f"openai/{name}" for name in OPENAI_AND_CODEX + OPENAI_ALONE),
    *(f"openai-codex/{name}" for name in OPENAI_AND_CODEX),
    *(f"zai/{name}" for name in ZAI),
    *("openrouter/openrouter/free", "openrouter/auto", "typesafe/jev-1.13.0", "openrouter/typesafe/jev-1.13"),
]
ENTRY = """
schema = "geode.models/1"
[[model]]
routes = { anthropic = "claude-x" }
tier = "primary"
context_tokens = 1000
output_tokens_max = 10
efforts = []
sampling = "none"
no_prices = "nobody said"
"""


@pytest.mark.parametrize("text", REQUIRED)
def test_each_required_id_is_listed_as_it_is_spelled(text: str) -> None:
    """Issue 5 lists them; `find` alone would make up any id of OpenRouter."""
    assert parse_model(text) in catalog().by_name


@pytest.mark.parametrize("name", OPENAI_ALONE)
def test_what_only_the_api_reaches_is_not_reached_by_the_plan(name: str) -> None:
    assert catalog().find(ModelName(Route.OPENAI_CODEX, name)) is None


@pytest.mark.parametrize(
    ("route", "tier", "name"),
    [
        (Route.ANTHROPIC, Tier.PRIMARY, "anthropic/claude-opus-5-5"),
        (Route.ANTHROPIC, Tier.SECONDARY, "anthropic/claude-sonnet-5"),
        (Route.ANTHROPIC, Tier.ECONOMY, "anthropic/claude-haiku-4-5-20251001"),
        (Route.OPENAI, Tier.PRIMARY, "openai/gpt-6-sol"),
        (Route.OPENAI_CODEX, Tier.PRIMARY, "openai-codex/gpt-6-sol"),
        (Route.ZAI, Tier.PRIMARY, "zai/glm-5.3"),
    ],
)
def test_the_defaults_are_those_of_the_description(route: Route, tier: Tier, name: str) -> None:
    assert str(catalog().default(route, tier)) == name


def test_openrouter_has_no_default() -> None:
    """Its ids are configured explicitly."""
    assert [catalog().default(Route.OPENROUTER, tier) for tier in Tier] == [None, None, None]


def test_every_price_has_a_date_and_a_source_and_every_missing_one_a_reason() -> None:
    """A cost that nobody can check is worth as little as an invented one."""
    for entry in catalog().entries:
        if entry.prices is None:
            assert entry.no_prices, entry
        else:
            assert date(2026, 1, 1) < date.fromisoformat(entry.prices.as_of) <= date(2026, 12, 1), entry
            assert entry.prices.source.startswith("https://"), entry


def test_the_limits_leave_room_for_a_conversation() -> None:
    for entry in catalog().entries:
        assert entry.decision_only or 0 < entry.output_tokens_max <= entry.context_tokens - 50_000, entry


def test_a_subscription_is_not_paid_by_the_token() -> None:
    """The API's price times the tokens of a plan would be a cost that nobody pays."""
    entry = catalog().by_name[parse_model("openai-codex/gpt-6-sol")]
    assert entry.prices_by(Route.OPENAI_CODEX) is None
    assert entry.prices_by(Route.OPENAI) is not None


def test_a_long_request_costs_what_the_whole_of_it_costs() -> None:
    """OpenAI bills all of a request of more than 272,000 input tokens at its higher prices, cached ones included."""
    prices = catalog().by_name[parse_model("openai/gpt-6-sol")].prices
    assert prices is not None
    short = Usage(uncached_input_tokens=200_000, cache_read_tokens=72_000, output_tokens=1_000)
    long = Usage(uncached_input_tokens=200_000, cache_read_tokens=72_001, output_tokens=1_000)
    assert prices.cost_usd(short) == pytest.approx(0.4 + 0.0144 + 0.01)
    assert prices.cost_usd(long) == pytest.approx(2 * (0.4 + 0.0144002) + 1.5 * 0.01)
    assert prices.cost_usd_max(input_tokens=300_000, output_tokens=1_000) == pytest.approx(2 * 0.75 + 0.015)


@pytest.mark.parametrize("name", [*(f"anthropic/{name}" for name in ANTHROPIC), "openrouter/anthropic/claude-opus-5.5"])
def test_no_claude_takes_sampling_parameters(name: str) -> None:
    """PROVIDERS 20: a request that carries one is refused since the API version 2026-10-21."""
    assert catalog().by_name[parse_model(name)].sampling is Sampling.NONE


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        ("openrouter/typesafe/jev-1.13", True),
        ("openrouter/typesafe/jev-2", True),
        ("openrouter/~typesafe/jev-latest", True),
        ("typesafe/jev-1.13.0", True),
        ("typesafe/jev-preview", True),
        ("openrouter/typesafe/jev-router", False),
        ("openrouter/other/jev-1.13", False),
        ("anthropic/jev-1.13.0", False),
    ],
)
def test_what_only_decides_is_told_by_its_id(text: str, decides: bool) -> None:
    """PROVIDERS 28: `typesafe/jev-router` is a router for chat, and not caught."""
    assert is_decision_only(parse_model(text)) is decides


@pytest.mark.parametrize(
    ("text", "moving"),
    [
        ("openrouter/auto", True),
        ("openrouter/openrouter/free", True),
        ("openrouter/openrouter/auto-beta", True),
        ("openrouter/z-ai/glm-4.5-air:free", True),
        ("openrouter/~z-ai/glm-latest", True),
        ("openrouter/typesafe/jev-router", True),
        ("openrouter/openai/gpt-5-chat-latest", True),
        ("typesafe/jev-latest", True),
        ("typesafe/jev-preview", True),
        ("typesafe/jev-1.13.0", False),
        ("openrouter/typesafe/jev-1.13", False),
        ("openrouter/anthropic/claude-opus-5.5", False),
        ("openrouter/some/free-willy", False),
        ("openrouter/google/gemini-3-pro-preview", False),
        ("anthropic/claude-opus-5-5", False),
    ],
)
def test_an_id_that_leads_elsewhere_tomorrow_is_known_as_one(text: str, moving: bool) -> None:
    """PROVIDERS 26."""
    assert is_moving(parse_model(text)) is moving


def test_an_explicit_id_of_openrouter_is_kept_as_it_is_without_prices() -> None:
    name = parse_model("openrouter/moonshotai/kimi-k2:nitro")
    entry = catalog().find(name)
    assert entry is not None
    assert entry.names == (name,)
    assert (entry.context_tokens, entry.output_tokens_max) == (128_000, 16_000)
    assert entry.prices is None
    assert "catalogue" in entry.no_prices
    assert entry.served_as_by(name) == {"moonshotai/kimi-k2:nitro", "moonshotai/kimi-k2"}


def test_what_answers_for_a_selector_may_be_any_model() -> None:
    name = parse_model("openrouter/auto")
    assert catalog().by_name[name].served_as_by(name) == frozenset()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("no_prices", "#"), "either it has prices"),
        (("claude-x", "claude-latest"), None),
        (('anthropic = "claude-x"', 'typesafe = "jev-9"'), "decision_only or selector"),
        (('anthropic = "claude-x"', 'openrouter = "x/y:free"'), "decision_only or selector"),
        (("efforts = []", 'efforts = ["some"]'), "efforts"),
        (("context_tokens = 1000", "context_tokens = 10"), "context_tokens"),
        (("geode.models/1", "geode.models/2"), "schema"),
        (("sampling", "samplig"), "samplig"),
    ],
)
def test_a_catalogue_that_contradicts_itself_is_refused(change: tuple[str, str], problem: str | None) -> None:
    text = ENTRY.replace(*change)
    if problem is None:
        assert parse_catalog(text)
        return
    with pytest.raises(ValueError, match=problem):
        parse_catalog(text)


def test_a_name_or_a_default_that_stands_twice_is_refused() -> None:
    again = ENTRY.replace('schema = "geode.models/1"', "")
    with pytest.raises(ValueError, match="anthropic/claude-x is listed twice"):
        parse_catalog(ENTRY + again)
    with pytest.raises(ValueError, match="anthropic has two defaults of the tier primary"):
        parse_catalog(ENTRY + again.replace("claude-x", "claude-y"))
