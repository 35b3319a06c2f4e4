"""What a comparison says of a cell in MLflow: figures under the same names in every cell, and the words as tags.

All figures are shares and counts, none is a percentage.
"""

from collections.abc import Sequence

from experiments.comparison import ComparisonRow, ComparisonTable
from experiments.gate import Beyond
from experiments.pairs import MovedTask
from experiments.stats import Interval
from experiments.tracking_names import TEXT_CHARS

_NO_DIFFERENCE = Interval(estimate=0.0, standard_error=0.0, df=0.0, critical=0.0, low=0.0, high=0.0)
"""A variant's difference to itself is zero by definition; left out, MLflow would draw the baseline as NaN."""

_DIGITS = 9  # what floating-point noise leaves of a difference of zero (4.6e-18) would be shown as it is

COMPARED_TAG = "verdicts"
"""On the run that holds the whole comparison."""


def verdict_figures(table: ComparisonTable, row: ComparisonRow) -> dict[str, float | None]:
    """Return the figures of one variant's comparison, None where there is no evidence.

    The baseline's are those of a variant that equals it.
    """
    is_baseline = row.verdict is None
    difference = row.verdict.difference if row.verdict else _NO_DIFFERENCE
    beyond = row.generalises
    family_difference = beyond.difference if beyond else None
    if is_baseline and any(other.generalises and other.generalises.difference for other in table.candidates):
        family_difference = _NO_DIFFERENCE
    pairs = row.pairs
    drift = table.drift.found if table.drift else None
    return {
        **_interval("", difference),
        **_interval("family_", family_difference),
        "families_better": beyond.families_better if beyond else 0,
        "families_worse": beyond.families_worse if beyond else 0,
        "pairs": pairs.both + pairs.only_baseline + pairs.only_candidate + pairs.neither,
        "pairs_won": pairs.only_candidate,
        "pairs_lost": pairs.only_baseline,
        "pairs_unmeasured": pairs.unmeasured,
        "mcnemar_p": pairs.p,
        "tasks_better": len(pairs.better),
        "tasks_worse": len(pairs.worse),
        "missing": row.missing,
        "drift_p": drift.p if drift else None,
        "drift_size": drift.size if drift else None,
    }


def verdict_tags(table: ComparisonTable, row: ComparisonRow) -> dict[str, str]:
    """Return the words of one variant's comparison, each within what MLflow shows of a tag."""
    tags = {"verdict": row.verdict.kind.value if row.verdict else "baseline", "drift": drift_text(table)}
    if row.verdict is None:
        return tags
    return tags | {
        "verdict_reasons": reasons_text(row),
        "generalises": beyond_text(row),
        "tasks_better": _moved(row.pairs.better),
        "tasks_worse": _moved(row.pairs.worse),
    }


def experiment_verdict_tags(table: ComparisonTable) -> dict[str, str]:
    """Return the words on the experiment's own run."""
    kinds = [row.verdict.kind.value for row in table.candidates if row.verdict]
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    return {COMPARED_TAG: counted or "none: there is no candidate", "drift": drift_text(table)}


def drift_text(table: ComparisonTable) -> str:
    """Say which form of drift fits best, of what size, and whether chance would make it."""
    if table.drift is None:
        return "not tested: nothing varies in time"
    found = table.drift.found
    by_chance = "none; by chance a " if found.p > 1 - table.experiment.ruler.confidence else ""
    return f"{by_chance}{found.kind.value} of {points(found.size)} points, {p_text(found.p)}"


def reasons_text(row: ComparisonRow) -> str:
    """Say why the verdict on a candidate is what it is."""
    return "; ".join(reason.text for reason in row.verdict.reasons) if row.verdict else ""


def beyond_text(row: ComparisonRow) -> str:
    """Say what the families say of one candidate, and why."""
    found = row.generalises
    if found is None:
        return ""
    counts = f", {found.families_better} of {found.families} families better, {found.families_worse} worse"
    return f"{found.kind.value}: {found.reason}{'' if found.kind is Beyond.NOT_TESTED else counts}"


def points(share: float) -> str:
    """Write a share as signed percentage points."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # adding zero turns the -0.0 of floating-point noise into +0.0


def p_text(p: float) -> str:
    """Write a p-value."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def _interval(prefix: str, interval: Interval | None) -> dict[str, float | None]:
    return {
        f"{prefix}diff_vs_baseline": round(interval.estimate, _DIGITS) if interval else None,
        f"{prefix}diff_low": round(interval.low, _DIGITS) if interval else None,
        f"{prefix}diff_high": round(interval.high, _DIGITS) if interval else None,
    }


def _moved(tasks: Sequence[MovedTask]) -> str:
    """Name as many tasks as a tag holds, and say how many more there are."""
    names = [f"{task.task_id} (+{task.won} -{task.lost})" for task in tasks]
    for shown in range(len(names), 0, -1):
        more = [f"and {len(names) - shown} more"] if shown < len(names) else []
        if len(joined := ", ".join([*names[:shown], *more])) <= TEXT_CHARS:
            return joined
    return f"{len(names)} tasks" if names else "none"
