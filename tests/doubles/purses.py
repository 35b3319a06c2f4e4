"""A purse that a test can look into."""

from dataclasses import dataclass, field

from geode.llm.errors import BudgetReached
from geode.llm.spending import Reservation
from geode.llm.usage import Usage


@dataclass
class OpenPurse:
    """Keeps what was held and what was settled, in order, and refuses the request after `allowed` ones."""

    allowed: int = 1_000
    held: list[Reservation] = field(default_factory=list)
    settled: list[tuple[Reservation, Usage | None]] = field(default_factory=list)

    def reserve(self, model: str, most_usd: float | None) -> Reservation:
        if len(self.held) >= self.allowed:
            raise BudgetReached(f"{self.allowed} requests are allowed")
        self.held.append(Reservation(model=model, most_usd=most_usd, entry=len(self.held) + 1))
        return self.held[-1]

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        self.settled.append((reservation, usage))
