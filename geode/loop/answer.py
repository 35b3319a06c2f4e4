"""What a model said: held against the contract of an adapter, cleaned once, and made fit for the history."""

import math
from collections.abc import Set as AbstractSet
from dataclasses import replace

from geode.llm.messages import Block, Message, ModelResponse, Speaker, StopReason, TextBlock, ToolUse
from geode.loop.conversation import with_unique_ids
from geode.redaction import clean_text


def fault_of(response: object) -> str:
    """Say how `response` breaks the contract of `LLMAdapter.acomplete`, or return nothing.

    Figures are held against it too: a cost that is no number would never reach a limit.
    """
    if not isinstance(response, ModelResponse):
        return f"it returned {type(response).__name__}, not a ModelResponse"
    if not isinstance(response.stop, StopReason):
        return f"its stop reason {response.stop!r:.80} is none that is known"
    if odd := next((block for block in response.blocks if not isinstance(block, TextBlock | ToolUse)), None):
        return f"its answer holds a {type(odd).__name__}"
    usage = response.usage
    counts = {
        "uncached input tokens": usage.uncached_input_tokens,
        "cache write tokens": usage.cache_write_tokens,
        "cache read tokens": usage.cache_read_tokens,
        "output tokens": usage.output_tokens,
        "latency": response.latency_ms,
        "cost": usage.cost_usd,
    }
    wrong = [
        f"{name} {value!r}"
        for name, value in counts.items()
        if value is not None and not (math.isfinite(value) and value >= 0)
    ]
    return f"it reports {', '.join(wrong)}" if wrong else ""


def cleaned(response: ModelResponse) -> ModelResponse:
    """Return `response` with every text as any store and wire can hold it. What was sound stays byte for byte."""
    return replace(
        response,
        blocks=tuple(_cleaned(block) for block in response.blocks),
        served_model=clean_text(response.served_model),
        raw=None if response.raw is None else clean_text(response.raw),
    )


def as_message(response: ModelResponse, taken: AbstractSet[str]) -> Message | None:
    """Return a cleaned response as a message that fits onto a history with the call ids `taken`.

    Text without content goes, call ids become unique, and text stands before calls. None if nothing is left.
    """
    texts = [block for block in response.blocks if isinstance(block, TextBlock) and block.text.strip()]
    asked = [block for block in response.blocks if isinstance(block, ToolUse)]
    uses = with_unique_ids(asked, taken)
    blocks: tuple[Block, ...] = (*texts, *uses)
    # The provider's own content names the ids that it gave; sent again, it would no longer fit the results.
    raw = response.raw if list(uses) == asked else None
    return Message(role=Speaker.ASSISTANT, blocks=blocks, raw=raw) if blocks else None


def _cleaned(block: TextBlock | ToolUse) -> TextBlock | ToolUse:
    if isinstance(block, TextBlock):
        return replace(block, text=clean_text(block.text))
    return ToolUse(
        call_id=clean_text(block.call_id), name=clean_text(block.name), arguments=clean_text(block.arguments)
    )
