"""Facts of `geode.llm.credentials`: a key opens the route that was named, and is shown to nobody."""

import pytest

from geode.llm.credentials import ACCESS, credentials, has_key
from geode.llm.errors import ConfigurationError, CredentialMissing, RouteRefused
from geode.llm.routes import Route, parse_model

OPUS = parse_model("anthropic/claude-opus-5-5")
CANARY = "sk-canary-0123456789abcdef"


def test_without_a_key_the_error_names_the_variable_the_route_and_the_other_routes() -> None:
    """Issue 5, done line 3."""
    with pytest.raises(CredentialMissing) as missing:
        credentials(OPUS, {"OPENROUTER_API_KEY": CANARY})
    assert str(missing.value) == (
        "no key for 'anthropic/claude-opus-5-5': the route anthropic needs ANTHROPIC_API_KEY; set it in the"
        " environment. The model is also reached as 'openrouter/anthropic/claude-opus-5.5' (OPENROUTER_API_KEY is set)"
    )


def test_a_model_with_one_route_says_that_there_is_no_other() -> None:
    with pytest.raises(CredentialMissing, match=r"needs ZAI_API_KEY.* No other route"):
        credentials(parse_model("zai/glm-4.7-flash"), {"ZAI_API_KEY": "  "})


def test_the_route_is_the_one_that_is_named_whatever_keys_are_set() -> None:
    """PROVIDERS 30: a run that changes its route with the environment is another run."""
    everything = {access.variable: f"key-of-{route}" for route, access in ACCESS.items()}
    for text in ("anthropic/claude-opus-5-5", "openrouter/anthropic/claude-opus-5.5", "openai-codex/gpt-6-sol"):
        name = parse_model(text)
        assert credentials(name, everything).key == f"key-of-{name.route}"


@pytest.mark.parametrize(
    ("text", "address", "base_url"),
    [
        ("anthropic/claude-opus-5-5", "", "https://api.anthropic.com"),
        ("anthropic/claude-opus-5-5", "http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080"),
        ("openai/gpt-6-sol", "", "https://api.openai.com/v1"),
        ("openai-codex/gpt-6-sol", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("zai/glm-5.3", "", "https://api.z.ai/api/paas/v4"),
        ("openrouter/auto", "", "https://openrouter.ai/api/v1"),
        ("typesafe/jev-1.13.0", "", "https://api.typesafe.ai"),
    ],
)
def test_the_address_has_the_form_that_the_sdk_wants(text: str, address: str, base_url: str) -> None:
    """PROVIDERS 3: Anthropic's SDK adds the version itself, OpenAI's does not."""
    name = parse_model(text)
    access = ACCESS[name.route]
    assert credentials(name, {access.variable: "k", access.address_variable: address}).base_url == base_url


def test_the_token_of_a_claude_subscription_is_refused() -> None:
    token = f"sk-ant-oat01-{CANARY}"
    with pytest.raises(RouteRefused, match="OAuth token of a Claude subscription") as refused:
        credentials(OPUS, {"ANTHROPIC_API_KEY": token})
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("path", ["/api/coding/paas/v4", "/api/coding", "/api/coding/"])
def test_the_coding_plan_is_refused(path: str) -> None:
    with pytest.raises(RouteRefused, match="GLM Coding Plan"):
        credentials(parse_model("zai/glm-5.3"), {"ZAI_API_KEY": "k", "ZAI_BASE_URL": f"https://api.z.ai{path}"})


def test_the_inner_address_of_chatgpt_is_refused() -> None:
    """PROVIDERS 4: it has no contract for others; Sign in with ChatGPT has."""
    environment = {"OPENAI_CODEX_TOKEN": "k", "OPENAI_BASE_URL": "https://chatgpt.com/backend-api/codex"}
    with pytest.raises(RouteRefused, match="Sign in with ChatGPT"):
        credentials(parse_model("openai-codex/gpt-6-sol"), environment)


@pytest.mark.parametrize(
    "address",
    [
        *("api.anthropic.com", "ftp://x", "https://", f"https://user:{CANARY}@host"),
        *(
            "http://host:99999",
            "http://host:0",
            f"http://host:{CANARY}",
            "http://[::1/v1",
            "http://ho st",
            "http://h\tx",
        ),
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ConfigurationError, match="ANTHROPIC_BASE_URL") as refused:
        credentials(OPUS, {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": address})
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("key", [f'"{CANARY} x"', f"{CANARY}\nX-Header: 1", f"{CANARY}é"])
def test_a_key_that_can_be_none_is_refused_and_not_repeated(key: str) -> None:
    """One that breaks the header would be shown by whoever reports that."""
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY holds characters") as refused:
        credentials(OPUS, {"ANTHROPIC_API_KEY": key})
    assert CANARY not in str(refused.value)


def test_no_repr_shows_a_key() -> None:
    """PROVIDERS 10."""
    held = credentials(OPUS, {"ANTHROPIC_API_KEY": f" {CANARY}\n"})
    assert held.key == CANARY
    assert CANARY not in repr(held)


def test_only_a_key_with_something_in_it_counts_as_set() -> None:
    assert has_key(Route.ZAI, {"ZAI_API_KEY": "k"})
    assert not has_key(Route.ZAI, {"ZAI_API_KEY": " "})
    assert not has_key(Route.ZAI, {"OPENAI_API_KEY": "k"})
