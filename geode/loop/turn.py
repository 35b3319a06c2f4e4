"""A turn: one prompt, and every way in which it can end."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from geode.llm.usage import Usage
from geode.records.checkpoint import Progress


class TurnStop(StrEnum):
    """Why a turn ended. Only `COMPLETED` with `verified` is a success that was checked."""

    COMPLETED = "completed"
    NOT_VERIFIED = "not_verified"
    ESCALATED = "escalated"
    PROMPT_BLOCKED = "prompt_blocked"
    MODEL_REFUSED = "model_refused"
    MODEL_FAILED = "model_failed"
    EMPTY_ANSWERS = "empty_answers"
    CUT_ANSWERS = "cut_answers"
    CONTEXT_FULL = "context_full"
    ROUND_LIMIT = "round_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105  (not a password)
    TIME_LIMIT = "time_limit"
    COST_LIMIT = "cost_limit"
    BUDGET_REACHED = "budget_reached"
    CHECKPOINT_FAILED = "checkpoint_failed"
    CANCELLED = "cancelled"


INFRASTRUCTURE_STOPS = frozenset({TurnStop.MODEL_FAILED, TurnStop.CHECKPOINT_FAILED, TurnStop.CANCELLED})
"""Ends that say nothing about the agent: an experiment counts such an episode as INVALID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a turn ended, before its figures are added."""

    stop: TurnStop
    text: str = ""
    detail: str = ""
    verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """What a turn gave. Counts and usage are those of this prompt, over all processes that worked on it.

    The cost in `usage` is None if that of any call is not known; `cost_usd_known` is the sum of the others.
    """

    text: str
    stop: TurnStop
    detail: str
    verified: bool
    rounds: int
    repairs_used: int
    model_calls: int
    tool_calls: int
    tool_errors: int
    refused_calls: int
    usage: Usage
    cost_usd_known: float
    unpriced_calls: int
    latency_ms: int
    simulated: bool

    @classmethod
    def of(cls, ending: Ending, progress: Progress) -> Self:
        """Join how a turn ended and what it used."""
        return cls(
            text=ending.text,
            stop=ending.stop,
            detail=ending.detail,
            verified=ending.verified,
            rounds=progress.rounds,
            repairs_used=progress.repairs_used,
            model_calls=progress.model_calls,
            tool_calls=progress.tool_calls,
            tool_errors=progress.tool_errors,
            refused_calls=progress.refused_calls,
            usage=Usage(
                uncached_input_tokens=progress.uncached_input_tokens,
                cache_write_tokens=progress.cache_write_tokens,
                cache_read_tokens=progress.cache_read_tokens,
                output_tokens=progress.output_tokens,
                reasoning_tokens=progress.reasoning_tokens,
                cost_usd=None if progress.unpriced_calls else progress.cost_usd,
            ),
            cost_usd_known=progress.cost_usd,
            unpriced_calls=progress.unpriced_calls,
            latency_ms=progress.latency_ms,
            simulated=progress.simulated,
        )
