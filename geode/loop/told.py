"""What the timeline is told of calls to the model: the one that answered, and the requests that gave nothing."""

from collections.abc import Iterator, Sequence

from geode.events import AttemptFailed, ModelCalled, preview
from geode.llm.errors import BudgetReached, ProviderError
from geode.llm.messages import ModelResponse, TextBlock
from geode.llm.spending import billed_for
from geode.llm.usage import Attempt
from geode.records.checkpoint import Progress


def model_called(progress: Progress, response: ModelResponse) -> ModelCalled:
    """Return the event of a call that was answered."""
    usage = response.usage
    return ModelCalled(
        turn=progress.turn,
        round=progress.round,
        stop=response.stop.value,
        served_model=response.served_model,
        simulated=response.simulated,
        latency_ms=response.latency_ms,
        uncached_input_tokens=usage.uncached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=usage.cost_usd,
        cost_origin=usage.cost_origin.value,
        provider=response.provider,
        request_id=response.request_id,
        text=preview("\n\n".join(block.text for block in response.blocks if isinstance(block, TextBlock))),
    )


def attempts_failed(progress: Progress, attempts: Sequence[Attempt]) -> Iterator[AttemptFailed]:
    """Yield an event for each request that gave nothing."""
    for attempt in attempts:
        yield AttemptFailed(
            turn=progress.turn,
            round=progress.round,
            error=attempt.error,
            status=attempt.status,
            request_id=attempt.request_id,
            elapsed_ms=attempt.elapsed_ms,
            waited_ms=attempt.waited_ms,
            cost_usd=attempt.usage.cost_usd if attempt.usage else None,
        )


def attempts_of(error: Exception) -> tuple[Attempt, ...]:
    """Return the requests that a call made before it failed with `error`, and the last one if it was sent."""
    if isinstance(error, BudgetReached):
        return error.attempts
    if not isinstance(error, ProviderError):
        return ()
    facts = error.facts
    last = Attempt(
        error=type(error).__name__, status=facts.status, request_id=facts.request_id, usage=billed_for(error)
    )
    return (*error.attempts, last)
