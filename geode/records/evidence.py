"""Evidence: redacted diagnostic lines, best effort. Losing one loses nothing that anybody acts on."""

from pathlib import Path

from geode.clock import Clock, rfc3339
from geode.records.jsonl import JsonLines
from geode.redaction import Redactor, clean_text

EVIDENCE_SCHEMA = "geode.evidence/1"
_MAX_CHARS = 4_000


class EvidenceLedger:
    """Appends diagnostics to `evidence.jsonl`. It never raises for a full disk; `lost` counts what was not written."""

    def __init__(self, path: Path, session_id: str, clock: Clock, redactor: Redactor) -> None:
        self._path, self._session_id, self._clock, self._redactor = path, session_id, clock, redactor
        self._lines: JsonLines | None = None
        self.lost = 0

    def note(self, about: str, text: str) -> None:
        """Write one line: what it is about, and the text, redacted and cut to 4,000 characters."""
        safe, safe_about = (self._redactor.redact(clean_text(part))[:_MAX_CHARS] for part in (text, about))
        try:
            if self._lines is None:
                self._lines = JsonLines(self._path, {"schema": EVIDENCE_SCHEMA, "session_id": self._session_id})
            self._lines.append({"at": rfc3339(self._clock.now()), "about": safe_about, "text": safe})
        except OSError:
            self.lost += 1

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._lines is not None:
            self._lines.close()
