"""What an experiment shows: each variant beside the baseline, its verdict, its price, and what limits the reading."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from analysis.truth import TrueDifference, TruthTable, true_difference
from experiments.broken_hooks import broken_hooks_warnings
from experiments.cell_drift import Drift, drift, drift_warning
from experiments.episode import EpisodeRecord
from experiments.gate import (
    EvidenceRefused,
    Generalisation,
    PairedEvidence,
    Verdict,
    VerdictKind,
    differences,
    gate_spec,
    generalises,
    paired_evidence,
    paired_fixed,
    promoted_by_point_estimate,
)
from experiments.overrides import nearest
from experiments.pairs import PairTable, pair_table
from experiments.records import ExperimentRecord
from experiments.roles import Role
from experiments.sinks import Cell
from experiments.stats import Floats, sign_test_p
from experiments.suite import OutcomeKind

COMPARISON_SCHEMA = "geode.comparison/1"
SIMULATED_NOTE = "simulated: says nothing about a language model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Means over all finished episodes, INVALID ones too, since they were paid for; the cost of all roles if known."""

    cost_usd: float | None
    tokens: float
    model_latency_ms: float
    wall_s: float
    rounds: float
    repairs_used: float
    refused_calls: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRow:
    """One variant.

    `pass_rate` is the mean over tasks of the share of PASS among measured episodes; None if a task has none.
    `claimed_falsely` is the share of measured episodes whose answer the completion check accepted and the task's
    verifier did not. `tasks_better` and `tasks_worse` go by the sign of the task's mean difference, noise included.
    """

    name: str
    scaffold_id: str
    is_baseline: bool
    planned: int
    finished: int
    invalid: int
    missing: int
    pass_rate: float | None
    tasks_better: tuple[str, ...]
    tasks_worse: tuple[str, ...]
    claimed_falsely: float | None
    spend: Spend | None
    verdict: Verdict | None
    generalises: Generalisation | None
    pairs: PairTable | None
    truth: TrueDifference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCell:
    """One variant on one task. `missing` episodes are planned and have not run.

    `difference` is the mean over the task's pairs, None without any. It is `beyond_noise` if McNemar's exact test on
    these pairs says so at the ruler's confidence, corrected for the number of tasks (Bonferroni). `look_at` is an
    episode worth a look: a failed one, else an INVALID one, else any.
    """

    variant: str
    passes: int
    measured: int
    invalid: int
    missing: int
    difference: float | None
    beyond_noise: bool
    look_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task with every variant."""

    task_id: str
    family: str
    cells: tuple[TaskCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All of it; the baseline's row comes first. `simulated_models` is empty if language models played every role."""

    experiment: str
    question: str
    ruler_id: str
    suite: str
    families: tuple[str, ...]
    seeds: tuple[int, ...]
    repeats: int
    confidence: float
    rule: str
    baseline: str
    candidates: int
    simulated_models: tuple[str, ...]
    rows: tuple[VariantRow, ...]
    tasks: tuple[TaskRow, ...]
    promoted_by_point_estimate: tuple[str, ...]
    drift: Drift | None
    warnings: tuple[str, ...]


