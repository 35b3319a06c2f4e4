"""Judging what has run: each episode by one engine under one rubric, every judgment kept as soon as it is there.

Stopped, it goes on with the same command: what is in the ledgers is neither asked nor paid for again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from analysis.judged import Subject
from geode.llm.errors import BudgetReached
from geode.records.database import RecordError
from geode.records.timeline import TimelineNewer
from judges.engine import JudgeEngine
from judges.independence import NotIndependent
from judges.judgment import Judgment, NoValue, Unscored, judgment_key
from judges.ledger import JudgmentLedger, LedgerInUse, LedgerNewer, is_settled
from judges.rubric import Rubric
from judges.view import EpisodeView

_DOWN_IN_A_ROW_MAX = 5
"""So many episodes in a row that infrastructure spoiled say that the judge is down: nobody waits for the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of judging some episodes.

    `given` are the judgments of this run, `found` counts those that were there before, `left` those that are still to
    be given. `unreadable` are episodes whose record or whose ledger cannot be read, `refused` those that the judge may
    not judge, each with the reason; `elsewhere` are those that another command judges at the moment. `stopped` says why
    it ended early, empty if it did not.
    """

    given: tuple[Judgment, ...]
    found: int
    left: int
    unreadable: tuple[str, ...]
    elsewhere: tuple[str, ...]
    problems: tuple[str, ...]
    stopped: str
    out_of_budget: bool
    refused: tuple[str, ...] = ()

    @property
    def cost_usd(self) -> float | None:
        """What this run cost; None if the cost of any request is not known."""
        costs = [judgment.cost_usd for judgment in self.given]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def requests(self) -> int:
        """How many requests were sent to models."""
        return sum(bool(asked.model) for judgment in self.given for asked in judgment.asked)

    def unscored(self) -> Counter[tuple[str, str]]:
        """Count the dimensions without a value, by dimension and reason."""
        entries = ((name, entry) for judgment in self.given for name, entry in judgment.dimensions.items())
        return Counter((name, entry.reason.value) for name, entry in entries if isinstance(entry, NoValue))


@dataclass(slots=True)
class _Run:
    engine: JudgeEngine
    rubric: Rubric
    told: Callable[[Judgment], None]
    ledgers: "_Ledgers"
    given: list[Judgment] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    found: int = 0
    done: int = 0
    down_in_a_row: int = 0
    stopped: str = ""
    out_of_budget: bool = False


async def judge_subjects(
    subjects: Sequence[Subject],
    engine: JudgeEngine,
    rubric: Rubric,
    *,
    repetitions: int = 1,
    concurrency: int = 4,
    told: Callable[[Judgment], None] = lambda _: None,
) -> Judged:
    """Judge each subject `repetitions` times, so many at once, and keep each judgment in the subject's ledger.

    Cancelled, it stops asking; what was kept is kept. `told` is called for each judgment after it was kept.

    Raises:
        RubricRefused, ConfigurationError: if the engine cannot judge by the rubric, or cannot be reached as configured.
    """
    engine.question_set(rubric)  # what it refuses, it refuses before anything is opened
    run = _Run(engine=engine, rubric=rubric, told=told, ledgers=_Ledgers())
    waiting = iter([(subject, repetition) for repetition in range(repetitions) for subject in subjects])
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(concurrency, len(subjects) * repetitions)):
                tasks.create_task(_take(run, waiting))
    except BaseExceptionGroup as several:  # callers know single ones; what fails one task fails the others alike
        raise several.exceptions[0] from several
    return Judged(
        given=tuple(run.given),
        found=run.found,
        left=len(subjects) * repetitions - run.done,
        refused=tuple(dict.fromkeys(run.refused)),
        unreadable=tuple(dict.fromkeys(run.unreadable)),
        elsewhere=tuple(dict.fromkeys(run.elsewhere)),
        problems=tuple(run.ledgers.problems),
        stopped=run.stopped,
        out_of_budget=run.out_of_budget,
    )


class _LedgerUnusable(Exception):  # noqa: N818  (named by what it is)
    """The file of judgments cannot be opened, or is of a newer version: nothing is paid for that could not be kept."""


class _Ledgers:
    """Ledgers that are open as long as somebody judges by them: a sweep has more of them than a process has files."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[JudgmentLedger, int]] = {}
        self.problems: dict[str, None] = {}

    @contextmanager
    def of(self, path: Path) -> Iterator[JudgmentLedger]:
        try:
            ledger, users = self._open.get(path) or (JudgmentLedger(path), 0)
        except (LedgerNewer, OSError) as error:
            raise _LedgerUnusable(str(error)) from error
        self._open[path] = ledger, users + 1
        self.problems.update(dict.fromkeys(ledger.problems))
        try:
            yield ledger
        finally:
            ledger, users = self._open.pop(path)
            if users > 1:
                self._open[path] = ledger, users - 1
            else:
                ledger.close()


async def _take(run: _Run, waiting: Iterator[tuple[Subject, int]]) -> None:
    for subject, repetition in waiting:
        if run.stopped:
            return
        try:
            view = await asyncio.to_thread(subject.view)
        except (RecordError, TimelineNewer, ValueError, KeyError, FileNotFoundError) as error:
            run.unreadable.append(f"{subject.name}: {error}")
            run.done += 1
            continue
        try:
            with run.ledgers.of(subject.ledger) as ledger:
                await _judge(run, view, ledger, repetition)
        except LedgerInUse:
            run.elsewhere.append(subject.name)
        except _LedgerUnusable as problem:
            run.unreadable.append(f"{subject.name}: {problem}")
            run.done += 1


async def _judge(run: _Run, view: EpisodeView, ledger: JudgmentLedger, repetition: int) -> None:
    engine, rubric = run.engine, run.rubric
    key = judgment_key(
        view.episode,
        view.digest,
        engine.engine_id,
        rubric.rubric_id,
        engine.question_set(rubric),
        repetition=repetition,
    )
    if ledger.holds(key):
        run.found += 1
        run.done += 1
        return
    try:
        judgment = await engine.judge(view, rubric, repetition=repetition)
    except NotIndependent as refusal:
        run.refused.append(f"{view.episode}: {refusal}")
        run.done += 1
        return
    except BudgetReached as reached:
        run.stopped, run.out_of_budget = run.stopped or str(reached), True
        return
    try:
        ledger.append(judgment)
    except OSError as error:
        run.stopped = run.stopped or f"a judgment of {view.episode} cannot be kept ({error})"
        return
    run.given.append(judgment)
    run.told(judgment)
    if judgment.cut_by:  # the next one would only be paid for in part, too, and both be asked about again
        run.stopped, run.out_of_budget = run.stopped or judgment.cut_by, True
        return
    if is_settled(judgment):
        run.down_in_a_row = 0
        run.done += 1
        return
    run.down_in_a_row += 1
    if run.down_in_a_row >= _DOWN_IN_A_ROW_MAX:
        run.stopped = run.stopped or f"the judge gave nothing {run.down_in_a_row} times in a row: {_why(judgment)}"


def _why(judgment: Judgment) -> str:
    failed = [asked.failed for asked in judgment.asked if asked.failed]
    entries = [
        e for e in judgment.dimensions.values() if isinstance(e, NoValue) and e.reason is Unscored.INFRASTRUCTURE
    ]
    return failed[-1] if failed else next((entry.raw for entry in entries if entry.raw), "it did not say why")
