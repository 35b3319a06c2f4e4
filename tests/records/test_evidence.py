"""Facts of `geode.records.evidence`: best effort, never in the way, and no secret in it."""

import json
from pathlib import Path

from geode.clock import ManualClock
from geode.records.evidence import EvidenceLedger
from geode.redaction import Redactor


def notes(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def test_a_note_is_cleaned_redacted_and_cut(tmp_path: Path) -> None:
    """R40: an error text that echoes a header is the usual way of a key into a log. It is redacted before it is cut."""
    ledger = EvidenceLedger(tmp_path / "e.jsonl", "S1", ManualClock(), Redactor(needles=("hunter2-hunter2",)))
    ledger.note("tool \ud83c hunter2-hunter2", "\udc8f header: hunter2-hunter2")
    ledger.note("long", "x" * 3_995 + "hunter2-hunter2")
    ledger.close()
    first, second = notes(tmp_path / "e.jsonl")
    assert (first["about"], first["text"]) == ("tool � [redacted]", "� header: [redacted]")
    assert second["text"] == "x" * 3_995 + "[reda"
    assert ledger.lost == 0


def test_a_session_without_notes_has_no_file(tmp_path: Path) -> None:
    EvidenceLedger(tmp_path / "e.jsonl", "S1", ManualClock(), Redactor()).close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_counted_and_not_raised() -> None:
    """Losing a diagnostic must not cost the turn that it is about."""
    ledger = EvidenceLedger(Path("/dev/full"), "S1", ManualClock(), Redactor())
    ledger.note("a", "b")
    ledger.note("a", "b")
    ledger.close()
    assert ledger.lost == 2


def test_a_note_after_the_end_is_counted_too(tmp_path: Path) -> None:
    ledger = EvidenceLedger(tmp_path / "e.jsonl", "S1", ManualClock(), Redactor())
    ledger.note("a", "b")
    ledger.close()
    ledger.note("a", "late")
    assert (len(notes(tmp_path / "e.jsonl")), ledger.lost) == (1, 1)
