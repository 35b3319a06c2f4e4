"""The manifest of an experiment: one line when an episode is planned, started, done, failed or found lost.

It tells what an interrupted run was doing. What is done is decided by the episode folders, never by this file.
"""

from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue

from experiments.plan import PlannedEpisode
from geode.clock import Clock, rfc3339
from geode.records.jsonl import JsonLines, read_lines

MANIFEST_SCHEMA = "geode.manifest/1"
MANIFEST_FILE = "manifest.jsonl"


class EpisodeStatus(StrEnum):
    """How far an episode came. FAILED ran to its end and is INVALID; LOST was started and never ended."""

    PLANNED = "planned"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"


class Manifest:
    """Appends to the manifest of one experiment."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clock = clock
        before = read_manifest(folder)
        self._lines = JsonLines(folder / MANIFEST_FILE, {"schema": MANIFEST_SCHEMA})
        for key, status in before.items():
            if status is EpisodeStatus.STARTED:
                self._append({"episode": key, "status": EpisodeStatus.LOST.value})

    def note(self, episode: PlannedEpisode, status: EpisodeStatus) -> None:
        """Append what became of an episode."""
        body: dict[str, JsonValue] = {"episode": episode.spec.episode_key, "status": status.value}
        if status is EpisodeStatus.PLANNED:
            spec = episode.spec
            body |= {"variant": episode.variant, "task": spec.task_id, "seed": spec.seed, "repetition": spec.repetition}
        self._append(body)

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def _append(self, body: dict[str, JsonValue]) -> None:
        self._lines.append({"at": rfc3339(self._clock.now()), **body})


def read_manifest(folder: Path) -> dict[str, EpisodeStatus]:
    """Return the last status of each episode key; empty if nothing was ever planned. Torn lines are skipped."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        return {}
    known = set(EpisodeStatus)
    found = ((line.body.get("episode"), line.body.get("status")) for line in read_lines(path) if line.body)
    return {str(key): EpisodeStatus(str(status)) for key, status in found if key and status in known}
