"""Models that do what a script says."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from geode.llm.messages import ModelResponse, StepSnapshot, StopReason, TextBlock, ToolUse
from geode.llm.usage import CostOrigin, Usage

Reply = ModelResponse | BaseException | Callable[[StepSnapshot], ModelResponse | Awaitable[ModelResponse]]


class ScriptedModel:
    """Gives its replies in order and keeps what it was asked. An exception is raised, a function is called or awaited.

    The last reply is given for ever after.
    """

    model = "simulated/script"

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = list(replies)
        self.asked: list[StepSnapshot] = []

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        self.asked.append(snapshot)
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, ModelResponse):
            return reply
        made = reply(snapshot)
        return await made if isinstance(made, Awaitable) else made


class PricedModel(ScriptedModel):
    """A scripted model with prices: a reply may cost up to `cost_usd_max`. It keeps its word if its script does."""

    def __init__(self, replies: Sequence[Reply], cost_usd_max: float | None) -> None:
        super().__init__(replies)
        self._cost_usd_max = cost_usd_max

    def cost_usd_max(self, snapshot: StepSnapshot) -> float | None:
        return self._cost_usd_max


async def never_answers(_: StepSnapshot) -> ModelResponse:
    """A reply for which somebody waits for ever."""
    return await asyncio.get_running_loop().create_future()


def says(text: str, *, stop: StopReason = StopReason.END_TURN) -> ModelResponse:
    """A text-only reply."""
    return _reply((TextBlock(text=text),) if text else (), stop)


def calls(*uses: tuple[str, str, str], text: str = "", stop: StopReason = StopReason.TOOL_USE) -> ModelResponse:
    """A reply that asks for tools; each use is (call id, tool, arguments as JSON text)."""
    blocks = [TextBlock(text=text)] if text else []
    return _reply((*blocks, *(ToolUse(call_id=i, name=n, arguments=a) for i, n, a in uses)), stop)


def _reply(blocks: tuple[TextBlock | ToolUse, ...], stop: StopReason) -> ModelResponse:
    return ModelResponse(
        blocks=blocks,
        stop=stop,
        usage=Usage(uncached_input_tokens=100, output_tokens=10, cost_usd=0.001, cost_origin=CostOrigin.COMPUTED),
        served_model="simulated/script",
        latency_ms=5,
        simulated=True,
    )
