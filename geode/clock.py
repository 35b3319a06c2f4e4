"""Time and identifiers, injectable: nothing else in the runtime asks the operating system for either."""

import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Clock(Protocol):
    """What the runtime asks of time. Durations come from `monotonic_s`, never from `now`."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...

    def ulid(self) -> str:
        """Return a new ULID: 26 characters, sorted by time of creation (https://github.com/ulid/spec)."""
        ...


class SystemClock:
    """The machine's own clock and randomness."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return time.monotonic()

    def ulid(self) -> str:
        """See `Clock.ulid`."""
        return encode_ulid(time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10)))


@dataclass(slots=True)
class ManualClock:
    """A clock that moves only when told to; its identifiers count up. For tests and simulations."""

    at: datetime = datetime(2030, 1, 1, tzinfo=UTC)
    elapsed_s: float = 0.0
    _issued: int = field(default=0, repr=False)

    def now(self) -> datetime:
        """See `Clock.now`."""
        return self.at + timedelta(seconds=self.elapsed_s)

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return self.elapsed_s

    def ulid(self) -> str:
        """See `Clock.ulid`."""
        self._issued += 1
        return encode_ulid(int(self.now().timestamp() * 1000), self._issued)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self.elapsed_s += seconds


def encode_ulid(unix_ms: int, randomness: int) -> str:
    """Return the ULID of a 48-bit time in milliseconds and 80 bits of randomness."""
    value = (unix_ms & (1 << 48) - 1) << 80 | randomness & (1 << 80) - 1
    return "".join(_CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5))


def rfc3339(at: datetime) -> str:
    """Return `at` in UTC with milliseconds, as every record holds it: `2030-01-01T00:00:00.000Z`.

    Raises:
        ValueError: if `at` has no zone; a record with a naive time cannot be ordered against another.
    """
    if at.tzinfo is None:
        raise ValueError(f"{at!r} has no time zone; records hold UTC only")
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
