"""What a server writes to its standard error: kept in a file, without secrets, and never without bound."""

import os
from pathlib import Path

from geode.redaction import Redactor, clean_text

LOG_BYTES_MAX = 1 << 20
_LINE_BYTES_MAX = 8_192


class ServerLog:
    """Appends lines to `path`. A file that is half full when a server starts begins anew."""

    def __init__(self, path: Path, redactor: Redactor, bytes_max: int = LOG_BYTES_MAX) -> None:
        self.path = path
        self._redactor = redactor
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = path.is_file() and path.stat().st_size < bytes_max // 2
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if kept else os.O_TRUNC)
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)
        self._left = bytes_max
        self._line = b""

    def feed(self, data: bytes) -> None:
        """Take what came. Whole lines are written, since half a secret would not be recognised."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._write(line)
        if len(self._line) > _LINE_BYTES_MAX:
            self._write(self._line)
            self._line = b""

    def close(self) -> None:
        """Write the last line and close the file."""
        if self._line:
            self._write(self._line)
            self._line = b""
        self._file.close()

    def _write(self, line: bytes) -> None:
        text = self._redactor.redact(clean_text(line.decode("utf-8", "replace")))
        out = f"{text}\n".encode()
        if self._left > 0:
            self._file.write(out[: self._left])
            self._left -= len(out)
            if self._left <= 0:
                self._file.write(b"\n[the log is full]\n")
