"""What judges took for the same episodes: requests, money and time, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from judges.judgment import NoValue
from judges.ratings import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense:
    """What the judgments of one judge took.

    `cost_usd` is the sum of what is known, and lacks that of `unpriced` requests. `latency_ms` is the median over
    judgments of the time that their requests took together; None where nobody was asked. `unscored` counts entries
    without a value, out of `entries`.
    """

    judge: str
    judgments: int
    requests: int
    cost_usd: float
    unpriced: int
    latency_ms: float | None
    unscored: int
    entries: int

    @property
    def usd_per_1000(self) -> float | None:
        """What 1,000 judgments cost at this rate; None if the cost of any request is not known."""
        return None if self.unpriced or not self.judgments else 1_000 * self.cost_usd / self.judgments


def expenses(judges: Sequence[Judge]) -> tuple[Expense, ...]:
    """Return what each judge took, in the order given."""
    return tuple(_of(judge) for judge in judges)


def _of(judge: Judge) -> Expense:
    sent = [[asked for asked in judgment.asked if asked.model] for judgment in judge.judgments]
    requests = [asked for of_one in sent for asked in of_one]
    entries = [entry for judgment in judge.judgments for entry in judgment.dimensions.values()]
    took = [sum(asked.latency_ms for asked in of_one) for of_one in sent if of_one]
    return Expense(
        judge=judge.name,
        judgments=len(judge.judgments),
        requests=len(requests),
        cost_usd=sum(asked.cost_usd or 0.0 for asked in requests),
        unpriced=sum(asked.cost_usd is None for asked in requests),
        latency_ms=median(took) if took else None,
        unscored=sum(isinstance(entry, NoValue) for entry in entries),
        entries=len(entries),
    )
