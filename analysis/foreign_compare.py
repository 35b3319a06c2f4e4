"""Foreign logs beside a first one: each pairing, what may not be compared, and a verdict that decides nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import fmean
from string import ascii_uppercase
from typing import Any

from analysis.compare import EXIT_CODES
from analysis.foreign import OWN_HARNESS, AttemptFacts, ForeignRun, LogsRefused, Unit
from analysis.foreign_drift import LogDrift, drift_told, find_log_drift
from analysis.foreign_pair import Paired, Scale, pair_logs
from experiments.gate import GateSpec, VerdictKind

LOGS_SCHEMA = "geode.comparison_of_logs/2"
LOGS_MAX = len(ascii_uppercase)
NOT_INTERLEAVED = "the logs did not run as one interleaved experiment: what else changed is in the difference"


class LogReasonCode(StrEnum):
    """Why a log gets its verdict. Programs read the code, people the text beside it."""

    NOT_INTERLEAVED = "not_interleaved"
    RULERS_DIFFER = "rulers_differ"
    NOTHING_MEASURED = "nothing_measured"
    INVALID_SHARE = "invalid_share"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReason:
    """One reason of a verdict on a log."""

    code: LogReasonCode
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogVerdict:
    """UNDECIDED, since logs that were not interleaved decide nothing, or INVALID if even the figures mislead."""

    kind: VerdictKind
    reasons: tuple[LogReason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpend:
    """Means over the paired attempts that tell of it; None if none does. `attempts` are all that were paired."""

    attempts: int
    tokens: float | None
    other_tokens: float | None
    cost_usd: float | None
    wall_s: float | None
    turns: float | None
    tool_calls: float | None
    tool_errors: float | None
    repairs: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSide:
    """One log. Times are as the log has them, MCPMark's without a zone."""

    letter: str
    name: str
    subject: str
    attempts: int
    invalid: int
    first_start: str | None
    last_start: str | None
    spend: LogSpend


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPair:
    """A log beside the first."""

    letter: str
    verdict: LogVerdict
    found: Paired


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAttempt:
    """One attempt behind a figure; `shown_as` is what `geode show` takes."""

    attempt: str
    shown_as: str
    paired: bool
    invalid: str | None
    values: dict[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttempts:
    """One task: the attempts of each log, in the order of the logs."""

    task: str
    logs: tuple[tuple[ShownAttempt, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RulerDifference:
    """What is not equal in all logs. `strict`: it is part of the ruler, and not only of the surroundings."""

    name: str
    strict: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogComparison:
    """All of it; the first log is the baseline. Intervals hold for all pairs and scores together.

    `passes_and_failures` names the scores that are 1 or 0. `drift` has every series that could be tested.
    """

    harness: str
    confidence: float
    passes_and_failures: tuple[str, ...]
    logs: tuple[LogSide, ...]
    pairs: tuple[LogPair, ...]
    tasks: tuple[TaskAttempts, ...]
    ruler_differences: tuple[RulerDifference, ...]
    drift: tuple[LogDrift, ...]
    warnings: tuple[str, ...]

    @property
    def drifted(self) -> bool:
        """Say whether a series surprises at this confidence."""
        return any(seen.p <= 1 - self.confidence for seen in self.drift)


def compare_runs(runs: Sequence[ForeignRun], *, confidence: float = 0.95) -> LogComparison:
    """Compare each log with the first.

    Raises:
        LogsRefused: if there are fewer than two or too many, if they are of different harnesses, or if one has no task
            or no score in common with the first, or is the very same.
    """
    if not 2 <= len(runs) <= LOGS_MAX:
        raise LogsRefused(
            f"give two logs to compare, or up to {LOGS_MAX}, not {len(runs)}: geode compare A.eval B.eval"
        )
    first, others = runs[0], runs[1:]
    for run in others:
        _refuse(first, run)
    letters = ascii_uppercase[: len(runs)]
    scale = _scale(runs)
    # Bonferroni over the logs; within a pairing the scores share what is left.
    share = 1 - (1 - confidence) / len(others)
    found = [pair_logs(first, run, scale, confidence=share) for run in others]
    differences = tuple(_ruler_differences(runs))
    drift = find_log_drift(letters, runs)
    pairs = [
        LogPair(letter=letter, found=pair, verdict=_verdict(letter, pair, differences, place))
        for place, (letter, pair) in enumerate(zip(letters[1:], found, strict=True), start=1)
    ]
    paired = [set(first.attempts) & set(run.attempts) for run in others]
    counted = [set.union(*paired), *paired]
    return LogComparison(
        harness=first.harness,
        confidence=confidence,
        passes_and_failures=tuple(sorted(scale.passes_and_failures)),
        logs=tuple(_side(*each) for each in zip(letters, runs, counted, strict=True)),
        pairs=tuple(pairs),
        tasks=tuple(_tasks(runs, counted)),
        ruler_differences=differences,
        drift=drift,
        warnings=tuple(_warnings(letters, runs, drift, confidence)),
    )


def log_comparison_to_json(comparison: LogComparison) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {"schema": LOGS_SCHEMA, **asdict(comparison)}


def logs_exit_code(comparison: LogComparison) -> int:
    """Return the code of the verdict on the one log beside the first: 4 or 5, since logs alone promote nothing.

    Raises:
        LogsRefused: if there are several: one code cannot tell of them.
    """
    if len(comparison.pairs) != 1:
        raise LogsRefused(f"--exit-code tells of one log beside the first, and there are {len(comparison.pairs)}")
    return EXIT_CODES[comparison.pairs[0].verdict.kind]


def _refuse(first: ForeignRun, run: ForeignRun) -> None:
    if first.harness != run.harness:
        raise LogsRefused(f"{first.name} is of {first.harness}, {run.name} of {run.harness}: nothing pairs them")
    if not first.attempts.keys() & run.attempts.keys():
        shown = [repr(next(iter(each.attempts)).task) if each.attempts else "no attempt" for each in (first, run)]
        raise LogsRefused(f"no task is in both: {first.name} has {shown[0]}, {run.name} has {shown[1]}, ...")
    if not first.values.keys() & run.values.keys():
        names = [", ".join(each.values) or "no score" for each in (first, run)]
        raise LogsRefused(f"no score is in both: {first.name} has {names[0]}, {run.name} has {names[1]}")
    if run.harness != OWN_HARNESS and _identities(first) == _identities(run):
        raise LogsRefused(f"{first.name} and {run.name} hold the very same attempts: one is a copy of the other")


def _identities(run: ForeignRun) -> set[str]:
    return {facts.identity for facts in run.attempts.values()}


def _scale(runs: Sequence[ForeignRun]) -> Scale:
    """Say which scores are shares. Where no log's nature tells, a 1 alone may be a grade, and a 0 makes it none."""
    seen: dict[str, set[float]] = {}
    for run in runs:
        for score, values in run.values.items():
            seen.setdefault(score, set()).update(value for value in values.values() if value is not None)
    known = all(run.passes_and_failures for run in runs)
    shares = {name for name, values in seen.items() if known or (values and 0 <= min(values) < 1 and max(values) <= 1)}
    return Scale(
        shares=frozenset(shares),
        passes_and_failures=frozenset(name for name in shares if seen[name] <= {0.0, 1.0}),
    )


def _ruler_differences(runs: Sequence[ForeignRun]) -> Iterator[RulerDifference]:
    for strict in (True, False):
        rulers = [run.ruler if strict else run.surroundings for run in runs]
        for name in dict.fromkeys(name for ruler in rulers for name in ruler):
            values = tuple(ruler.get(name, "unknown") for ruler in rulers)
            if len(set(values)) > 1:
                yield RulerDifference(name=name, strict=strict, values=values)


def _verdict(letter: str, pair: Paired, differences: Sequence[RulerDifference], place: int) -> LogVerdict:
    reasons = []
    if names := [each.name for each in differences if each.strict and each.values[0] != each.values[place]]:
        text = f"measured with another ruler than A, in {', '.join(names)}: run both under one"
        reasons.append(LogReason(code=LogReasonCode.RULERS_DIFFER, text=text))
    if not any(row.pairs for row in pair.rows):
        text = "no attempt was measured in both logs: an error ended one of each pair, or nothing scored it"
        reasons.append(LogReason(code=LogReasonCode.NOTHING_MEASURED, text=text))
    for log, invalid in (("A", pair.invalid_first), (letter, pair.invalid_second)):
        if invalid > GateSpec().invalid_share_max * pair.paired:
            share = f"{invalid} of {pair.paired} paired attempts of {log} are INVALID"
            text = f"{share}, more than {GateSpec().invalid_share_max:.0%}: find out what failed around the agent"
            reasons.append(LogReason(code=LogReasonCode.INVALID_SHARE, text=text))
    if reasons:
        return LogVerdict(kind=VerdictKind.INVALID, reasons=tuple(reasons))
    text = f"{NOT_INTERLEAVED}; only variants of one `geode sweep` can be kept or rejected"
    reason = LogReason(code=LogReasonCode.NOT_INTERLEAVED, text=text)
    return LogVerdict(kind=VerdictKind.UNDECIDED, reasons=(reason,))


def _side(letter: str, run: ForeignRun, counted: set[Unit]) -> LogSide:
    starts = sorted(facts.started_at for facts in run.attempts.values() if facts.started_at is not None)
    return LogSide(
        letter=letter,
        name=run.name,
        subject=run.subject,
        attempts=len(run.attempts),
        invalid=sum(facts.invalid is not None for facts in run.attempts.values()),
        first_start=starts[0].isoformat() if starts else None,
        last_start=starts[-1].isoformat() if starts else None,
        spend=_spend([run.attempts[unit] for unit in run.attempts if unit in counted]),
    )


def _spend(attempts: Sequence[AttemptFacts]) -> LogSpend:
    return LogSpend(
        attempts=len(attempts),
        tokens=_mean([facts.tokens for facts in attempts]),
        other_tokens=_mean([facts.other_tokens for facts in attempts]),
        cost_usd=_mean([facts.cost_usd for facts in attempts]),
        wall_s=_mean([facts.wall_s for facts in attempts]),
        turns=_mean([facts.turns for facts in attempts]),
        tool_calls=_mean([facts.tool_calls for facts in attempts]),
        tool_errors=_mean([facts.tool_errors for facts in attempts]),
        repairs=_mean([facts.repairs for facts in attempts]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _tasks(runs: Sequence[ForeignRun], counted: Sequence[set[Unit]]) -> Iterator[TaskAttempts]:
    by_log: list[dict[str, list[ShownAttempt]]] = []
    for run, paired in zip(runs, counted, strict=True):
        by_task: dict[str, list[ShownAttempt]] = {}
        for unit, facts in sorted(run.attempts.items(), key=lambda item: item[0]):
            shown = ShownAttempt(
                attempt=unit.attempt,
                shown_as=facts.shown_as,
                paired=unit in paired,
                invalid=facts.invalid,
                values={score: values[unit] for score, values in run.values.items()},
            )
            by_task.setdefault(unit.task, []).append(shown)
        by_log.append(by_task)
    for task in sorted({task for by_task in by_log for task in by_task}):
        yield TaskAttempts(task=task, logs=tuple(tuple(by_task.get(task, ())) for by_task in by_log))


def _warnings(letters: str, runs: Sequence[ForeignRun], drift: Sequence[LogDrift], confidence: float) -> Iterator[str]:
    for letter, run in zip(letters, runs, strict=True):
        for note in run.notes:
            yield f"{letter}: {note}"
    first = _identities(runs[0])
    for letter, run in zip(letters[1:], runs[1:], strict=True):
        if shared := len(first & _identities(run)):
            yield (
                f"{letter}: {shared} of its {len(run.attempts)} attempts are the very ones of A:"
                " their difference is zero by construction"
            )
        tasks = [{unit.task for unit in each.attempts} for each in (runs[0], run)]
        if tasks[0] != tasks[1]:
            lacking = len(tasks[0] - tasks[1]), len(tasks[1] - tasks[0])
            yield f"the task sets differ: {lacking[0]} tasks only in A, {lacking[1]} only in {letter}"
    for seen in drift:
        if seen.p <= 1 - confidence:
            yield drift_told(seen)
