"""Reads MCPMark result folders as they are: every attempt, also the irregular ones, and what is irregular about them.

Layout: `<experiment>/<model>__<service>/run-<n>/<category>__<task>/{meta.json, execution.log, messages.json}` and a
`summary.json` beside the tasks. `execution.log` is one JSON array of calls; a call's result is JSON inside a string.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from analysis.fields import Fields
from analysis.importers.files import DamagedArchive, UnknownArchive, parse_object, read_text
from analysis.importers.mcpmark_log import Call, Log, read_log
from analysis.issues import Issue, IssueKind, is_error_text
from experiments.suite import OutcomeKind
from geode.redaction import clean_text

LAYOUT = "<experiment>/<model>__<service>/run-<n>/<category>__<task>/meta.json"
_RUN_FOLDER = re.compile(r"run-\d+")
_LEVELS_DOWN = 4  # a checkout of the upstream archive keeps its experiments two folders below its root
_META_KEYS = frozenset(
    {
        "task_name", "model_name", "litellm_run_model_name", "reasoning_effort", "mcp", "timeout", "time",
        "agent_execution_time", "task_execution_time", "execution_result", "token_usage", "turn_count",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """meta.json, flat. None is null, or what the file does not have, or has as another type."""

    task_name: str | None
    model_name: str | None
    litellm_run_model_name: str | None
    reasoning_effort: str | None
    mcp: str | None
    timeout: float | None
    time_start: str | None
    time_end: str | None
    agent_execution_time: float | None
    task_execution_time: float | None
    success: bool | None
    error_message: str | None
    verification_error: str | None
    verification_output: str | None
    usage_model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cost_usd: float | None
    turn_count: int | None
    usage_is_empty: bool

    @property
    def aborted(self) -> bool:
        """Infrastructure ended the attempt: an error before the verifier could measure anything, and no tokens."""
        return self.success is not True and (self.error_message is not None or self.usage_is_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One task folder. `log` is None where there is no execution.log."""

    folder: str
    meta: Meta
    meta_text: str
    log: Log | None
    final_answer: str | None

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that are known: none without a log."""
        return () if self.log is None else self.log.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """summary.json as it claims; not to be believed over the attempts."""

    service: str | None
    total_tasks: int | None
    successful_tasks: int | None
    failed_tasks: int | None
    success_rate: float | None
    total_task_execution_time: float | None
    total_agent_execution_time: float | None
    total_input_tokens: int | None
    total_output_tokens: int | None
    total_tokens: int | None
    total_turns: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedCell:
    """One `run-<n>` folder: `run` is its result directory, `name` the rest of its path."""

    run: str
    name: str
    attempts: tuple[Attempt, ...]
    summary: Summary | None

    def episode_key(self, attempt: Attempt) -> str:
        """Name an attempt uniquely within the archive."""
        return f"mcpmark:{self.run}/{self.name}/{attempt.folder}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What a path holds, and how much that is: whole result directories, or even the folder of all of them."""

    path: Path
    whole_runs: bool
    whole_archive: bool
    cells: tuple[ArchivedCell, ...]
    issues: tuple[Issue, ...]


def outcome(attempt: Attempt) -> OutcomeKind:
    """What the attempt measured. The archive's own pass counts use `success` alone; views show both."""
    meta = attempt.meta
    if meta.success is True:
        return OutcomeKind.PASS
    return OutcomeKind.INVALID if meta.aborted or meta.success is None else OutcomeKind.FAIL


def read_archive(path: Path) -> Archive:
    """Read the MCPMark archive, result directory or run at `path`.

    Raises:
        UnknownArchive: if nothing of the MCPMark layout is there.
        DamagedArchive: if a meta.json or summary.json cannot be read; a torn execution.log is kept up to its tear.
    """
    path = path.expanduser().resolve()
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise UnknownArchive(f"{path} {what}; give the folder of an archive, of one result directory, or of one run")
    try:
        folders = find_runs(path)
        if not folders:
            raise UnknownArchive(f"{path} is no archive that this version reads; looked for MCPMark's {LAYOUT}")
        depth = len(folders[0].relative_to(path).parts)  # 3: experiment, model and service, run
        issues = _leftovers(path, folders) if depth >= 3 else []
        cells = tuple(_read_cell(folder, issues) for folder in folders)
    except OSError as error:
        raise DamagedArchive(f"{path} cannot be listed: {error}; nothing was imported") from error
    return Archive(path=path, whole_runs=depth >= 2, whole_archive=depth >= 3, cells=cells, issues=tuple(issues))


