"""What was spent, added up out of the ledger: unknown cost apart, and never as zero."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Self

from pydantic import JsonValue

from geode.records.spend import Spending

COSTS_SCHEMA = "geode.costs/1"


class By(StrEnum):
    """What spend can be added up by."""

    MODEL = "model"
    ROLE = "role"
    EXPERIMENT = "experiment"
    SESSION = "session"
    DAY = "day"


_NAME: Mapping[By, Callable[[Spending], str]] = {
    By.MODEL: lambda row: row.model,
    By.ROLE: lambda row: row.spender.role,
    By.EXPERIMENT: lambda row: row.spender.experiment or "(none)",
    By.SESSION: lambda row: row.spender.session,
    By.DAY: lambda row: f"{row.at:%Y-%m-%d}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """Requests under one name, and what they cost.

    `cost_usd` is what is known. `unknown` requests have a cost that nobody knows, and were billed `unknown_usd_max` at
    the most where even that is known; `open` ones are under way, and hold `open_usd_max`. Tokens are those that were
    told of.
    """

    name: str
    requests: int = 0
    cost_usd: Decimal = Decimal(0)
    unknown: int = 0
    unknown_usd_max: Decimal = Decimal(0)
    open: int = 0
    open_usd_max: Decimal = Decimal(0)
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    @classmethod
    def of(cls, name: str, rows: Iterable[Spending], now: datetime) -> Self:
        """Add `rows` up."""
        rows = tuple(rows)
        under_way = [row for row in rows if row.open_at(now)]
        unknown = [row for row in rows if row.cost_usd is None and not row.open_at(now)]
        usages = [row.usage for row in rows if row.usage is not None]
        return cls(
            name=name,
            requests=len(rows),
            cost_usd=sum((row.cost_usd or Decimal(0) for row in rows), Decimal(0)),
            unknown=len(unknown),
            unknown_usd_max=sum((row.counted_usd for row in unknown), Decimal(0)),
            open=len(under_way),
            open_usd_max=sum((row.counted_usd for row in under_way), Decimal(0)),
            input_tokens=sum(usage.input_tokens or 0 for usage in usages),
            cached_tokens=sum(usage.cache_read_tokens or 0 for usage in usages),
            output_tokens=sum(usage.output_tokens or 0 for usage in usages),
            reasoning_tokens=sum(usage.reasoning_tokens or 0 for usage in usages),
        )

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as JSON values, money as numbers."""
        return {
            "name": self.name,
            "requests": self.requests,
            "cost_usd": float(self.cost_usd),
            "unknown_requests": self.unknown,
            "unknown_usd_max": float(self.unknown_usd_max),
            "open_requests": self.open,
            "open_usd_max": float(self.open_usd_max),
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """All that was spent since a day, in all and by name, the dearest first; days in their order."""

    by: By
    since: str
    total: CostLine
    lines: tuple[CostLine, ...]

    @classmethod
    def of(cls, rows: Iterable[Spending], by: By, since: str, now: datetime) -> Self:
        """Add `rows` up, of the day `since` (YYYY-MM-DD) and later ones."""
        kept = [row for row in rows if f"{row.at:%Y-%m-%d}" >= since]
        named: dict[str, list[Spending]] = {}
        for row in kept:
            named.setdefault(_NAME[by](row), []).append(row)
        lines = [CostLine.of(name, of_name, now) for name, of_name in named.items()]
        lines.sort(key=lambda line: (line.name if by is By.DAY else "", -line.cost_usd, line.name))
        return cls(by=by, since=since, total=CostLine.of("total", kept, now), lines=tuple(lines))

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as JSON values."""
        return {
            "schema": COSTS_SCHEMA,
            "by": self.by.value,
            "since": self.since or None,
            "total": self.total.to_json(),
            "lines": [line.to_json() for line in self.lines],
        }

    def text(self) -> str:
        """Return it as a table for people."""
        if not self.total.requests:
            return f"No request to a billed model{f' since {self.since}' if self.since else ''}."
        header = (self.by.value, "cost USD", "requests", "unknown", "open", "in", "cached", "out", "reasoning")
        rows = [header, *(_shown(line) for line in (*self.lines, self.total))]
        widths = [max(len(row[at]) for row in rows) for at in range(len(header))]
        table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        return "\n".join([*table, *self._notes()])

    def _notes(self) -> Iterable[str]:
        if self.total.unknown:
            yield (
                f"unknown: {self.total.unknown} requests whose cost nobody knows, {self.total.unknown_usd_max:.4f} USD"
                " at the most as far as prices are known; caps count them as that."
            )
        if self.total.open:
            yield f"open: {self.total.open} requests under way hold {self.total.open_usd_max:.4f} USD."


def _shown(line: CostLine) -> tuple[str, ...]:
    counts = (line.requests, line.unknown, line.open, line.input_tokens, line.cached_tokens, line.output_tokens)
    return (line.name, f"{line.cost_usd:.4f}", *(f"{count:,}" for count in (*counts, line.reasoning_tokens)))
