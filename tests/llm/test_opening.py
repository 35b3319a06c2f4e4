"""Facts of `geode.llm.opening`: from a name to whoever answers, through the real SDKs, against the strict double."""

import pytest

from geode.dev.fake_provider.script import Cut, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.binding import Effort, ModelOptions
from geode.llm.errors import ConfigurationError, CredentialMissing, RouteRefused, ServedModelDiffers
from geode.llm.messages import Delta, DeltaKind
from geode.llm.opening import bind, open_adapter, room_of
from geode.llm.retry import RetryPolicy
from geode.llm.usage import CostOrigin
from tests.doubles.provider import keys_of
from tests.llm.asking import snapshot

MODELS = [
    "anthropic/claude-opus-5-5",
    "openai/gpt-6-sol",
    "openai-codex/gpt-6-sol",
    "zai/glm-5.3",
    "openrouter/anthropic/claude-opus-5.5",
    "openrouter/auto",
    "openrouter/openrouter/free",
]
AT_ONCE = RetryPolicy(wait_base_s=0)


@pytest.mark.parametrize("model", MODELS)
async def test_each_route_is_opened_by_its_wire(double: FakeProvider, model: str) -> None:
    double.play(Script(steps=(Step(text="ready"),)))
    adapter = open_adapter(model, keys_of(double))
    response = await adapter.acomplete(snapshot())
    assert adapter.model == model
    assert response.blocks[-1].text == "ready"  # type: ignore[union-attr]
    assert [request.body["model"] for request in double.requests] == [
        "openrouter/auto" if model == "openrouter/auto" else model.partition("/")[2]
    ]


async def test_the_plan_of_a_subscription_gives_no_cost(double: FakeProvider) -> None:
    double.play(Script(steps=(Step(text="ready"), Step(text="ready"))))
    by_key = await open_adapter("openai/gpt-6-sol", keys_of(double)).acomplete(snapshot())
    by_plan = await open_adapter("openai-codex/gpt-6-sol", keys_of(double)).acomplete(snapshot())
    assert by_key.usage.cost_origin is CostOrigin.COMPUTED
    assert by_plan.usage.cost_usd is None


async def test_there_is_one_owner_of_retries_and_it_takes_back_what_was_shown(double: FakeProvider) -> None:
    """PROVIDERS 1: two requests for two attempts, and none of an SDK."""
    double.play(Script(steps=(Step(text="I begin well, and " * 9, cut=Cut(after_events=5)), Step(text="ready"))))
    shown: list[Delta] = []

    def watch(delta: Delta) -> None:
        shown.append(delta)

    adapter = open_adapter("anthropic/claude-opus-5-5", keys_of(double), on_delta=watch, policy=AT_ONCE)
    response = await adapter.acomplete(snapshot())
    assert len(double.requests) == 2
    assert [attempt.error for attempt in response.attempts] == ["StreamCut"]
    again = [delta.kind for delta in shown].index(DeltaKind.AGAIN)
    assert any(delta.text.startswith("I begin") for delta in shown[:again])
    assert "".join(delta.text for delta in shown[again:]) == "ready"


async def test_another_model_than_the_pinned_one_fails_the_call(double: FakeProvider) -> None:
    """PROVIDERS 26."""
    double.play(Script(steps=(Step(text="x", served_model="gpt-6-luna"),)))
    with pytest.raises(ServedModelDiffers, match="gpt-6-luna"):
        await open_adapter("openai/gpt-6-sol", keys_of(double)).acomplete(snapshot())


@pytest.mark.parametrize("served", ["gpt-6-sol-2026-09-22", "gpt-6-sol"])
async def test_a_dated_snapshot_of_the_pinned_model_is_the_pinned_model(double: FakeProvider, served: str) -> None:
    """Providers answer with the snapshot that an id leads to; which one it was is on record."""
    double.play(Script(steps=(Step(text="x", served_model=served),)))
    response = await open_adapter("openai/gpt-6-sol", keys_of(double)).acomplete(snapshot())
    assert response.served_model == served


