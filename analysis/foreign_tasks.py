"""Foreign logs task by task: which tasks moved, what could not be paired, and the command behind every figure."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.console import RenderableType
from rich.text import Text

from analysis.foreign import OWN_HARNESS, Unit
from analysis.foreign_compare import LogComparison, LogPair, ShownAttempt, TaskAttempts
from analysis.terminal import open_table, printable

_TASKS_SHOWN = 20
_UNPAIRED_SHOWN = 3
_KEY_DIGITS = 12
_NAME_WIDTH = 28


def moved_table(
    comparison: LogComparison, scores: Sequence[str], width: int, *, full: bool
) -> Iterator[RenderableType]:
    """Yield the paired tasks, those that moved most first: with each log's value, or, of several scores, a summary."""
    tasks = _by_movement(comparison, scores)
    shown = tasks if full else tasks[:_TASKS_SHOWN]
    if len(scores) == 1:
        yield Text(printable(f"By task: {scores[0]}"), style="bold")
        yield from _values_tables(comparison, scores[0], shown, width)
    else:
        yield Text(f"By task: how many of the {len(scores)} scores are higher and lower than in A", style="bold")
        yield _summary_table(comparison, scores, shown)
    if len(tasks) > len(shown):
        yield Text(f"and {len(tasks) - len(shown)} tasks more: --tasks", style="dim")


