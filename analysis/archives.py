"""Imports archives of other harnesses into the warehouse, whichever format they have, and says what was imported."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from analysis.importers import inspect_load, mcpmark_load
from analysis.importers.files import UnknownArchive
from analysis.importers.inspect_archive import ImportedLog, InspectArchive, find_logs, read_inspect_archive
from analysis.importers.mcpmark import LAYOUT, Archive, find_runs, outcome, read_archive
from analysis.issues import Issue
from analysis.warehouse import Warehouse
from experiments.imported import ImportedRun
from experiments.suite import OutcomeKind
from geode.clock import Clock

_MCPMARK_HEADINGS = (
    "result directory", "run", "attempts", "PASS", "FAIL", "INVALID", "summary", "logs", "calls", "issues",
)  # fmt: skip
_INSPECT_HEADINGS = ("folder", "log", "status", "target", "samples", "scored", "unscored", "failed", "issues")


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An import as it is told to a person: one row a cell, and totals; `tracked` goes to the tracking store."""

    source: str
    path: Path
    headings: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]
    totals: Mapping[str, int]
    told: str  # the totals in words
    issues: Mapping[str, int]
    tracked: tuple[ImportedRun, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """As a JSON object."""
        return {"source": self.source, "path": str(self.path), **self.totals, "issues": dict(self.issues)}


def import_archive(warehouse: Warehouse, path: Path, clock: Clock) -> Import:
    """Read the archive at `path`, in whatever format it has, and write it into the warehouse.

    Raises:
        ArchiveError: if it cannot be read; nothing was written.
        WarehouseError: if it cannot be written; nothing was written.
    """
    path = path.expanduser().resolve()
    logs, runs = find_logs(path), find_runs(path)
    if not logs and not runs:
        what = "holds no archive that this version reads" if path.exists() else "does not exist"
        raise UnknownArchive(f"{path} {what}; looked for MCPMark's {LAYOUT} and for Inspect's .eval logs")
    if logs and runs:
        raise UnknownArchive(
            f"{path} holds two archives, an MCPMark one ({runs[0].relative_to(path)}) and Inspect logs "
            f"({logs[0].relative_to(path)}); import each folder for itself"
        )
    return _import_inspect(warehouse, path, clock) if logs else _import_mcpmark(warehouse, path, clock)


def _import_mcpmark(warehouse: Warehouse, path: Path, clock: Clock) -> Import:
    archive = read_archive(path)
    mcpmark_load.load(warehouse, archive, clock.now())
    attempts = [attempt for cell in archive.cells for attempt in cell.attempts]
    totals = {
        "runs": len({cell.run for cell in archive.cells}),
        "attempts": len(attempts),
        "summaries": sum(cell.summary is not None for cell in archive.cells),
        "logs": sum(attempt.log is not None for attempt in attempts),
        "calls": sum(len(attempt.calls) for attempt in attempts),
    }
    return Import(
        source=mcpmark_load.SOURCE,
        path=archive.path,
        headings=_MCPMARK_HEADINGS,
        rows=_mcpmark_rows(archive),
        totals=totals,
        told=(
            f"{totals['runs']} result directories, {totals['attempts']} attempts, {totals['summaries']} summaries, "
            f"{totals['logs']} execution logs with {totals['calls']} calls"
        ),
        issues=_kinds(archive.issues),
        tracked=mcpmark_load.imported_runs(archive),
    )


def _mcpmark_rows(archive: Archive) -> tuple[tuple[str | int, ...], ...]:
    issues = Counter((issue.run, issue.cell) for issue in archive.issues)
    found = []
    for cell in archive.cells:
        ends = Counter(outcome(attempt) for attempt in cell.attempts)
        found.append(
            (
                cell.run,
                cell.name,
                len(cell.attempts),
                *(ends[kind] for kind in (OutcomeKind.PASS, OutcomeKind.FAIL, OutcomeKind.INVALID)),
                "yes" if cell.summary is not None else "no",
                sum(attempt.log is not None for attempt in cell.attempts),
                sum(len(attempt.calls) for attempt in cell.attempts),
                issues[cell.run, cell.name],
            )
        )
    return tuple(found)


def _import_inspect(warehouse: Warehouse, path: Path, clock: Clock) -> Import:
    archive = read_inspect_archive(path)
    inspect_load.load(warehouse, archive, clock.now())
    scored = sum(map(inspect_load.scored_samples, archive.logs))
    samples = sum(len(log.samples) for log in archive.logs)
    totals = {
        "runs": len({log.run for log in archive.logs}),
        "logs": len(archive.logs),
        "samples": samples,
        "scored": scored,
        "unscored": samples - scored,
        "indexed_logs": len(archive.tables.index),
        "published_cells": len(archive.tables.published),
    }
    told = f"{totals['logs']} logs in {totals['runs']} folders, {samples} samples, {samples - scored} of them unscored"
    if archive.tables.index:
        told += f"; an index of {totals['indexed_logs']} logs"
    if archive.tables.published:
        told += f"; {totals['published_cells']} published cells to hold them against"
    return Import(
        source=inspect_load.SOURCE,
        path=archive.path,
        headings=_INSPECT_HEADINGS,
        rows=_inspect_rows(archive),
        totals=totals,
        told=told,
        issues=_kinds(archive.issues),
        tracked=inspect_load.imported_runs(archive),
    )


def _inspect_rows(archive: InspectArchive) -> tuple[tuple[str | int, ...], ...]:
    issues = Counter((issue.run, issue.cell) for issue in archive.issues)

    def row(log: ImportedLog) -> tuple[str | int, ...]:
        scored, failed = inspect_load.scored_samples(log), sum(sample.error is not None for sample in log.samples)
        target = log.header.roles.get("target") or log.header.model or "unknown"
        counts = (len(log.samples), scored, len(log.samples) - scored, failed, issues[log.named])
        return (log.run, log.name, log.header.status.value, target, *counts)

    return tuple(map(row, archive.logs))


def _kinds(issues: Sequence[Issue]) -> dict[str, int]:
    return dict(sorted(Counter(issue.kind.value for issue in issues).items()))
