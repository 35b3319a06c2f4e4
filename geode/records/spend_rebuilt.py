"""What the timelines say of spending: a ledger that is gone is made anew from them.

A request that was reserved and never ended stands in no timeline, so a new ledger lacks it. No timeline says what a
request could have cost at the most, so one of unknown cost counts as nothing there; it is shown as unknown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue

from geode.config.paths import StateRoot
from geode.llm.spending import is_billed
from geode.llm.usage import CostOrigin, Usage
from geode.records.folder import SessionFolder
from geode.records.purse import Account
from geode.records.spend import Spender, Spending
from geode.records.timeline import TimelineNewer, read_timeline

_DEPTH_MAX = 8  # of the sessions of sub-agents below one another


def recorded_spending(root: StateRoot) -> Iterator[Spending]:
    """Yield a row for each request that a session of `root` has on record, finished, set aside or still open."""
    for shelf, depth in ((root.sessions, 1), (root.episodes, 2), (root.set_aside, 1)):
        for folder in sorted(shelf.glob("/".join("*" * depth))):
            yield from _of_session(folder, None, 0)


def _of_session(folder: Path, parent: Spender | None, depth: int) -> Iterator[Spending]:
    records = SessionFolder(folder)
    try:
        state = records.read_state()
        account = Account.model_validate(state.get("account") or {})
    except (OSError, ValueError):
        return  # it never began, or nobody can say whose it is
    model = str(state.get("model", ""))
    spender = parent or account.spender(folder.name.partition(".")[0])  # what was set aside has a suffix
    if is_billed(model):
        yield from _of_timeline(records.timeline, model, spender)
    if depth < _DEPTH_MAX and records.children.is_dir():
        for child in sorted(records.children.iterdir()):
            yield from _of_session(child, spender, depth + 1)


def _of_timeline(timeline: Path, model: str, spender: Spender) -> Iterator[Spending]:
    try:
        for event in read_timeline(timeline):
            kind, at = event.get("kind"), event.get("at")
            if kind in {"model_called", "attempt_failed"} and isinstance(at, str):
                made = Spending(at=datetime.fromisoformat(at), spender=spender, model=model, usage=_usage(event))
                yield replace(made, usage=None) if made.cost_usd is None and kind == "attempt_failed" else made
    except (OSError, TimelineNewer, ValueError):
        return  # what cannot be read is told by whoever shows the session


def _usage(event: Mapping[str, JsonValue]) -> Usage:
    cost = event.get("cost_usd")
    origin = str(event.get("cost_origin") or "")
    return Usage(
        uncached_input_tokens=_count(event, "uncached_input_tokens"),
        cache_write_tokens=_count(event, "cache_write_tokens"),
        cache_read_tokens=_count(event, "cache_read_tokens"),
        output_tokens=_count(event, "output_tokens"),
        reasoning_tokens=_count(event, "reasoning_tokens"),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
        cost_origin=CostOrigin(origin) if origin in set(CostOrigin) else CostOrigin.UNKNOWN,
    )


def _count(event: Mapping[str, JsonValue], name: str) -> int | None:
    value = event.get(name)
    return value if isinstance(value, int) else None
