"""An experiment's variants side by side, for the sinks that show them: the gate's answer and all that is behind it.

It comes from the episodes alone, so that whoever writes it again writes the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from experiments.broken_hooks import broken_hooks_warnings
from experiments.cell_drift import Drift, drift, drift_warning
from experiments.episode import EpisodeRecord
from experiments.gate import (
    Generalisation,
    Verdict,
    gate_spec,
    generalises,
    paired_evidence,
    paired_fixed,
)
from experiments.pairs import PairTable, pair_table
from experiments.records import ExperimentRecord, TaskRef
from experiments.sinks import Cell, CellSink
from experiments.suite import OutcomeKind

SIMULATED_NOTE = "simulated: says nothing about a language model"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """One variant on one task.

    `missing` episodes are planned and not run. `look_at` is an episode worth a look: a failed one, else an INVALID one,
    else any; None if none has run.
    """

    task: TaskRef
    passes: int
    measured: int
    invalid: int
    missing: int
    look_at: EpisodeRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One variant. The baseline has no verdict and no answer at family level, and is its own pair."""

    cell: Cell
    tasks: tuple[TaskFigures, ...]
    pairs: PairTable
    verdict: Verdict | None
    generalises: Generalisation | None

    @property
    def variant(self) -> str:
        """The name of the variant."""
        return self.cell.variant.name

    def records(self) -> dict[str, EpisodeRecord]:
        """Return its finished episodes by their keys."""
        return {stored.record.episode_key: stored.record for stored in self.cell.episodes}

    @property
    def invalid(self) -> int:
        """How many episodes measured nothing."""
        return sum(task.invalid for task in self.tasks)

    @property
    def missing(self) -> int:
        """How many planned episodes have not run."""
        return sum(task.missing for task in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonTable:
    """A whole experiment: the baseline's row first, then the candidates in the experiment's order.

    `warnings` are sentences on what limits the reading of all rows alike.
    """

    experiment: ExperimentRecord
    rows: tuple[ComparisonRow, ...]
    drift: Drift | None
    warnings: tuple[str, ...]

    @property
    def baseline(self) -> ComparisonRow:
        """What the others are compared with."""
        return self.rows[0]

    @property
    def candidates(self) -> tuple[ComparisonRow, ...]:
        """All but the baseline."""
        return self.rows[1:]


@runtime_checkable
class ComparisonSink(CellSink, Protocol):
    """A sink that shows what the gate says of an experiment's candidates.

    `write_comparison` is called after the cells of a run are written, and again when they grow: the last call counts.
    It may raise like `write`.
    """

    def write_comparison(self, table: ComparisonTable) -> None:
        """Store the comparison of all variants."""
        ...


def comparison_table(cells: Sequence[Cell]) -> ComparisonTable:
    """Compare all cells of one experiment with its baseline.

    Raises:
        EvidenceRefused: as `paired_evidence` and `gate_spec` do.
    """
    experiment = cells[0].experiment
    evidence = paired_evidence(cells, experiment.baseline)
    spec = gate_spec(experiment.ruler)
    verdicts = {found.candidate: found for found in (paired_fixed(evidence, spec) if evidence.candidates else ())}
    beyond = {found.candidate: found for found in (generalises(evidence, spec) if evidence.candidates else ())}
    by_name = {cell.variant.name: cell for cell in cells}
    ordered = [by_name[name] for name in (evidence.baseline, *evidence.candidates)]
    rows = tuple(
        ComparisonRow(
            cell=cell,
            tasks=_task_figures(cell),
            pairs=pair_table(ordered[0], cell),
            verdict=verdicts.get(cell.variant.name),
            generalises=beyond.get(cell.variant.name),
        )
        for cell in ordered
    )
    seen = drift(ordered)
    warnings = tuple(_warnings(rows, drift_warning(seen, spec.confidence)))
    return ComparisonTable(experiment=experiment, rows=rows, drift=seen, warnings=warnings)


def _task_figures(cell: Cell) -> tuple[TaskFigures, ...]:
    experiment = cell.experiment
    planned = len(experiment.ruler.seeds) * experiment.repeats
    by_task: dict[str, list[EpisodeRecord]] = {task.task_id: [] for task in experiment.ruler.tasks}
    for stored in cell.episodes:
        by_task[stored.record.task_id].append(stored.record)
    return tuple(_figures(task, by_task[task.task_id], planned) for task in experiment.ruler.tasks)


def _figures(task: TaskRef, records: Sequence[EpisodeRecord], planned: int) -> TaskFigures:
    of_kind = {kind: [record for record in records if record.outcome.kind is kind] for kind in OutcomeKind}
    passed, failed, invalid = (of_kind[kind] for kind in (OutcomeKind.PASS, OutcomeKind.FAIL, OutcomeKind.INVALID))
    return TaskFigures(
        task=task,
        passes=len(passed),
        measured=len(passed) + len(failed),
        invalid=len(invalid),
        missing=planned - len(records),
        look_at=next(iter([*failed, *invalid, *passed]), None),
    )


def _warnings(rows: Sequence[ComparisonRow], drifted: str | None) -> Iterator[str]:
    records = [stored.record for row in rows for stored in row.cell.episodes]
    models = {model for record in records if record.simulated for model in record.roles.values()}
    if models:
        simulated = {model for model in models if model.startswith("simulated/")} or models
        yield f"{SIMULATED_NOTE} ({', '.join(sorted(simulated))})"
    yield from broken_hooks_warnings([row.cell for row in rows])
    if drifted is not None:
        yield drifted
    if invalid := ", ".join(f"{row.invalid} of {row.variant}" for row in rows if row.invalid):
        yield f"episodes that measured nothing are INVALID and in no rate: {invalid}"
    if missing := ", ".join(f"{row.missing} of {row.variant}" for row in rows if row.missing):
        yield f"planned episodes have not run: {missing}"
    versions = sorted({record.geode_version for record in records})
    if len(versions) > 1:
        yield f"the episodes ran under several versions of GEODE: {', '.join(versions)}"
