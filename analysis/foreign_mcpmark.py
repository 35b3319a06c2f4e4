"""MCPMark's result directories as logs to compare: one attempt a task folder, a task's category as its family."""

from collections import Counter
from datetime import datetime
from pathlib import Path

from analysis.foreign import AttemptFacts, ForeignRun, Unit, distinct_units, told, total
from analysis.importers.mcpmark import ArchivedCell, Attempt, find_runs, outcome, read_archive
from analysis.issues import is_error_text
from experiments.suite import OutcomeKind

HARNESS = "mcpmark"
SUCCESS = "success"
_VALUES = {OutcomeKind.PASS: 1.0, OutcomeKind.FAIL: 0.0, OutcomeKind.INVALID: None}


def read_mcpmark(path: Path) -> ForeignRun:
    """Read the result directory, or a part of it, at `path`.

    Raises:
        ArchiveError: if it cannot be read, or is none.
        LogsRefused: if it holds one attempt at one task twice.
    """
    archive = read_archive(path)
    found = [
        (_unit(cell, attempt), attempt, folder / attempt.folder)
        for folder, cell in zip(find_runs(path.expanduser()), archive.cells, strict=True)
        for attempt in cell.attempts
    ]
    distinct_units(str(path), (unit for unit, _, _ in found))
    metas = [attempt.meta for _, attempt, _ in found]
    invalid = Counter(outcome(attempt) for _, attempt, _ in found)[OutcomeKind.INVALID]
    return ForeignRun(
        name=str(path),
        harness=HARNESS,
        subject=told(f"{m.litellm_run_model_name or m.model_name}, effort {m.reasoning_effort}" for m in metas),
        ruler={
            "service": told(m.mcp for m in metas),
            "timeout": told(None if m.timeout is None else f"{m.timeout:g} s" for m in metas),
        },
        attempts={unit: _facts(attempt, folder) for unit, attempt, folder in found},
        values={SUCCESS: {unit: _VALUES[outcome(attempt)] for unit, attempt, _ in found}},
        passes_and_failures=True,
        families={unit.task: attempt.folder.split("__")[0] for unit, attempt, _ in found},
        notes=(f"{invalid} of {len(found)} attempts are INVALID: infrastructure ended them",) if invalid else (),
    )


def _unit(cell: ArchivedCell, attempt: Attempt) -> Unit:
    model_and_service, run = cell.name.rsplit("/", 1)
    return Unit(f"{model_and_service.rsplit('__', 1)[-1]}/{attempt.folder}", run)


def _facts(attempt: Attempt, folder: Path) -> AttemptFacts:
    meta, log = attempt.meta, attempt.log
    invalid = outcome(attempt) is OutcomeKind.INVALID
    errors = sum(call.is_error is True or is_error_text(call.result) is True for call in attempt.calls)
    return AttemptFacts(
        identity=str(folder.resolve()),
        shown_as=str(folder),
        invalid=(meta.error_message or "no usage, no error message") if invalid else None,
        started_at=_naive_time(meta.time_start),
        wall_s=meta.task_execution_time,
        tokens=total((meta.input_tokens, meta.output_tokens)),
        cost_usd=meta.cost_usd,
        turns=meta.turn_count,
        tool_calls=None if log is None else len(log.calls),
        tool_errors=None if log is None else errors,
    )


def _naive_time(text: str | None) -> datetime | None:
    """Return a time without a zone, as MCPMark writes it: good for an order within one log, and for nothing else."""
    try:
        return None if text is None else datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None
