"""Puts Inspect logs into the warehouse, and sums each one up for the tracking store."""

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from analysis.importers.inspect_archive import ImportedLog, InspectArchive, mean_scores
from analysis.importers.inspect_records import Sample
from analysis.importers.inspect_tables import IndexEntry, IndexScore, PublishedCell
from analysis.warehouse import Warehouse, Writing
from experiments.imported import ImportedRun
from experiments.suite import OutcomeKind
from geode.redaction import clean_text

SOURCE = "inspect"
_BY_LOG = ("cells", "episodes", "inspect_logs", "inspect_samples", "inspect_scores", "import_issues")
_Row = tuple[object, ...]


def load(warehouse: Warehouse, archive: InspectArchive, at: datetime) -> None:
    """Write everything of `archive` in one transaction, in place of what an earlier import wrote of the same logs.

    Raises:
        WarehouseError: if that is not possible; nothing was written then.
    """
    pairs = [(log, sample) for log in archive.logs for sample in log.samples]
    runs = sorted({log.run for log in archive.logs})
    with warehouse.write() as writing:
        _delete(writing, archive)
        writing.insert("runs", [(SOURCE, run, *[None] * 7) for run in runs])
        writing.insert("cells", [_cell_row(log) for log in archive.logs])
        writing.insert("episodes", [_episode_row(log, sample) for log, sample in pairs])
        writing.insert("costs", [row for log, sample in pairs for row in _cost_rows(log, sample)])
        writing.insert("inspect_logs", [_log_row(log) for log in archive.logs])
        writing.insert("inspect_samples", [_sample_row(log, sample) for log, sample in pairs])
        writing.insert("inspect_scores", [row for log, sample in pairs for row in _score_rows(log, sample)])
        writing.insert("inspect_index", [_index_row(entry) for entry in archive.tables.index])
        writing.insert("inspect_index_scores", [_index_score_row(score) for score in archive.tables.index_scores])
        writing.insert("inspect_published", [_published_row(cell) for cell in archive.tables.published])
        writing.insert("import_issues", [issue.row(SOURCE) for issue in archive.issues])
        row = (SOURCE, str(archive.path), at, len(runs), len(pairs), len(archive.issues))
        writing.insert("imports", [row])
        writing.delete_orphans()


def _delete(writing: Writing, archive: InspectArchive) -> None:
    """Delete what this import replaces: log by log, because many projects call their folder `logs`."""
    cells: dict[str, set[str]] = defaultdict(set)
    for log in archive.logs:
        cells[log.run].add(log.name)
    for issue in archive.issues:  # those of a log that can no longer be read
        cells[issue.run].add(issue.cell)
    for run, names in cells.items():
        for table in _BY_LOG:
            writing.delete(table, source=[SOURCE], run=[run], cell=sorted(names))
    keys = [log.episode_key(sample) for log in archive.logs for sample in log.samples]
    writing.delete("costs", source=[SOURCE], episode_key=keys)
    writing.delete("runs", source=[SOURCE], run=sorted({log.run for log in archive.logs}))
    for table, parts in (
        ("inspect_index", archive.tables.index),
        ("inspect_index_scores", archive.tables.index_scores),
        ("inspect_published", archive.tables.published),
    ):
        writing.delete(table, source=[SOURCE], run=sorted({part.folder for part in parts}))
    writing.delete("imports", source=[SOURCE], path=[str(archive.path)])


