"""Logs of other harnesses as one thing: attempts at tasks, each with the values that were measured, or none.

Knows MCPMark result directories and Inspect's `.eval` logs. It looks at what was measured and with what, and at nothing
that would need an import.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.importers.inspect_eval import EvalLog
from analysis.importers.inspect_records import EvalStatus, Score
from analysis.importers.mcpmark import ArchivedCell, Attempt, read_archive
from analysis.importers.mcpmark_load import outcome
from experiments.suite import OutcomeKind
from geode.redaction import clean_text

EVAL_SUFFIX = ".eval"
_MCPMARK_VALUES = {OutcomeKind.PASS: 1.0, OutcomeKind.FAIL: 0.0, OutcomeKind.INVALID: None}


class LogsRefused(ValueError):  # noqa: N818  (named by what happened)
    """These logs cannot be compared. The text says why, and what to give instead."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """What is paired: a task, and which attempt at it (MCPMark's run, Inspect's epoch)."""

    task: str
    attempt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """One log. `ruler` is what must be equal for a comparison to mean anything; `subject` is what is compared.

    `values` has for each dimension a value, or None, of each unit. `notes` limit the reading of this log alone.
    """

    name: str
    harness: str
    subject: str
    ruler: Mapping[str, str]
    units: tuple[Unit, ...]
    values: Mapping[str, Mapping[Unit, float | None]]
    notes: tuple[str, ...]


def is_log_path(argument: str) -> bool:
    """Say whether a command's argument is meant as a path: it ends in .eval, or has a slash, as no name has."""
    return argument.endswith(EVAL_SUFFIX) or "/" in argument or "\\" in argument or argument in {".", ".."}


def read_run(path: Path) -> ForeignRun:
    """Read the log at `path`.

    Raises:
        ArchiveError: if it cannot be read, or is of no known format.
        LogsRefused: if it holds one attempt at one task twice, so that nobody knows which one is meant.
    """
    return _read_eval(path) if path.suffix == EVAL_SUFFIX else _read_mcpmark(path)


def _read_mcpmark(path: Path) -> ForeignRun:
    archive = read_archive(path)
    attempts = [(_mcpmark_unit(cell, attempt), attempt) for cell in archive.cells for attempt in cell.attempts]
    units = _distinct_units(path, (unit for unit, _ in attempts))
    metas = [attempt.meta for _, attempt in attempts]
    ends = Counter(outcome(attempt) for _, attempt in attempts)
    notes = [f"{ends[OutcomeKind.INVALID]} of {len(attempts)} attempts are INVALID: infrastructure ended them"]
    return ForeignRun(
        name=str(path),
        harness="mcpmark",
        subject=_told(f"{m.litellm_run_model_name or m.model_name}, effort {m.reasoning_effort}" for m in metas),
        ruler={
            "service": _told(m.mcp for m in metas),
            "timeout": _told(None if m.timeout is None else f"{m.timeout:g} s" for m in metas),
        },
        units=units,
        values={"success": {unit: _MCPMARK_VALUES[outcome(attempt)] for unit, attempt in attempts}},
        notes=tuple(notes if ends[OutcomeKind.INVALID] else ()),
    )


def _mcpmark_unit(cell: ArchivedCell, attempt: Attempt) -> Unit:
    model_and_service, run = cell.name.rsplit("/", 1)
    return Unit(f"{model_and_service.rsplit('__', 1)[-1]}/{attempt.folder}", run)


def _read_eval(path: Path) -> ForeignRun:
    log = EvalLog.open(path)
    header, scores = log.header, log.scores()
    units = tuple(dict.fromkeys(Unit(score.sample_id, str(score.epoch)) for score in scores))
    values: dict[str, dict[Unit, float | None]] = {}
    names = _dimension_names(scores)
    for score in scores:
        if score.scorer:
            of_dimension = values.setdefault(names[score.scorer, score.dimension], dict.fromkeys(units))
            of_dimension[Unit(score.sample_id, str(score.epoch))] = score.value
    ruler = {
        "task": header.task,
        "dataset": header.dataset,
        "scorers": ", ".join(sorted({score.scorer for score in scores if score.scorer})),
        "inspect_ai": header.inspect_version,
        **{role: model for role, model in header.roles.items() if role != "target"},
    }
    ended = f"the log's status is {header.status.value!r}: what did not end is not in it"
    return ForeignRun(
        name=str(path),
        harness="inspect",
        subject=header.roles.get("target") or header.model or "unknown",
        ruler={name: value or "unknown" for name, value in ruler.items()},
        units=units,
        values=values,
        notes=() if header.status is EvalStatus.SUCCESS else (ended,),
    )


def _dimension_names(scores: Iterable[Score]) -> dict[tuple[str, str], str]:
    """Name a dimension by itself, by its scorer if it has no name, and by both where two scorers share it."""
    pairs = dict.fromkeys((score.scorer, score.dimension) for score in scores if score.scorer)
    shared = Counter(dimension or scorer for scorer, dimension in pairs)
    return {
        (scorer, dimension): dimension or scorer if shared[dimension or scorer] == 1 else f"{scorer}.{dimension}"
        for scorer, dimension in pairs
    }


def _distinct_units(path: Path, units: Iterable[Unit]) -> tuple[Unit, ...]:
    counted = Counter(units)
    twice = [unit for unit, count in counted.items() if count > 1]
    if twice:
        raise LogsRefused(
            f"{path} holds {twice[0].task!r} of {twice[0].attempt} more than once ({len(twice)} such tasks):"
            " give one result directory, or one model's folder in it"
        )
    return tuple(counted)


def _told(values: Iterable[str | None]) -> str:
    return ", ".join(sorted({clean_text(value) for value in values if value is not None})) or "unknown"
