"""Which logs a command's arguments mean, and reading each with the reader of its format."""

from collections.abc import Sequence
from pathlib import Path

from analysis.foreign import ForeignRun, LogsRefused
from analysis.foreign_inspect import EVAL_SUFFIX, read_inspect
from analysis.foreign_mcpmark import read_mcpmark
from analysis.importers.files import UnknownArchive


def is_log_path(argument: str) -> bool:
    """Say whether a command's argument is meant as a path: it ends in .eval, or has a slash, as no name has."""
    return argument.endswith(EVAL_SUFFIX) or "/" in argument or "\\" in argument or argument in {".", ".."}


def read_log(path: Path) -> ForeignRun:
    """Read the log at `path`.

    Raises:
        ArchiveError: if it cannot be read, or is of no known format.
        LogsRefused: if it holds one attempt at one task twice.
    """
    if path.suffix == EVAL_SUFFIX:
        return read_inspect(path)
    try:
        return read_mcpmark(path)
    except UnknownArchive as unknown:
        logs = sorted(path.glob(f"*{EVAL_SUFFIX}")) if path.is_dir() else []
        if not logs:
            raise
        raise LogsRefused(f"{path} holds {len(logs)} .eval logs: name them, such as {logs[0]}") from unknown


def read_logs(names: Sequence[str]) -> tuple[ForeignRun, ...]:
    """Read the logs that a command names.

    Raises:
        ArchiveError: if one cannot be read, or is of no known format.
        LogsRefused: if one is no path, or is named twice.
    """
    if no_paths := [name for name in names if not is_log_path(name)]:
        raise LogsRefused(
            f"{no_paths[0]!r} is the name of an experiment, the others are logs: nothing pairs them."
            f" If it is a folder, write ./{no_paths[0]}"
        )
    paths = [Path(name).expanduser() for name in names]
    seen: dict[Path, str] = {}
    for path, name in zip(paths, names, strict=True):
        if (place := path.resolve()) in seen:
            raise LogsRefused(f"{name} and {seen[place]} are the same log: give two")
        seen[place] = name
    return tuple(read_log(path) for path in paths)
