"""McNemar's table of one candidate: how the ends of each pair fell, and a pair to look at for each task that moved.

A pair is one block: the same task, seed and repetition, once with each scaffold.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.sinks import Cell
from experiments.stats import sign_test_p
from experiments.suite import OutcomeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedTask:
    """A task that the candidate won more often than it lost, or the reverse.

    `candidate_key` and `baseline_key` are the two episodes of one block that fell that way.
    """

    task_id: str
    won: int
    lost: int
    candidate_key: str
    baseline_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """All blocks of one candidate. `unmeasured` blocks lack an end: INVALID, or not run.

    `p` is McNemar's exact test over all discordant pairs, two-sided. It is for this candidate alone and for these
    pairs as if they were of one kind, so it decides nothing; the verdict comes from the intervals.
    """

    both: int
    only_baseline: int
    only_candidate: int
    neither: int
    unmeasured: int
    p: float
    better: tuple[MovedTask, ...]
    worse: tuple[MovedTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    task_id: str
    passed: tuple[bool, bool] | None
    candidate_key: str
    baseline_key: str


_LOST, _WON = (True, False), (False, True)


def pair_table(baseline: Cell, candidate: Cell) -> PairTable:
    """Count the pairs of two cells of one experiment. Tasks come in order of how clearly they moved, then by name."""
    pairs = list(_pairs(baseline, candidate))
    counts = [pair.passed for pair in pairs]
    won, lost = counts.count(_WON), counts.count(_LOST)
    moved = sorted(_moved(pairs), key=lambda task: (-abs(task.won - task.lost), task.task_id))
    return PairTable(
        both=counts.count((True, True)),
        only_baseline=lost,
        only_candidate=won,
        neither=counts.count((False, False)),
        unmeasured=counts.count(None),
        p=sign_test_p(won, lost),
        better=tuple(task for task in moved if task.won > task.lost),
        worse=tuple(task for task in moved if task.won < task.lost),
    )


def _pairs(baseline: Cell, candidate: Cell) -> Iterator[_Pair]:
    kinds = {s.record.episode_key: s.record.outcome.kind for cell in (baseline, candidate) for s in cell.episodes}
    blocks = zip(
        baseline.experiment.episode_keys(baseline.variant),
        candidate.experiment.episode_keys(candidate.variant),
        strict=True,
    )
    for (task, _, _, baseline_key), (_, _, _, candidate_key) in blocks:
        ends = [kinds.get(key) for key in (baseline_key, candidate_key)]
        measured = all(kind in {OutcomeKind.PASS, OutcomeKind.FAIL} for kind in ends)
        yield _Pair(
            task_id=task.task_id,
            passed=(ends[0] is OutcomeKind.PASS, ends[1] is OutcomeKind.PASS) if measured else None,
            candidate_key=candidate_key,
            baseline_key=baseline_key,
        )


def _moved(pairs: list[_Pair]) -> Iterator[MovedTask]:
    for task_id in dict.fromkeys(pair.task_id for pair in pairs):
        won = [pair for pair in pairs if pair.task_id == task_id and pair.passed == _WON]
        lost = [pair for pair in pairs if pair.task_id == task_id and pair.passed == _LOST]
        if len(won) != len(lost):
            shown = max(won, lost, key=len)[0]
            yield MovedTask(
                task_id=task_id,
                won=len(won),
                lost=len(lost),
                candidate_key=shown.candidate_key,
                baseline_key=shown.baseline_key,
            )