def imported_runs(archive: InspectArchive) -> tuple[ImportedRun, ...]:
    """Sum each log up for the tracking store. A dimension that nobody scored has no metric."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for issue in archive.issues:
        counts[issue.run, issue.cell] += 1
    return tuple(_imported_run(log, counts[log.named]) for log in archive.logs)


def _imported_run(log: ImportedLog, issues: int) -> ImportedRun:
    header, scored = log.header, scored_samples(log)
    spent = [usage for sample in log.samples for usage in sample.usage]
    metrics: dict[str, float] = {f"mean.{name}": mean for name, mean in mean_scores(log).items()}
    metrics |= {
        "samples": len(log.samples),
        "scored": scored,
        "unscored": len(log.samples) - scored,
        "failed": sum(sample.error is not None for sample in log.samples),
        "import_issues": issues,
        "tokens_out": sum(usage.output_tokens or 0 for usage in spent),
    }
    if costs := [usage.cost_usd for usage in spent if usage.cost_usd is not None]:
        metrics["cost_usd"] = sum(costs)
    recorded = {
        "status": header.status.value,
        "task": header.task,
        "dataset": header.dataset,
        "epochs": header.epochs,
        "limit": header.limit,
        "model": header.model,
    }
    return ImportedRun(
        name=f"{log.run}/{log.name}",
        experiment=SOURCE,
        params={"result_directory": log.run}
        | {name: "not recorded" if value is None else str(value) for name, value in recorded.items()},
        metrics=metrics,
        tags={
            "geode.source": SOURCE,
            "geode.first_start": header.created.isoformat() if header.created else "unknown",
            **{f"geode.role.{role}": model for role, model in header.roles.items()},
        },
    )


def scored_samples(log: ImportedLog) -> int:
    """How many samples have a value in any dimension."""
    return sum(any(score.value is not None for score in sample.scores) for sample in log.samples)


def _json(value: object) -> str:
    return clean_text(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _cell_row(log: ImportedLog) -> _Row:
    roles = log.header.roles
    return (SOURCE, log.run, log.name, None, roles.get("target", log.header.model), _json(roles), [])


def _episode_row(log: ImportedLog, sample: Sample) -> _Row:
    alone = [score.value for score in sample.scores if not score.dimension]
    unscored = [f"{score.dimension} {score.unscored}".strip() for score in sample.scores if score.unscored is not None]
    return (
        SOURCE,
        log.run,
        log.name,
        log.episode_key(sample),
        log.header.task,
        sample.sample_id,
        sample.sample_id,  # nothing in a log groups its samples: each is a family of its own
        *[None] * 3,  # task_hash, scaffold_id, caps_hash: the log has none
        None,  # seed
        sample.epoch,
        # A judge's scores are neither pass nor fail; only a failed sample says what it is.
        None if sample.error is None else OutcomeKind.INVALID.value,
        alone[0] if len(alone) == 1 and sample.error is None else None,
        list(dict.fromkeys([sample.error] if sample.error is not None else unscored)),
        None,  # stop_reason
        None,  # verified: there was no completion check
        *[None] * 5,  # rounds, calls, errors, refusals, repairs: of which role is not one number
        _cost(sample),
        False,  # simulated
        sample.uuid,
        sample.started_at,
        sample.completed_at,
        sample.total_s,
        None,  # cpu_s
        None,  # geode_version
        None,  # python_version
    )


def _cost(sample: Sample) -> float | None:
    costs = [usage.cost_usd for usage in sample.usage]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _cost_rows(log: ImportedLog, sample: Sample) -> Iterable[_Row]:
    for usage in sample.usage:
        yield (
            SOURCE,
            log.episode_key(sample),
            usage.role,
            usage.model,
            usage.input_tokens,
            usage.cache_write_tokens,
            usage.cache_read_tokens,
            usage.output_tokens,
            usage.cost_usd,
            None,  # calls
            None,  # latency_ms
            None,  # reasoning_tokens
            None,  # unpriced_calls
        )


def _log_row(log: ImportedLog) -> _Row:
    header = log.header
    return (
        SOURCE,
        log.run,
        log.name,
        log.path.name,
        str(log.path),
        log.size_bytes,
        header.status.value,
        header.has_header,
        header.eval_id,
        header.task,
        header.task_id,
        header.created,
        header.started_at,
        header.completed_at,
        header.model,
        _json(header.roles),
        *(header.roles.get(role) for role in ("auditor", "target", "judge")),
        header.dataset,
        header.dataset_samples,
        None if header.limit is None else _json(header.limit),
        header.epochs,
        header.inspect_version,
        header.commit,
        header.error,
        len(log.samples),
        _json(header.eval),
    )


def _sample_row(log: ImportedLog, sample: Sample) -> _Row:
    return (
        SOURCE,
        log.run,
        log.name,
        log.episode_key(sample),
        sample.sample_id,
        sample.epoch,
        sample.uuid,
        sample.started_at,
        sample.completed_at,
        sample.total_s,
        sample.working_s,
        sample.message_count,
        sample.retries,
        sample.error,
    )


def _score_rows(log: ImportedLog, sample: Sample) -> Iterable[_Row]:
    key = log.episode_key(sample)
    for score in sample.scores:
        where = (SOURCE, log.run, log.name, key, sample.sample_id, sample.epoch)
        yield (*where, score.scorer, score.dimension, score.value, score.unscored)


def _index_row(entry: IndexEntry) -> _Row:
    return (
        SOURCE,
        entry.folder,
        entry.file,
        entry.size_bytes,
        entry.sha256,
        entry.status,
        entry.has_header,
        entry.samples,
        entry.judged,
        entry.auditor,
        entry.target,
        entry.judge,
        entry.seed_source,
        entry.created,
    )


def _index_score_row(score: IndexScore) -> _Row:
    where = (SOURCE, score.folder, score.file, score.sample_id, score.epoch)
    return (*where, score.scorer, score.dimension, score.value)


def _published_row(cell: PublishedCell) -> _Row:
    return (
        SOURCE,
        cell.folder,
        cell.place,
        cell.table,
        cell.column,
        cell.dimension,
        cell.sample_id,
        cell.file,
        cell.minus_file,
        cell.value,
        cell.decimals,
    )
