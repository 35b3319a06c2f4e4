"""Append-only JSON lines: one writer, order by a sequence number, and a torn last line that hurts nobody."""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

_TAIL_BYTES = 1 << 16
_CLOSED = -1
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` builds one for each call


class JsonLines:
    """Appends lines to `path`: first `header`, then numbered ones, from 1 without a gap, over restarts too."""

    def __init__(self, path: Path, header: Mapping[str, JsonValue]) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._owner = os.getpid()
        self._torn = False
        self._seq = _last_seq(path)
        if self._seq is None:
            self._seq = 0
            self._write(header)

    def append(self, body: Mapping[str, JsonValue]) -> None:
        """Append one line.

        Raises:
            OSError: if the line could not be written whole.
        """
        self._write({"seq": (self._seq or 0) + 1, **body})
        self._seq = (self._seq or 0) + 1

    def close(self) -> None:
        """Close the file. What is appended afterwards is refused."""
        if self._fd != _CLOSED:
            os.close(self._fd)
            self._fd = _CLOSED

    def _write(self, body: Mapping[str, JsonValue]) -> None:
        if self._fd == _CLOSED:
            # The system may have given the number to another file since.
            raise OSError(errno.EBADF, "the record is closed", str(self.path))
        if os.getpid() != self._owner:
            # It may outlive the process that owned the session, and write beside the next one.
            raise OSError(errno.EPERM, "a fork may not write to the record", str(self.path))
        line = (_ENCODER.encode(body) + "\n").encode()
        if self._torn:
            line = b"\n" + line
        written = os.write(self._fd, line)
        self._torn = written != len(line)
        if self._torn:
            # The disk filled up inside the line. The next one begins with a line end, so that it stands alone.
            raise OSError(errno.ENOSPC, "the line was written in part", str(self.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line as read: its JSON object, or the reason why it has none."""

    number: int
    body: dict[str, JsonValue] | None
    problem: str = ""


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a JSONL file; a line that is no JSON object comes with its problem instead of a body."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                body = json.loads(text)
            except (ValueError, RecursionError):
                kind = "cut off" if not text.endswith("\n") else "not JSON"
                yield Line(number=number, body=None, problem=f"{path.name} line {number} is {kind} and was skipped")
                continue
            if isinstance(body, dict):
                yield Line(number=number, body=body)
            else:
                yield Line(number=number, body=None, problem=f"{path.name} line {number} is no object and was skipped")


def _last_seq(path: Path) -> int | None:
    """Return the last sequence number (0 if there is only the header), or None for an empty file. End a torn line."""
    size = path.stat().st_size
    if size == 0:
        return None
    with path.open("r+b") as file:
        length = _TAIL_BYTES
        while True:
            file.seek(max(0, size - length))
            tail = file.read()
            seq = _seq_of_last_object(tail)
            if seq is not None or length >= size:
                break
            length *= 16  # the tail holds no whole line
        if not tail.endswith(b"\n"):
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
    return seq or 0


def _seq_of_last_object(tail: bytes) -> int | None:
    for text in reversed(tail.splitlines()):
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(body, dict):
            seq = body.get("seq", 0)
            return seq if isinstance(seq, int) else 0
    return None
