"""Strict and bounded reading of an archive's files: what cannot be read stops the import before anything is written."""

import json
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

FILE_BYTES_MAX = 256 * 1024 * 1024


class ArchiveError(Exception):
    """An archive cannot be imported; the message names the file and what to do."""


class UnknownArchive(ArchiveError):  # noqa: N818  (named by what happened)
    """The path holds no archive in a format that we read."""


class DamagedArchive(ArchiveError):  # noqa: N818
    """A file without which a record cannot be told is unreadable."""


def read_text(path: Path, errors: Literal["strict", "replace"] = "strict") -> str:
    """Return the text of a UTF-8 file; `errors` says what becomes of bytes that are none.

    Raises:
        DamagedArchive: if it cannot be read, is not UTF-8 and `errors` is strict, or is longer than `FILE_BYTES_MAX`.
    """
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            raise DamagedArchive(f"{path} has {size} bytes, more than the {FILE_BYTES_MAX} that an import reads")
        return path.read_text(encoding="utf-8", errors=errors)
    except OSError as error:
        raise DamagedArchive(f"{path} cannot be read: {error.strerror or error}; nothing was imported") from error
    except UnicodeDecodeError as error:
        raise DamagedArchive(f"{path} is not UTF-8 text ({error}); nothing was imported") from error


def parse_object(text: str, path: Path) -> dict[str, JsonValue]:
    """Return the JSON object that `text`, the content of `path`, holds.

    Raises:
        DamagedArchive: if it is no JSON, or no object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedArchive(f"{path} is damaged JSON ({error}); restore the file; nothing was imported") from error
    if not isinstance(value, dict):
        raise DamagedArchive(f"{path} holds {type(value).__name__}, not a JSON object; nothing was imported")
    return value
