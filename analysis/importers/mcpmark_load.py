"""Puts an MCPMark archive into the warehouse, and sums its runs up for the tracking store."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from analysis.importers.mcpmark import Archive, ArchivedCell, Attempt, outcome
from analysis.issues import Issue, is_error_text
from analysis.warehouse import Warehouse
from experiments.imported import ImportedRun
from experiments.suite import OutcomeKind

SOURCE = "mcpmark"
_BY_CELL = ("cells", "episodes", "import_issues", "mcpmark_attempts", "mcpmark_summaries")
_BY_EPISODE = ("tool_calls", "costs")
_Row = tuple[object, ...]


def load(warehouse: Warehouse, archive: Archive, at: datetime) -> None:
    """Write everything of `archive` in one transaction, in place of what an earlier import wrote of the same cells.

    Raises:
        WarehouseError: if that is not possible; nothing was written then.
    """
    pairs = [(cell, attempt) for cell in archive.cells for attempt in cell.attempts]
    runs = sorted({cell.run for cell in archive.cells})
    with warehouse.write() as writing:
        for table in _BY_CELL:
            for cell in archive.cells:
                part = {} if archive.whole_runs else {"cell": [cell.name]}
                writing.delete(table, source=[SOURCE], run=[cell.run], **part)
        if archive.whole_archive:
            writing.delete("import_issues", source=[SOURCE], run=[""])
        for table in _BY_EPISODE:
            writing.delete(table, source=[SOURCE], episode_key=[cell.episode_key(attempt) for cell, attempt in pairs])
        writing.delete("runs", source=[SOURCE], run=runs)
        writing.insert("runs", [(SOURCE, run, *[None] * 7) for run in runs])
        writing.insert("cells", [_cell_row(cell) for cell in archive.cells])
        writing.insert("episodes", [_episode_row(cell, attempt) for cell, attempt in pairs])
        writing.insert("tool_calls", [row for cell, attempt in pairs for row in _call_rows(cell, attempt)])
        writing.insert("costs", [_cost_row(cell, attempt) for cell, attempt in pairs if attempt.meta.usage_model])
        writing.insert("mcpmark_attempts", [_attempt_row(cell, attempt) for cell, attempt in pairs])
        writing.insert("mcpmark_summaries", [row for cell in archive.cells for row in _summary_rows(cell)])
        writing.insert("import_issues", [issue.row(SOURCE) for issue in archive.issues])
        writing.delete("imports", source=[SOURCE], path=[str(archive.path)])
        row = (SOURCE, str(archive.path), at, len(runs), len(pairs), len(archive.issues))
        writing.insert("imports", [row])
        writing.delete_orphans()


def imported_runs(archive: Archive) -> tuple[ImportedRun, ...]:
    """Sum each result directory and service up for the tracking store."""
    groups: dict[tuple[str, str], list[ArchivedCell]] = {}
    for cell in archive.cells:
        groups.setdefault((cell.run, _service(cell)), []).append(cell)
    return tuple(_imported_run(run, service, cells, archive.issues) for (run, service), cells in groups.items())


def _imported_run(run: str, service: str, cells: list[ArchivedCell], issues: Iterable[Issue]) -> ImportedRun:
    attempts = [attempt for cell in cells for attempt in cell.attempts]
    metas = [attempt.meta for attempt in attempts]
    calls = [call for attempt in attempts for call in attempt.calls]
    ends = Counter(outcome(attempt) for attempt in attempts)
    metrics: dict[str, float] = {"attempts": len(attempts), "import_issues": sum(issue.run == run for issue in issues)}
    if attempts:
        metrics |= {
            "passes": ends[OutcomeKind.PASS],
            "fails": ends[OutcomeKind.FAIL],
            "invalid": ends[OutcomeKind.INVALID],
            "pass_rate_of_attempts": ends[OutcomeKind.PASS] / len(attempts),
            "input_tokens": sum(meta.input_tokens or 0 for meta in metas),
            "output_tokens": sum(meta.output_tokens or 0 for meta in metas),
            "cache_read_tokens": sum(meta.cache_read_tokens or 0 for meta in metas),
            "cost_usd": sum(meta.cost_usd or 0.0 for meta in metas),
            "turns": sum(meta.turn_count or 0 for meta in metas),
            "agent_seconds": sum(meta.agent_execution_time or 0.0 for meta in metas),
            "task_seconds": sum(meta.task_execution_time or 0.0 for meta in metas),
        }
    if measured := ends[OutcomeKind.PASS] + ends[OutcomeKind.FAIL]:
        metrics["pass_rate"] = ends[OutcomeKind.PASS] / measured
    if logs := sum(attempt.log is not None for attempt in attempts):
        metrics["logs"] = logs
        metrics["tool_calls"] = len(calls)
        metrics["tool_errors"] = sum(call.is_error is True or is_error_text(call.result) is True for call in calls)
    recorded: dict[str, Callable[[Attempt], object]] = {
        "model": lambda attempt: attempt.meta.litellm_run_model_name or attempt.meta.model_name,
        "reasoning_effort": lambda attempt: attempt.meta.reasoning_effort,
        "timeout_s": lambda attempt: attempt.meta.timeout,
    }
    params = {name: _distinct(pick(attempt) for attempt in attempts) for name, pick in recorded.items()}
    return ImportedRun(
        name=f"{run}/{service}",
        experiment=SOURCE,
        params={"result_directory": run, "service": service, **params},
        metrics=metrics,
        tags={
            "geode.source": SOURCE,
            "geode.time_zone": "unknown",
            "geode.first_start": min((meta.time_start for meta in metas if meta.time_start), default="unknown"),
        },
    )


def _distinct(values: Iterable[object]) -> str:
    return ", ".join(sorted({str(value) for value in values if value is not None})) or "not recorded"


def _service(cell: ArchivedCell) -> str:
    recorded = {attempt.meta.mcp for attempt in cell.attempts if attempt.meta.mcp}
    if cell.summary is not None and cell.summary.service:
        recorded.add(cell.summary.service)
    return "+".join(sorted(recorded)) or "unknown"


def _cell_row(cell: ArchivedCell) -> _Row:
    models = {attempt.meta.litellm_run_model_name for attempt in cell.attempts} - {None}
    return (SOURCE, cell.run, cell.name, None, _distinct(models) if models else None, None, [])


def _episode_row(cell: ArchivedCell, attempt: Attempt) -> _Row:
    meta, kind = attempt.meta, outcome(attempt)
    score = {OutcomeKind.PASS: 1.0, OutcomeKind.FAIL: 0.0, OutcomeKind.INVALID: None}[kind]
    reasons = [text for text in (meta.error_message, meta.verification_error) if text]
    calls = len(attempt.calls) if attempt.log else None
    errors = sum(call.is_error is True for call in attempt.calls) if attempt.log else None
    return (
        SOURCE,
        cell.run,
        cell.name,
        cell.episode_key(attempt),
        _service(cell),
        meta.task_name or attempt.folder,
        (meta.task_name or attempt.folder).split("__")[0],
        *[None] * 3,  # task_hash, scaffold_id, caps_hash: the archive has none
        None,  # seed
        None,  # repetition: an attempt again lies in another run
        kind.value,
        score,
        reasons,
        None,  # stop_reason
        None,  # verified: there was no completion check
        meta.turn_count,
        calls,
        errors,
        None,  # refused_calls
        None,  # repairs_used
        meta.cost_usd,
        False,  # simulated
        None,  # session_id
        None,  # started_at: the zone is unknown; see mcpmark_attempts.time_start
        None,  # ended_at
        meta.task_execution_time,
        None,  # cpu_s
        None,  # geode_version
        None,  # python_version
    )


def _call_rows(cell: ArchivedCell, attempt: Attempt) -> Iterable[_Row]:
    for number, call in enumerate(attempt.calls, start=1):
        yield (
            SOURCE,
            cell.episode_key(attempt),
            number,
            None,  # at: a log has no times
            None,  # turn: calls cannot be assigned to turns
            None,  # round
            call.call_id,
            call.tool,
            call.arguments,
            None,  # call_end: the log knows no more than the flag
            call.is_error,
            is_error_text(call.result),
            None,  # stage
            None,  # elapsed_ms
            call.result,
            None if call.result is None else len(call.result),
        )


def _cost_row(cell: ArchivedCell, attempt: Attempt) -> _Row:
    meta = attempt.meta
    read = meta.cache_read_tokens
    uncached = None if meta.input_tokens is None or read is None else meta.input_tokens - read
    key = cell.episode_key(attempt)
    return (
        SOURCE,
        key,
        "target",
        meta.usage_model,
        uncached,
        None,
        read,
        meta.output_tokens,
        meta.cost_usd,
        *[None] * 4,
    )


def _attempt_row(cell: ArchivedCell, attempt: Attempt) -> _Row:
    meta, log = attempt.meta, attempt.log
    return (
        SOURCE,
        cell.run,
        cell.name,
        cell.episode_key(attempt),
        attempt.folder,
        meta.task_name,
        meta.model_name,
        meta.litellm_run_model_name,
        meta.reasoning_effort,
        meta.mcp,
        meta.timeout,
        meta.time_start,
        meta.time_end,
        meta.agent_execution_time,
        meta.task_execution_time,
        meta.success,
        meta.error_message,
        meta.verification_error,
        meta.verification_output,
        meta.usage_model,
        meta.input_tokens,
        meta.output_tokens,
        meta.cache_read_tokens,
        meta.cost_usd,
        meta.turn_count,
        meta.aborted,
        log is not None,
        log is not None and log.torn is not None,
        len(log.calls) if log is not None else None,
        attempt.final_answer,
        attempt.meta_text,
    )


def _summary_rows(cell: ArchivedCell) -> Iterable[_Row]:
    if (summary := cell.summary) is not None:
        yield (
            SOURCE,
            cell.run,
            cell.name,
            summary.service,
            summary.total_tasks,
            summary.successful_tasks,
            summary.failed_tasks,
            summary.success_rate,
            summary.total_task_execution_time,
            summary.total_agent_execution_time,
            summary.total_input_tokens,
            summary.total_output_tokens,
            summary.total_tokens,
            summary.total_turns,
            summary.text,
        )
