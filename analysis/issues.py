"""What was irregular in a record, said in words: rows of `import_issues`. An irregular record is kept and explained."""

from dataclasses import dataclass
from enum import StrEnum


class IssueKind(StrEnum):
    """What can be irregular. The names stand in `import_issues.kind`."""

    TIMELINE_MISSING = "timeline_missing"
    TIMELINE_LINE_SKIPPED = "timeline_line_skipped"
    FIELD_MISSING = "field_missing"
    FIELD_ODD = "field_odd"
    FIELD_UNKNOWN = "field_unknown"
    ATTEMPT_ABORTED = "attempt_aborted"
    ATTEMPT_OVER_TIMEOUT = "attempt_over_timeout"
    ATTEMPT_WITHOUT_META = "attempt_without_meta"
    TASK_NAME_DIFFERS = "task_name_differs"
    LOG_MISSING = "log_missing"
    LOG_TORN = "log_torn"
    LOG_ENTRY_ODD = "log_entry_odd"
    ERROR_NOT_FLAGGED = "error_not_flagged"
    ANSWER_ODD = "answer_odd"
    RUN_WITHOUT_ATTEMPTS = "run_without_attempts"
    DIRECTORY_WITHOUT_RUN = "directory_without_run"
    SUMMARY_MISSING = "summary_missing"
    SUMMARY_CONTRADICTS_ATTEMPTS = "summary_contradicts_attempts"
    SUMMARY_CONTRADICTS_ITSELF = "summary_contradicts_itself"
    TIME_ZONE_UNKNOWN = "time_zone_unknown"
    FILE_NOT_IMPORTED = "file_not_imported"
    LOG_UNREADABLE = "log_unreadable"
    LOG_KILLED = "log_killed"
    LOG_NOT_SUCCESSFUL = "log_not_successful"
    LOG_EMPTY = "log_empty"
    DATASET_SIZE_DIFFERS = "dataset_size_differs"
    SAMPLE_FAILED = "sample_failed"
    SAMPLE_UNSCORED = "sample_unscored"
    DIMENSIONS_DIFFER = "dimensions_differ"
    SUMMARY_CONTRADICTS_SAMPLES = "summary_contradicts_samples"
    RESULTS_CONTRADICT_SAMPLES = "results_contradict_samples"
    INDEX_CONTRADICTS_LOG = "index_contradicts_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One irregularity. `run`, `cell` and `episode_key` are empty where it concerns more than one of them."""

    kind: IssueKind
    place: str
    text: str
    run: str = ""
    cell: str = ""
    episode_key: str = ""

    def row(self, source: str) -> tuple[str, ...]:
        """As a row of `import_issues`."""
        return (source, self.run, self.cell, self.episode_key, self.kind.value, self.place, self.text)


def is_error_text(result: str | None) -> bool | None:
    """Say whether a result reads as an error, whatever its flag says: postgres-mcp flags no SQL error."""
    return None if result is None else result.startswith("Error:")