def read_attempt(folder: Path) -> tuple[Attempt, tuple[Issue, ...]]:
    """Read one task folder alone, and what is irregular about it.

    Raises:
        DamagedArchive: if its meta.json cannot be read.
        UnknownArchive: if it has none.
    """
    folder = folder.expanduser().resolve()
    issues: list[Issue] = []
    run, cell = folder.parents[2].name, f"{folder.parents[1].name}/{folder.parents[0].name}"
    attempt = _CellReader(run=run, cell=cell, issues=issues).attempt(folder)
    if attempt is None:
        raise UnknownArchive(f"{folder} has no meta.json, so it is no attempt; looked for MCPMark's {LAYOUT}")
    return attempt, tuple(issues)


def find_runs(path: Path) -> list[Path]:
    """Return the `run-<n>` folders of the MCPMark layout at `path`; none if there are none."""
    if _is_run(path):
        return [path]
    for depth in range(_LEVELS_DOWN + 1):
        found = [folder for folder in path.glob("*/" * depth + "run-*") if _is_run(folder)]
        if found:
            return sorted(found)
    return []


def _is_run(folder: Path) -> bool:
    return folder.is_dir() and _RUN_FOLDER.fullmatch(folder.name) is not None and "__" in folder.parent.name


def _leftovers(path: Path, folders: list[Path]) -> list[Issue]:
    """Say what lies beside the result directories and is not imported."""
    root = folders[0].parents[2]
    known = {folder.parents[1] for folder in folders}
    issues = []
    for entry in sorted(root.iterdir()):
        place = entry.relative_to(path).as_posix()
        if entry.is_dir() and entry not in known:
            text = "a result directory without a run; nothing of it could be imported"
            issues.append(Issue(kind=IssueKind.DIRECTORY_WITHOUT_RUN, place=place, text=text))
        elif entry.is_file():
            text = "not part of MCPMark's layout; left as it is"
            issues.append(Issue(kind=IssueKind.FILE_NOT_IMPORTED, place=place, text=text))
    return issues


def _read_cell(folder: Path, issues: list[Issue]) -> ArchivedCell:
    run, name = folder.parents[1].name, f"{folder.parent.name}/{folder.name}"
    reader = _CellReader(run=run, cell=name, issues=issues)
    attempts = []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            attempt = reader.attempt(entry)
            if attempt is not None:
                attempts.append(attempt)
        elif entry.name != "summary.json":
            reader.note(IssueKind.FILE_NOT_IMPORTED, entry.name, "not part of MCPMark's layout; left as it is")
    cell = ArchivedCell(
        run=run, name=name, attempts=tuple(attempts), summary=reader.summary(folder / "summary.json", len(attempts))
    )
    if differing := contradictions(cell):
        text = f"{'; '.join(differing)} as the {len(attempts)} attempts beside it count"
        reader.note(IssueKind.SUMMARY_CONTRADICTS_ATTEMPTS, "summary.json", text)
    if any(attempt.meta.time_start for attempt in attempts):
        reader.note(IssueKind.TIME_ZONE_UNKNOWN, "", "times have no zone; kept as recorded, never as a point in time")
    return cell


