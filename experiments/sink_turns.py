"""Whose turn it is to write to the sinks of a state root: one process at a time, for one piece of work."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import filelock

from geode.clock import SystemClock
from geode.config.paths import StateRoot
from geode.records.folder import write_atomically

WAIT_S = 600.0  # a piece of work takes seconds; `geode archive rebuild` is one, and may take minutes


class SinksBusy(Exception):  # noqa: N818  (named by what is wrong)
    """Another process holds the sinks and does not let go, or the wait for it was given up."""


@dataclass(frozen=True, slots=True)
class SinkTurns:
    """The turns of one process."""

    root: StateRoot
    mark: str = field(default_factory=lambda: f"{os.getpid()} {SystemClock().ulid()}")

    @contextmanager
    def turn(self, give_up: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Hold the sinks. Yield whether another process has written since the last turn: what was read then is old.

        Raises:
            SinksBusy: if the sinks are not free within `WAIT_S`, or `give_up` says so.
        """
        self.root.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = filelock.FileLock(self.root.sinks_lock)
        try:
            lock.acquire(timeout=WAIT_S, cancel_check=give_up)
        except filelock.Timeout:
            raise SinksBusy(
                f"another process has held {self.root.sinks_lock} for {WAIT_S:.0f} s; see whether it hangs, then run"
                " the same command again"
            ) from None
        try:
            taken_over = self._last() != self.mark
            if taken_over:
                write_atomically(self.root.last_sinks_turn, self.mark)
            yield taken_over
        finally:
            lock.release()

    def _last(self) -> str:
        try:
            return self.root.last_sinks_turn.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