def _by_movement(comparison: LogComparison, scores: Sequence[str]) -> list[TaskAttempts]:
    """Return the tasks with a pair. One score's largest change says how far a task moved, several scores' count."""
    tasks = [task for task in comparison.tasks if any(attempt.paired for attempt in task.logs[0])]

    def moved(task: TaskAttempts) -> float:
        found = [change for place in range(1, len(task.logs)) for change in changes(task, place, scores)]
        return float(max((abs(change.by) for change in found), default=-1) if len(scores) == 1 else len(found))

    return sorted(tasks, key=lambda task: (-moved(task), task.task))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One score of a task that differs between the first log and another, by its mean over pairs with both values."""

    score: str
    first: float
    second: float

    @property
    def by(self) -> float:
        """Second minus first."""
        return self.second - self.first


def changes(task: TaskAttempts, place: int, scores: Sequence[str]) -> list[Change]:
    """Return the scores that differ between the first log and the one at `place`, the largest change first."""
    found = []
    first = {attempt.attempt: attempt for attempt in task.logs[0]}
    pairs = [(first[other.attempt], other) for other in task.logs[place] if other.attempt in first]
    for score in scores:
        ends = [
            (before, after)
            for one, other in pairs
            if (before := one.values.get(score)) is not None and (after := other.values.get(score)) is not None
        ]
        if ends:
            change = Change(score=score, first=fmean(e[0] for e in ends), second=fmean(e[1] for e in ends))
            found += [change] if change.by else []
    return sorted(found, key=lambda change: (-abs(change.by), change.score))


def _values_tables(
    comparison: LogComparison, score: str, tasks: Sequence[TaskAttempts], width: int
) -> Iterator[RenderableType]:
    """Yield one table, or several where the logs are too many for the width; the first log is in each."""
    passes = score in comparison.passes_and_failures
    rows = [[_value(attempts, score, passes=passes) for attempts in task.logs] for task in tasks]
    widest = max((len(cell) for cells in rows for cell in cells), default=0) + 2
    room = max(1, (width - _NAME_WIDTH) // widest - 1)
    for start in range(1, len(comparison.logs), room):
        places = [0, *range(start, min(start + room, len(comparison.logs)))]
        table = open_table("task", *(comparison.logs[place].letter for place in places))
        for task, cells in zip(tasks, rows, strict=True):
            table.add_row(Text(printable(task.task)), *(cells[place] for place in places))
        yield from (Text(), table) if start > 1 else (table,)


def _value(attempts: Sequence[ShownAttempt], score: str, *, passes: bool) -> Text:
    paired = [attempt for attempt in attempts if attempt.paired]
    values = [value for attempt in paired if (value := attempt.values.get(score)) is not None]
    invalid = sum(attempt.invalid is not None for attempt in paired)
    if len(paired) == 1:
        return _only_value(paired[0], score, passes=passes)
    shown = f"{sum(values):g}/{len(values)}" if passes else f"{fmean(values):.2f}" if values else "–"
    return Text.assemble(shown, (f" {invalid} INVALID", "magenta") if invalid else "") if paired else Text("–")


def _only_value(attempt: ShownAttempt, score: str, *, passes: bool) -> Text:
    value = attempt.values.get(score)
    if attempt.invalid is not None:
        return Text("INVALID", style="magenta")
    if value is None:
        return Text("unscored", style="magenta")
    if passes:
        return Text("PASS", style="green") if value else Text("FAIL", style="red")
    return Text(f"{value:.2f}")


def _summary_table(comparison: LogComparison, scores: Sequence[str], tasks: Sequence[TaskAttempts]) -> RenderableType:
    several = len(comparison.pairs) > 1
    table = open_table("task", *([""] if several else []), "higher", "lower", "largest change")
    table.columns[-1].justify, table.columns[-1].no_wrap, table.columns[-1].overflow = "left", False, "fold"
    for task in tasks:
        name = printable(task.task)
        for place, pair in enumerate(comparison.pairs, start=1):
            if not any(attempt.paired for attempt in task.logs[place]):
                continue
            found = changes(task, place, scores)
            higher = sum(change.by > 0 for change in found)
            largest = f"{printable(found[0].score)} {found[0].first:g} -> {found[0].second:g}" if found else ""
            letter = [pair.letter] if several else []
            table.add_row(Text(name), *letter, str(higher), str(len(found) - higher), Text(largest))
            name = ""  # told once
    return table


def unpaired(comparison: LogComparison, *, full: bool) -> Iterator[Text]:
    """Yield what could not be paired, and why: the other log lacks the task, or this attempt at it, or the score."""
    for place, pair in enumerate(comparison.pairs, start=1):
        found = pair.found
        for here, there, units, lacking in (
            ("A", pair.letter, found.only_first, place),
            (pair.letter, "A", found.only_second, 0),
        ):
            known = {task.task for task in comparison.tasks if task.logs[lacking]}
            for why, group in (
                (f"{there} has no attempt at the task", [unit for unit in units if unit.task not in known]),
                (f"{there} has other attempts at the task", [unit for unit in units if unit.task in known]),
            ):
                if group:
                    limit = len(group) if full else _UNPAIRED_SHOWN
                    rest = f" and {len(group) - limit} more: --tasks" if len(group) > limit else ""
                    named = ", ".join(map(_name, group[:limit]))
                    yield Text(f"{len(group)} only in {here}, {why}: {named}{rest}", style="dim")
        for letter, names in (("A", found.scores_only_first), (pair.letter, found.scores_only_second)):
            if names:
                yield Text(f"scores only in {letter}: {', '.join(map(printable, names))}", style="yellow")


def _name(unit: Unit) -> str:
    return f"{printable(unit.task)} ({unit.attempt})"


def transcripts(comparison: LogComparison, scores: Sequence[str], root: str) -> Text:
    """Return the command that shows each paired attempt. Each is one line, so that it can be copied."""
    lines = [Text("\nTranscripts", style="bold")]
    for task in _by_movement(comparison, scores):
        lines.append(Text(printable(task.task)))
        for log, attempts in zip(comparison.logs, task.logs, strict=True):
            shown = [attempt for attempt in attempts if attempt.paired]
            lines += [_command(comparison, attempt, f"  {log.letter}  ", root) for attempt in shown]
    return Text("\n").join(lines)


def commands(comparison: LogComparison, scores: Sequence[str], root: str, *, full: bool) -> Text:
    """Return what leads from the tables on: both ends of the largest change, and what to add to the command."""
    lines = [Text("")]
    moved = _by_movement(comparison, scores)
    if moved and not full:
        found = [(place, changes(moved[0], place, scores)) for place in range(1, len(comparison.logs))]
        place = max(found, key=lambda each: abs(each[1][0].by) if each[1] else -1)[0]
        told = f"The task that moved most, {moved[0].task}, in A and {comparison.logs[place].letter}:"
        lines.append(Text(printable(told), style="dim"))
        for attempts in (moved[0].logs[0], moved[0].logs[place]):
            lines += [_command(comparison, attempt, "  ", root) for attempt in attempts[:1] if attempt.paired]
    if not full:
        lines.append(_option("--tasks", "every task, with the command behind each of its figures"))
    if len(scores) > 1:
        lines.append(_option(f"--score {shlex.quote(_most_moved(comparison.pairs))}", "one score, task by task"))
    return Text("\n").join(lines)


def _option(option: str, why: str) -> Text:
    return Text.assemble("The same with ", (option, "cyan"), (f": {why}", "dim"))


def _most_moved(pairs: Sequence[LogPair]) -> str:
    rows = [row for pair in pairs for row in pair.found.rows]
    return max(rows, key=lambda row: len(row.better) + len(row.worse)).score


def _command(comparison: LogComparison, attempt: ShownAttempt, before: str, root: str) -> Text:
    shown, option = attempt.shown_as, ""
    if comparison.harness == OWN_HARNESS:
        shown, option = shown[:_KEY_DIGITS], f" --root {shlex.quote(root)}" if root else ""
    told = []
    if attempt.invalid is not None:
        told.append("INVALID")
    elif len(attempt.values) == 1:
        told += [
            _only_value(attempt, score, passes=score in comparison.passes_and_failures).plain
            for score in attempt.values
        ]
    if comparison.harness == OWN_HARNESS:  # elsewhere the command says which attempt it is
        told.append(attempt.attempt)
    command = f"geode show {shlex.quote(printable(shown))}{option}"
    return Text.assemble(before, (command, "cyan"), (f"  {', '.join(told)}" if told else "", "dim"))