def contradictions(cell: ArchivedCell) -> list[str]:
    """Say in which totals the summary of `cell` differs from its attempts."""
    summary, metas = cell.summary, [attempt.meta for attempt in cell.attempts]
    if summary is None or not metas:
        return []
    passes = sum(meta.success is True for meta in metas)
    totals = (
        ("total_tasks", summary.total_tasks, len(metas)),
        ("successful_tasks", summary.successful_tasks, passes),
        ("failed_tasks", summary.failed_tasks, len(metas) - passes),
        ("total_input_tokens", summary.total_input_tokens, sum(meta.input_tokens or 0 for meta in metas)),
        ("total_output_tokens", summary.total_output_tokens, sum(meta.output_tokens or 0 for meta in metas)),
        ("total_turns", summary.total_turns, sum(meta.turn_count or 0 for meta in metas)),
    )
    return [f"{name} is {claimed}, not {counted}" for name, claimed, counted in totals if claimed != counted]


@dataclass(slots=True, kw_only=True)
class _CellReader:
    """Reads the files of one run folder and notes what is irregular."""

    run: str
    cell: str
    issues: list[Issue]

    def note(self, kind: IssueKind, file: str, text: str, folder: str = "") -> None:
        where = f"{self.run}/{self.cell}"
        key = f"mcpmark:{where}/{folder}" if folder else ""
        place = "/".join(part for part in (where, folder, file) if part)
        self.issues.append(
            Issue(kind=kind, place=place, text=clean_text(text), run=self.run, cell=self.cell, episode_key=key)
        )

    def attempt(self, folder: Path) -> Attempt | None:
        path = folder / "meta.json"
        if not path.is_file():
            text = "a task folder without meta.json: nobody knows what it was; not imported"
            self.note(IssueKind.ATTEMPT_WITHOUT_META, "", text, folder.name)
            return None
        text = read_text(path)
        meta = self._meta(parse_object(text, path), folder.name)
        self._note_oddities_of(meta, folder.name)
        return Attempt(
            folder=folder.name,
            meta=meta,
            meta_text=clean_text(text),
            log=self._log(folder, meta),
            final_answer=self._answer(folder, meta),
        )

    def _meta(self, body: dict[str, JsonValue], folder: str) -> Meta:
        fields = Fields(body)
        times, result = fields.nested("time"), fields.nested("execution_result")
        # An aborted attempt has `{}` here: that it has no counts is what it says, not a field that is missing.
        usage = Fields({}, "token_usage.") if body.get("token_usage") == {} else fields.nested("token_usage")
        meta = Meta(
            task_name=fields.text("task_name"),
            model_name=fields.text("model_name"),
            litellm_run_model_name=fields.text("litellm_run_model_name"),
            reasoning_effort=fields.text("reasoning_effort"),
            mcp=fields.text("mcp"),
            timeout=fields.number("timeout"),
            time_start=times.text("start"),
            time_end=times.text("end"),
            agent_execution_time=fields.number("agent_execution_time"),
            task_execution_time=fields.number("task_execution_time"),
            success=result.flag("success"),
            error_message=result.text("error_message"),
            verification_error=result.text("verification_error"),
            verification_output=result.text("verification_output"),
            usage_model=usage.text("model"),
            input_tokens=usage.integer("input_tokens"),
            output_tokens=usage.integer("output_tokens"),
            cache_read_tokens=usage.integer("cache_read_tokens"),
            cost_usd=usage.number("cost_usd"),
            turn_count=fields.integer("turn_count"),
            usage_is_empty=body.get("token_usage") == {},
        )
        for oddity in fields.oddities:
            kind = IssueKind.FIELD_MISSING if oddity.missing else IssueKind.FIELD_ODD
            self.note(kind, "meta.json", f"{oddity.text}; NULL in its column, kept as it is in `meta`", folder)
        for name in sorted(body.keys() - _META_KEYS):
            self.note(IssueKind.FIELD_UNKNOWN, "meta.json", f"{name} is no known key; kept in `meta` alone", folder)
        return meta

    def _note_oddities_of(self, meta: Meta, folder: str) -> None:
        if meta.aborted:
            reason = meta.error_message or "no error message"
            text = f"infrastructure ended it ({reason[:200]}): counted as an attempt, INVALID as an outcome"
            self.note(IssueKind.ATTEMPT_ABORTED, "meta.json", text, folder)
        if meta.task_name is not None and meta.task_name != folder:
            self.note(IssueKind.TASK_NAME_DIFFERS, "meta.json", f"task_name is {meta.task_name!r}", folder)
        spent, allowed = meta.agent_execution_time, meta.timeout
        if spent is not None and allowed is not None and spent > allowed:
            text = f"the agent ran {spent:.1f} s with a timeout of {allowed:g} s; success is {meta.success}"
            self.note(IssueKind.ATTEMPT_OVER_TIMEOUT, "meta.json", text, folder)

    def _log(self, folder: Path, meta: Meta) -> Log | None:
        path = folder / "execution.log"
        if not path.is_file():
            if not meta.aborted:
                text = "the attempt ran, but its execution.log is not in this archive: its calls are unknown"
                self.note(IssueKind.LOG_MISSING, path.name, text, folder.name)
            return None
        text = read_text(path, errors="replace")
        log = read_log(text)
        if log.torn is not None:
            self.note(IssueKind.LOG_TORN, path.name, log.torn, folder.name)
        elif "\ufffd" in text:
            odd = "holds U+FFFD: it was there, or it stands for bytes that are no UTF-8"
            self.note(IssueKind.LOG_ENTRY_ODD, path.name, odd, folder.name)
        for text in log.odd:
            self.note(IssueKind.LOG_ENTRY_ODD, path.name, text, folder.name)
        for number, call in enumerate(log.calls, start=1):
            if is_error_text(call.result) and call.is_error is False:
                text = f"call {number} ({call.tool}) returned an error as normal text: {(call.result or '')[:160]}"
                self.note(IssueKind.ERROR_NOT_FLAGGED, path.name, text, folder.name)
        return log

    def _answer(self, folder: Path, meta: Meta) -> str | None:
        path = folder / "messages.json"
        if not path.is_file():
            return None
        try:
            answer = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            self.note(IssueKind.ANSWER_ODD, path.name, f"damaged JSON ({error}); the answer is unknown", folder.name)
            return None
        if isinstance(answer, str):
            return clean_text(answer)
        if answer != [] or not meta.aborted:
            shown = repr(answer)[:80]
            self.note(IssueKind.ANSWER_ODD, path.name, f"{shown} is no final answer", folder.name)
        return None

    def summary(self, path: Path, attempts: int) -> Summary | None:
        if not path.is_file():
            text = f"no summary.json beside {attempts} attempts; totals come from the attempts"
            self.note(IssueKind.SUMMARY_MISSING, path.name, text)
            return None
        text = read_text(path)
        fields = Fields(parse_object(text, path))
        usage, turns = fields.nested("token_usage"), fields.nested("turn_usage")
        summary = Summary(
            service=fields.nested("model_config").text("mcp_service"),
            total_tasks=fields.integer("total_tasks"),
            successful_tasks=fields.integer("successful_tasks"),
            failed_tasks=fields.integer("failed_tasks"),
            success_rate=fields.number("success_rate"),
            total_task_execution_time=fields.number("total_task_execution_time"),
            total_agent_execution_time=fields.number("total_agent_execution_time"),
            total_input_tokens=usage.integer("total_input_tokens"),
            total_output_tokens=usage.integer("total_output_tokens"),
            total_tokens=usage.integer("total_tokens"),
            total_turns=turns.integer("total_turns"),
            text=clean_text(text),
        )
        for oddity in fields.oddities:
            kind = IssueKind.FIELD_MISSING if oddity.missing else IssueKind.FIELD_ODD
            self.note(kind, path.name, f"{oddity.text}; NULL in its column, kept as it is in `summary`")
        if not attempts:
            text = (
                f"only a summary (total_tasks {summary.total_tasks}) and no attempt: the run broke off before its first"
            )
            self.note(IssueKind.RUN_WITHOUT_ATTEMPTS, path.name, text)
        parts = (summary.total_input_tokens or 0) + (summary.total_output_tokens or 0)
        if summary.total_tokens == 0 < parts:
            text = f"total_tokens is 0, though its input and output totals give {parts}"
            self.note(IssueKind.SUMMARY_CONTRADICTS_ITSELF, path.name, text)
        return summary