@pytest.mark.parametrize("served", ["anthropic/claude-5.5-opus-20260922", "anthropic/claude-opus-5.5"])
async def test_openrouter_has_another_order_of_the_same_name(double: FakeProvider, served: str) -> None:
    """Seen in streams of its chat API: `anthropic/claude-4.7-opus-20260416` for `anthropic/claude-opus-4.7`."""
    double.play(Script(steps=(Step(text="x", served_model=served),)))
    response = await open_adapter("openrouter/anthropic/claude-opus-5.5", keys_of(double)).acomplete(snapshot())
    assert response.served_model == served


async def test_openrouter_may_not_serve_a_sibling(double: FakeProvider) -> None:
    double.play(Script(steps=(Step(text="x", served_model="anthropic/claude-5.5-sonnet-20260928"),)))
    with pytest.raises(ServedModelDiffers):
        await open_adapter("openrouter/anthropic/claude-opus-5.5", keys_of(double)).acomplete(snapshot())


async def test_another_snapshot_than_the_pinned_one_is_another_model(double: FakeProvider) -> None:
    double.play(Script(steps=(Step(text="x", served_model="claude-haiku-4-5-20260101"),)))
    with pytest.raises(ServedModelDiffers):
        await open_adapter("anthropic/claude-haiku-4-5-20251001", keys_of(double)).acomplete(snapshot())


@pytest.mark.parametrize(
    ("model", "options", "error"),
    [
        ("anthropic/claude-opus-5-5", ModelOptions(temperature=0.5), ConfigurationError),
        ("typesafe/jev-1.13.0", ModelOptions(), RouteRefused),
        ("openrouter/typesafe/jev-1.13", ModelOptions(), RouteRefused),
        ("anthropic/claude-9", ModelOptions(), RouteRefused),
        ("simulated/apprentice", ModelOptions(), RouteRefused),
    ],
)
def test_nothing_is_sent_for_what_may_not_be(
    double: FakeProvider, model: str, options: ModelOptions, error: type[Exception]
) -> None:
    """PROVIDERS 20 and 28: before any request."""
    with pytest.raises(error):
        open_adapter(model, keys_of(double), options=options)
    assert double.requests == ()


def test_a_binding_holds_what_the_catalogue_says_and_shows_no_key() -> None:
    binding = bind("anthropic/claude-opus-4-5", {"ANTHROPIC_API_KEY": "canary"}, ModelOptions(effort=Effort.LOW))
    assert (binding.context_tokens, binding.output_tokens_max) == (200_000, 64_000)
    assert binding.served_as == {"claude-opus-4-5", "claude-opus-4-5-20251101"}
    assert binding.prices is not None
    assert binding.prices.input == 5
    assert binding.options.effort is Effort.LOW
    assert "canary" not in repr(binding)


def test_without_a_key_no_adapter_is_opened() -> None:
    with pytest.raises(CredentialMissing):
        open_adapter("zai/glm-5.3", {})


@pytest.mark.parametrize(
    ("model", "options", "context", "output"),
    [
        ("anthropic/claude-opus-5-5", ModelOptions(), 983_616, 16_384),
        ("anthropic/claude-opus-5-5", ModelOptions(max_output_tokens=100_000), 900_000, 100_000),
        ("anthropic/claude-opus-4-5", ModelOptions(max_output_tokens=100_000), 136_000, 64_000),
        ("openrouter/some/model", ModelOptions(), 112_000, 16_000),
        ("simulated/apprentice", ModelOptions(), None, 8_192),
    ],
)
def test_a_reply_has_its_room_in_the_window(
    model: str, options: ModelOptions, context: int | None, output: int
) -> None:
    """What is asked for is never more than the model has, and the conversation leaves room for it."""
    room = room_of(model, options)
    assert (room.context_tokens, room.output_tokens) == (context, output)