def compare(
    cells: Sequence[Cell], baseline: str, *, truth: TruthTable | None = None, only: Sequence[str] = ()
) -> Comparison:
    """Compare all variants of an experiment with `baseline`.

    `only` chooses the rows that are shown. The intervals stay those of all candidates: choosing after looking would
    make them too narrow.

    Raises:
        EvidenceRefused: if the cells cannot be compared, or `only` names a variant that is not there.
    """
    evidence = paired_evidence(cells, baseline)
    names = [baseline, *evidence.candidates]
    if unknown := [name for name in only if name not in names]:
        raise EvidenceRefused(f"no variant {unknown[0]!r}{nearest(unknown[0], names)}")
    by_name = {cell.variant.name: cell for cell in cells}
    experiment = by_name[baseline].experiment
    spec = gate_spec(experiment.ruler)
    verdicts = {verdict.candidate: verdict for verdict in paired_fixed(evidence, spec)}
    drifting = drift([by_name[name] for name in names])
    beyond = {found.candidate: found for found in generalises(evidence, spec)}
    task_rows = tuple(_task_rows(evidence, [by_name[name] for name in names], spec.confidence))
    shown = [name for name in names if not only or name == baseline or name in only]
    rows = tuple(
        _row(
            by_name[name],
            evidence,
            names.index(name),
            verdict=verdicts.get(name),
            beyond=beyond.get(name),
            pairs=None if name == baseline else pair_table(by_name[baseline], by_name[name]),
            tasks=task_rows,
            truth=None if name == baseline else _truth(truth, by_name[name], by_name[baseline]),
        )
        for name in shown
    )
    return Comparison(
        experiment=experiment.name,
        question=experiment.question,
        ruler_id=experiment.ruler.ruler_id,
        suite=experiment.ruler.suite,
        families=tuple(dict.fromkeys(task.family for task in experiment.ruler.tasks)),
        seeds=experiment.ruler.seeds,
        repeats=experiment.repeats,
        confidence=spec.confidence,
        rule=experiment.ruler.rule,
        baseline=baseline,
        candidates=len(evidence.candidates),
        simulated_models=_simulated_models(cells),
        rows=rows,
        tasks=tuple(replace(row, cells=tuple(c for c in row.cells if c.variant in shown)) for row in task_rows),
        promoted_by_point_estimate=promoted_by_point_estimate(evidence),
        drift=drifting,
        warnings=tuple(_warnings(cells, experiment, baseline, only, drift_warning(drifting, spec.confidence))),
    )


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything as JSON values; rates and differences are shares, not points."""
    body = asdict(comparison)
    if (seen := comparison.drift) is not None:
        body["drift"]["stepped_at"] = seen.stepped_at.isoformat() if seen.stepped_at else None
    return {"schema": COMPARISON_SCHEMA, **body}


EXIT_CODES = {VerdictKind.KEEP: 0, VerdictKind.REJECT: 3, VerdictKind.UNDECIDED: 4, VerdictKind.INVALID: 5}
"""What `geode compare --exit-code` ends with. 1 and 2 are left to what could not be compared, or not be asked."""


def exit_code(comparison: Comparison) -> int:
    """Return the code of the one verdict that is shown.

    Raises:
        EvidenceRefused: if not exactly one candidate is shown: one code cannot tell of several.
    """
    judged = [row for row in comparison.rows if row.verdict]
    if len(judged) != 1 or judged[0].verdict is None:
        names = ", ".join(row.name for row in judged) or "none"
        raise EvidenceRefused(f"--exit-code tells of one candidate, and {len(judged)} are shown ({names}); name one")
    return EXIT_CODES[judged[0].verdict.kind]


def _row(
    cell: Cell,
    evidence: PairedEvidence,
    arm: int,
    *,
    verdict: Verdict | None,
    beyond: Generalisation | None,
    pairs: PairTable | None,
    tasks: Sequence[TaskRow],
    truth: TrueDifference | None,
) -> VariantRow:
    outcomes = evidence.outcomes(arm)
    by_task = {task.task_id: task.cells[arm].difference or 0.0 for task in tasks}
    return VariantRow(
        name=cell.variant.name,
        scaffold_id=cell.variant.scaffold_id,
        is_baseline=arm == 0,
        planned=len(outcomes),
        finished=len(cell.episodes),
        invalid=outcomes.count(OutcomeKind.INVALID),
        missing=outcomes.count(None),
        pass_rate=_pass_rate(evidence, arm),
        tasks_better=tuple(task for task, difference in by_task.items() if difference > 0),
        tasks_worse=tuple(task for task, difference in by_task.items() if difference < 0),
        claimed_falsely=_claimed_falsely(cell),
        spend=_spend([stored.record for stored in cell.episodes]),
        verdict=verdict,
        generalises=beyond,
        pairs=pairs,
        truth=truth,
    )


def _truth(table: TruthTable | None, cell: Cell, baseline: Cell) -> TrueDifference | None:
    return true_difference(table, cell.variant, baseline.variant, cell.experiment.ruler.tasks)


def _pass_rate(evidence: PairedEvidence, arm: int) -> float | None:
    rates = []
    for task in evidence.tasks:
        kinds = [row[arm] for row in task.outcomes]
        passes, fails = kinds.count(OutcomeKind.PASS), kinds.count(OutcomeKind.FAIL)
        if not passes + fails:
            return None
        rates.append(passes / (passes + fails))
    return fmean(rates) if rates else None


def _claimed_falsely(cell: Cell) -> float | None:
    measured = [stored.record for stored in cell.episodes if stored.record.outcome.kind is not OutcomeKind.INVALID]
    if not measured:
        return None
    return fmean(record.verified and record.outcome.kind is OutcomeKind.FAIL for record in measured)


def _mean_cost(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return fmean(known) if len(known) == len(costs) else None


def _spend(records: Sequence[EpisodeRecord]) -> Spend | None:
    if not records:
        return None
    usages = [list(record.usage.values()) for record in records]
    return Spend(
        cost_usd=_mean_cost([record.known_cost_usd for record in records]),
        tokens=fmean(
            sum(u.uncached_input_tokens + u.cache_write_tokens + u.cache_read_tokens + u.output_tokens for u in each)
            for each in usages
        ),
        model_latency_ms=fmean(sum(usage.latency_ms for usage in each) for each in usages),
        wall_s=fmean(record.wall_s for record in records),
        rounds=fmean(record.rounds for record in records),
        repairs_used=fmean(record.repairs_used for record in records),
        refused_calls=fmean(record.refused_calls for record in records),
    )


def _task_rows(evidence: PairedEvidence, cells: Sequence[Cell], confidence: float) -> Iterator[TaskRow]:
    """Yield the tasks; `cells` come in the order of the arms."""
    p_max = (1 - confidence) / max(1, len(evidence.tasks))
    for task, array in zip(evidence.tasks, differences(evidence), strict=True):
        yield TaskRow(
            task_id=task.task_id,
            family=task.family,
            cells=tuple(
                _task_cell(cell, task.task_id, array[:, arm - 1] if arm else np.empty(0), p_max)
                for arm, cell in enumerate(cells)
            ),
        )


def _task_cell(cell: Cell, task_id: str, pairs: Floats, p_max: float) -> TaskCell:
    records = [stored.record for stored in cell.episodes if stored.record.task_id == task_id]
    by_kind = {kind: [r.episode_key for r in records if r.outcome.kind is kind] for kind in OutcomeKind}
    passed, failed = by_kind[OutcomeKind.PASS], by_kind[OutcomeKind.FAIL]
    measured = pairs[~np.isnan(pairs)]
    return TaskCell(
        variant=cell.variant.name,
        passes=len(passed),
        measured=len(passed) + len(failed),
        invalid=len(by_kind[OutcomeKind.INVALID]),
        missing=len(cell.experiment.ruler.seeds) * cell.experiment.repeats - len(records),
        difference=float(measured.mean()) if len(measured) else None,
        beyond_noise=sign_test_p(int((measured > 0).sum()), int((measured < 0).sum())) <= p_max,
        look_at=next(iter([*failed, *by_kind[OutcomeKind.INVALID], *passed]), None),
    )


def _simulated_models(cells: Sequence[Cell]) -> tuple[str, ...]:
    simulated = [stored.record for cell in cells for stored in cell.episodes if stored.record.simulated]
    models = {model for record in simulated for model in record.roles.values()}
    return tuple(sorted({model for model in models if model.startswith("simulated/")} or models))


def _warnings(
    cells: Sequence[Cell], experiment: ExperimentRecord, baseline: str, only: Sequence[str], drifted: str | None
) -> Iterator[str]:
    if models := _simulated_models(cells):
        yield f"{SIMULATED_NOTE} ({', '.join(models)})"
    if baseline != experiment.baseline:
        yield f"the baseline is {baseline!r}, chosen now; the experiment was planned with {experiment.baseline!r}"
    if only:
        yield f"some variants are not shown; intervals and verdicts are those of all {len(cells) - 1} candidates"
    targets = sorted({cell.variant.roles.get(Role.TARGET, "") for cell in cells})
    if len(targets) > 1:
        yield f"the variants run on different models: {', '.join(targets)}"
    yield from broken_hooks_warnings(cells)
    if drifted is not None:
        yield drifted
    versions = sorted({stored.record.geode_version for cell in cells for stored in cell.episodes})
    if len(versions) > 1:
        yield f"the episodes ran under several versions of GEODE: {', '.join(versions)}"
    seen: dict[tuple[str, ...], str] = {}
    for cell in cells:
        identity = (cell.variant.scaffold_id, *map(str, sorted(cell.variant.roles.items())))
        if (twin := seen.setdefault(identity, cell.variant.name)) != cell.variant.name:
            yield f"{cell.variant.name!r} and {twin!r} are one scaffold under two names: they share their episodes"
