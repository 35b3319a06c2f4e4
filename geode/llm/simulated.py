"""The adapter `simulated/apprentice`: no language model, but a seeded worker with documented faults.

It is a pure function of its key, outline, table and of what a model would see: the system text, the tools and the
messages. It never reads a name, id or digest of the session. What it keeps between two calls only spares it from
reading the same messages again.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

from geode.llm.apprentice.faults import FaultTable, fault_table_hash, shipped_table
from geode.llm.apprentice.hearing import Dice, Hearing
from geode.llm.apprentice.moves import Action, Repertoire
from geode.llm.apprentice.wanderer import Wanderer
from geode.llm.apprentice.worker import Worker
from geode.llm.messages import (
    Message,
    ModelResponse,
    StepSnapshot,
    StopReason,
    TextBlock,
    ToolResult,
    ToolSchema,
    ToolUse,
)
from geode.llm.outline import Outline
from geode.llm.usage import CostOrigin, Usage

__all__ = ["MODEL", "Apprentice", "FaultTable", "fault_table_hash", "shipped_table"]

MODEL = "simulated/apprentice"
_CHARS_PER_TOKEN = 4
_STANDARD_NORMAL = NormalDist()
_TINY = 2.0**-54  # keeps the logarithm of a draw of exactly 0 finite


class _Mind(Protocol):
    def read(self, message: Message) -> None: ...

    def act(self) -> Action: ...


@dataclass(slots=True, kw_only=True)
class _Reading:
    """How far a conversation was read, under which system text and tools, and what it came to."""

    system: str
    tools: tuple[ToolSchema, ...]
    mind: _Mind
    fixed_chars: int
    messages: tuple[Message, ...] = ()
    chars: int = 0

    def continues_in(self, snapshot: StepSnapshot) -> bool:
        return (
            self.system == snapshot.system
            and self.tools == snapshot.tools
            and self.messages == snapshot.messages[: len(self.messages)]
        )


class Apprentice:
    """Implements `LLMAdapter` and `BoundsCost`.

    `key` is "scaffold_id/task/seed/repetition": another key draws other numbers.
    """

    def __init__(self, *, outline: Outline | None, key: str, table: FaultTable | None = None) -> None:
        self._outline = outline
        self._dice = Dice(key=key)
        self._table = table if table is not None else shipped_table()
        self._reading: _Reading | None = None

    @property
    def model(self) -> str:
        """See `LLMAdapter.model`."""
        return MODEL

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """See `LLMAdapter.acomplete`. It neither waits nor fails."""
        return self._respond(snapshot)

    def cost_usd_max(self, snapshot: StepSnapshot) -> float:
        """See `BoundsCost`. What it will say is a function of the snapshot, so this is what it will cost."""
        return self._respond(snapshot).usage.cost_usd or 0.0

    def _respond(self, snapshot: StepSnapshot) -> ModelResponse:
        reading = self._read(snapshot)
        action = reading.mind.act()
        at = len(snapshot.messages)
        blocks: list[TextBlock | ToolUse] = [TextBlock(text=action.says)] if action.says else []
        blocks += [
            ToolUse(call_id=f"call_{at}_{position}", name=call.tool, arguments=call.arguments)
            for position, call in enumerate(action.calls)
        ]
        input_tokens = _tokens(reading.fixed_chars + reading.chars)
        output_tokens = _tokens(sum(map(_chars, blocks)))
        return ModelResponse(
            blocks=tuple(blocks),
            stop=StopReason.TOOL_USE if action.calls else StopReason.END_TURN,
            usage=self._usage(input_tokens, output_tokens),
            served_model=MODEL,
            latency_ms=self._latency_ms(at, output_tokens),
            simulated=True,
        )

    def _read(self, snapshot: StepSnapshot) -> _Reading:
        reading = self._reading
        if reading is None or not reading.continues_in(snapshot):
            reading = self._begin(snapshot)
        for message in snapshot.messages[len(reading.messages) :]:
            reading.mind.read(message)
            reading.chars += sum(map(_chars, message.blocks))
        reading.messages = snapshot.messages
        self._reading = reading
        return reading

    def _begin(self, snapshot: StepSnapshot) -> _Reading:
        tools = snapshot.tools
        schemas = sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema)) for tool in tools)
        return _Reading(
            system=snapshot.system,
            tools=tools,
            mind=self._mind(snapshot.system, tools),
            fixed_chars=len(snapshot.system) + schemas,
        )

    def _mind(self, system: str, tools: Sequence[ToolSchema]) -> _Mind:
        if self._outline is None:
            return Wanderer(tools)
        return Worker(
            repertoire=Repertoire(self._outline, tools, self._table.check_files),
            table=self._table,
            dice=self._dice,
            hearing=Hearing(self._table, system=system, tools="\n\n".join(tool.description for tool in tools)),
        )

    def _usage(self, input_tokens: int, output_tokens: int) -> Usage:
        prices = self._table.prices
        cost = input_tokens * prices.input_usd_per_million + output_tokens * prices.output_usd_per_million
        return Usage(
            uncached_input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost_usd=cost / 1e6,
            cost_origin=CostOrigin.SIMULATED,
        )

    def _latency_ms(self, at: int, output_tokens: int) -> int:
        latency = self._table.latency
        deviation = _STANDARD_NORMAL.inv_cdf(max(self._dice.uniform("latency", at), _TINY))
        typical = latency.first_token_ms + latency.output_token_ms * output_tokens
        return round(typical * math.exp(latency.spread * deviation))


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_PER_TOKEN)


def _chars(block: TextBlock | ToolUse | ToolResult) -> int:
    return len(block.name) + len(block.arguments) if isinstance(block, ToolUse) else len(block.text)
