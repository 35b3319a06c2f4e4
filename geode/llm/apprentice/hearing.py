"""Chance and hearing: how the apprentice draws, and what the words that it has read do to its rates."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from geode.llm.apprentice.faults import Cue, Effect, FaultName, FaultTable, Where

StepKind = Literal["inspect", "change", "check"]

_DRAW_BITS = 53  # what a float between 0 and 1 can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Dice:
    """Random numbers that are functions of the key and of what is drawn: no order, no state."""

    key: str

    def uniform(self, *what: str | int) -> float:
        """Return the number in [0, 1) that belongs to `what`."""
        text = "\x1f".join((self.key, *map(str, what)))
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
        return (int.from_bytes(digest) >> (64 - _DRAW_BITS)) / (1 << _DRAW_BITS)

    def pick(self, count: int, *what: str | int) -> int:
        """Return the index in `range(count)` that belongs to `what`."""
        return int(self.uniform(*what) * count)


class Hearing:
    """The rates as the texts read so far have left them."""

    def __init__(self, table: FaultTable, *, system: str, tools: str) -> None:
        self._faults = table.faults
        self._reader = table.reader
        self._factors = dict.fromkeys(FaultName, 1.0)
        self._counted: set[int] = set()
        self.hear(Where.SYSTEM, system)
        self.hear(Where.TOOLS, tools)

    def hear(self, where: Where, text: str) -> None:
        """Let the factors in `text` hold from here on. A cue counts once, however often it is said."""
        for heard in self._reader.known(where, text):
            if heard.cue.factor is not None and heard.number not in self._counted:
                self._counted.add(heard.number)
                self._factors[heard.fault] *= heard.cue.factor

    def rate(self, fault: FaultName, kind: StepKind, result: str | None = None) -> float:
        """Return how often `fault` strikes a step of `kind`; `result` is the text that is being judged, if one is."""
        rate: float = getattr(self._faults[fault].rate, kind)
        if not rate:
            return 0.0
        rate *= self._factors[fault]
        for heard in self._reader.find(Where.RESULT, result) if result is not None else ():
            if heard.fault is fault and heard.cue.factor is not None:
                rate *= heard.cue.factor
        return min(rate, 1.0)

    def effect(self, effect: Effect, fault: FaultName, where: Where, text: str) -> Cue | None:
        """Return the cue in `text` that brings about `effect` against `fault`, if one does."""
        found = (heard.cue for heard in self._reader.find(where, text) if heard.fault is fault)
        return next((cue for cue in found if cue.effect is effect), None)
