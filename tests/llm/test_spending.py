"""What a failed request is taken to have cost."""

import asyncio

import pytest

from geode.llm.errors import ConnectionFailed, Facts, Overloaded, RateLimited, RequestInvalid, StreamCut
from geode.llm.spending import NOT_BILLED, NoPurse, billed_for
from geode.llm.usage import Usage


@pytest.mark.parametrize(("kind", "status"), [(RateLimited, 429), (RequestInvalid, 400), (Overloaded, 529)])
def test_a_request_that_was_turned_away_cost_nothing(kind: type[RateLimited], status: int) -> None:
    """Else a storm of refusals would use up a budget of which nothing was spent."""
    assert billed_for(kind("no", Facts(provider="anthropic", status=status))) == NOT_BILLED


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailed("time is up", Facts(provider="openai")),
        StreamCut("cut", Facts(provider="openai", status=200)),
        Overloaded("in the stream", Facts(provider="anthropic", status=200)),
        Overloaded("gave up", Facts(provider="openrouter", status=524)),
        asyncio.CancelledError(),
    ],
)
def test_nobody_knows_the_cost_of_a_request_that_may_have_begun(error: BaseException) -> None:
    """A cost that was not said is no zero."""
    assert billed_for(error) is None


def test_what_the_provider_said_of_a_failed_request_counts() -> None:
    """A stream tells of its input first, and may be cut after that."""
    said = Usage(uncached_input_tokens=9, output_tokens=1, cost_usd=0.25)
    assert billed_for(StreamCut("cut", Facts(provider="anthropic", status=200), usage=said)) == said


def test_without_a_purse_everything_is_allowed() -> None:
    """A composition without accounts still sends through the same door."""
    purse = NoPurse()
    held = purse.reserve("openai/gpt-6-sol", None)
    purse.settle(held, None)
    assert (held.model, held.most_usd) == ("openai/gpt-6-sol", None)
