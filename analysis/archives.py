"""Imports archives of other harnesses into the warehouse, and says what was imported."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from analysis.importers.mcpmark import Archive, read_archive
from analysis.importers.mcpmark_load import SOURCE, imported_runs, load, outcome
from analysis.warehouse import Warehouse
from experiments.imported import ImportedRun
from experiments.suite import OutcomeKind
from geode.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCell:
    """What was imported of one cell."""

    run: str
    cell: str
    attempts: int
    passes: int
    fails: int
    invalid: int
    logs: int
    calls: int
    summary: bool
    issues: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An import as it is told to a person; `tracked` goes to the tracking store."""

    source: str
    path: Path
    cells: tuple[ImportedCell, ...]
    issues: dict[str, int]
    tracked: tuple[ImportedRun, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """As a JSON object."""
        return {
            "source": self.source,
            "path": str(self.path),
            "runs": len({cell.run for cell in self.cells}),
            "attempts": sum(cell.attempts for cell in self.cells),
            "summaries": sum(cell.summary for cell in self.cells),
            "logs": sum(cell.logs for cell in self.cells),
            "calls": sum(cell.calls for cell in self.cells),
            "issues": dict(self.issues),
        }


def import_archive(warehouse: Warehouse, path: Path, clock: Clock) -> Import:
    """Read the archive at `path`, in whatever format it has, and write it into the warehouse.

    Raises:
        ArchiveError: if it cannot be read; nothing was written.
        WarehouseError: if it cannot be written; nothing was written.
    """
    archive = read_archive(path)
    load(warehouse, archive, clock.now())
    kinds = Counter(issue.kind.value for issue in archive.issues)
    return Import(
        source=SOURCE,
        path=archive.path,
        cells=_cells(archive),
        issues=dict(sorted(kinds.items())),
        tracked=imported_runs(archive),
    )


def _cells(archive: Archive) -> tuple[ImportedCell, ...]:
    issues = Counter((issue.run, issue.cell) for issue in archive.issues)
    found = []
    for cell in archive.cells:
        ends = Counter(outcome(attempt) for attempt in cell.attempts)
        found.append(
            ImportedCell(
                run=cell.run,
                cell=cell.name,
                attempts=len(cell.attempts),
                passes=ends[OutcomeKind.PASS],
                fails=ends[OutcomeKind.FAIL],
                invalid=ends[OutcomeKind.INVALID],
                logs=sum(attempt.log is not None for attempt in cell.attempts),
                calls=sum(len(attempt.calls) for attempt in cell.attempts),
                summary=cell.summary is not None,
                issues=issues[cell.run, cell.name],
            )
        )
    return tuple(found)
