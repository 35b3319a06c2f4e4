"""What one prompt may use: the scaffold's own limits, and the ruler's caps if they are lower."""

from geode.llm.messages import BoundsCost, LLMAdapter, StepSnapshot
from geode.loop.turn import TurnStop
from geode.records.checkpoint import Progress
from geode.scaffold import LoopLimits


def effective(limits: LoopLimits, caps: LoopLimits | None) -> LoopLimits:
    """Return `limits`, each lowered to the cap where there is one."""
    if caps is None:
        return limits
    lower = {
        name: min(getattr(limits, name), getattr(caps, name)) for name in ("rounds", "tokens", "seconds", "cost_usd")
    }
    return limits.model_copy(update=lower)


def left(limits: LoopLimits, progress: Progress, elapsed_s: float) -> LoopLimits:
    """Return what of `limits` is left. A limit that is used up leaves the least that a limit can be."""
    return limits.model_copy(
        update={
            "rounds": max(1, limits.rounds - progress.rounds),
            "tokens": max(1, limits.tokens - progress.tokens),
            "seconds": max(0.001, limits.seconds - elapsed_s),
            "cost_usd": max(0.0, limits.cost_usd - progress.cost_usd),
        }
    )


def passed(limits: LoopLimits, progress: Progress, elapsed_s: float) -> tuple[TurnStop, str] | None:
    """Return which limit allows no further model call, with the figures, or None."""
    if progress.rounds >= limits.rounds:
        return TurnStop.ROUND_LIMIT, f"{limits.rounds} rounds are used up"
    if progress.tokens >= limits.tokens:
        return TurnStop.TOKEN_LIMIT, f"{progress.tokens} of {limits.tokens} tokens are used up"
    if elapsed_s >= limits.seconds:
        return TurnStop.TIME_LIMIT, f"{elapsed_s:.1f} of {limits.seconds:g} seconds are used up"
    if progress.cost_usd >= limits.cost_usd and progress.cost_usd > 0:
        return TurnStop.COST_LIMIT, f"{progress.cost_usd:.4f} of {limits.cost_usd:g} US dollars are used up"
    return None


def would_pass(
    limits: LoopLimits, progress: Progress, adapter: LLMAdapter, snapshot: StepSnapshot
) -> tuple[TurnStop, str] | None:
    """Return that this call could pass the limit on cost, with the figures, or None."""
    if not isinstance(adapter, BoundsCost):
        return None
    most = adapter.cost_usd_max(snapshot)
    if most is None or progress.cost_usd + most <= limits.cost_usd:
        return None
    detail = (
        f"the next call may cost {most:.4f} US dollars, and {progress.cost_usd:.4f} of {limits.cost_usd:g} are used up"
    )
    return TurnStop.COST_LIMIT, detail
