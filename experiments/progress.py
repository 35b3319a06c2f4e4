"""What a person sees while episodes run: running counts on standard error, live on a terminal, in lines elsewhere."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from experiments.suite import Outcome, OutcomeKind
from geode.clock import Clock

Counts = Mapping[str, Mapping[OutcomeKind, int]]
_LIVE_EVERY_S = 0.5
_LINE_EVERY_S = 5.0


class Progress:
    """Counts outcomes, and shows them no more often than a person can read."""

    def __init__(self, console: Console, clock: Clock, *, reused: Counts, to_run: int) -> None:
        self._console, self._clock = console, clock
        self._counts = {variant: Counter(counts) for variant, counts in reused.items()}
        self._to_run, self._run, self._found = to_run, 0, 0
        self._reasons: Counter[str] = Counter()
        self._waiting = False
        self._started_s = self._shown_s = clock.monotonic_s()
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        if self._live and to_run:
            with self._seen_or_not():
                self._live.start()
        self._show()

    @property
    def counts(self) -> Counts:
        """Outcomes by variant, reused ones included."""
        return self._counts

    @property
    def run(self) -> int:
        """How many episodes this command has run."""
        return self._run

    @property
    def found(self) -> int:
        """How many episodes of this command another process has run meanwhile."""
        return self._found

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why episodes of this command are INVALID, with how often."""
        return self._reasons

    def episode_done(self, variant: str, outcome: Outcome) -> None:
        """Count an episode that this command has run."""
        self._run += 1
        self._count(variant, outcome)

    def episode_found(self, variant: str, outcome: Outcome) -> None:
        """Count an episode that was to run here, and that another process has run."""
        self._found += 1
        self._count(variant, outcome)

    def waiting(self, episodes: int) -> None:
        """Say, once, that only episodes are left that other processes run."""
        if not self._waiting:
            self._waiting = True
            self.say(f"waiting for {episodes} episodes that other processes run")

    def _count(self, variant: str, outcome: Outcome) -> None:
        self._counts[variant][outcome.kind] += 1
        if outcome.kind is OutcomeKind.INVALID:
            self._reasons["; ".join(outcome.reasons)] += 1
        if self._clock.monotonic_s() - self._shown_s >= (_LIVE_EVERY_S if self._live else _LINE_EVERY_S):
            self._show()

    def say(self, text: str) -> None:
        """Show a line that stays."""
        with self._seen_or_not():
            self._console.print(Text(text))

    def close(self) -> None:
        """Show the last counts."""
        if self._live:
            with self._seen_or_not():
                self._live.stop()
            self._live = None
        if self._run or self._found:
            self._show()

    def _show(self) -> None:
        self._shown_s = self._clock.monotonic_s()
        with self._seen_or_not():
            if self._live:
                self._live.update(Group(counts_table(self._counts), Text(self._line())), refresh=True)
            elif self._to_run:
                self._console.print(Text(self._line()), soft_wrap=True)

    @contextmanager
    def _seen_or_not(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            # An output that is full or closed is no reason to stop episodes; the report at the end tells the counts.
            self._console.quiet = True

    def _line(self) -> str:
        total: Counter[OutcomeKind] = sum(self._counts.values(), Counter())
        kinds = "  ".join(f"{kind} {total[kind]}" for kind in OutcomeKind)
        elapsed_s = self._clock.monotonic_s() - self._started_s
        done = self._run + self._found
        elsewhere = f" ({self._found} by another process)" if self._found else ""
        line = f"{done}/{self._to_run} episodes{elsewhere}  {kinds}"
        if not done or not elapsed_s:
            return line
        rate = done / elapsed_s
        left_s = (self._to_run - done) / rate
        return f"{line}  {rate:.1f}/s" + (f"  about {left_s:.0f} s left" if done < self._to_run else "")


def counts_table(counts: Counts) -> Table:
    """Return outcomes by variant as a table."""
    table = Table(box=None, pad_edge=False)
    table.add_column("variant", overflow="fold")
    for heading in (*OutcomeKind, "pass rate"):
        table.add_column(heading, justify="right")
    for variant, of_variant in counts.items():
        rate = pass_rate(of_variant)
        shown = "-" if rate is None else f"{rate:.3f}"
        table.add_row(variant, *(str(of_variant.get(kind, 0)) for kind in OutcomeKind), shown)
    return table


def pass_rate(counts: Mapping[OutcomeKind, int]) -> float | None:
    """Return PASS among what was measured; INVALID episodes measured nothing."""
    measured = counts.get(OutcomeKind.PASS, 0) + counts.get(OutcomeKind.FAIL, 0)
    return counts.get(OutcomeKind.PASS, 0) / measured if measured else None
