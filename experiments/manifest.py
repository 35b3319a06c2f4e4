"""The manifest of an experiment: one line when an episode is planned, started, done, failed or found lost.

It tells what an interrupted run was doing. What is done is decided by the episode folders, never by this file. Every
process that runs episodes of the experiment appends to it, whole lines; their order is that of the file.
"""

import errno
import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue

from experiments.claims import Claims, episode_name
from experiments.episode import EpisodeRecord
from experiments.plan import PlannedEpisode
from experiments.store import EpisodeStore
from experiments.suite import OutcomeKind
from geode.clock import Clock, rfc3339
from geode.records.jsonl import read_lines

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
        self._folder, self._clock = folder, clock
        self._fd = os.open(folder / MANIFEST_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        size = os.fstat(self._fd).st_size
        if size == 0:
            self._append({"schema": MANIFEST_SCHEMA})
        elif os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")  # ends a line that a full disk cut off; readers skip an empty one

    def note(self, episode: PlannedEpisode, status: EpisodeStatus) -> None:
        """Append what became of an episode."""
        spec, more = episode.spec, dict[str, JsonValue]()
        if status is EpisodeStatus.PLANNED:
            more = {"variant": episode.variant, "task": spec.task_id, "seed": spec.seed, "repetition": spec.repetition}
        self._note(spec.episode_key, status, more)

    def note_lost(self, claims: Claims, store: EpisodeStore) -> None:
        """Append what became of episodes that were started by a process that is no more."""
        for key, status in read_manifest(self._folder).items():
            if status is EpisodeStatus.STARTED and claims.is_free(episode_name(key)):
                record = store.look(key).record
                self._note(key, EpisodeStatus.LOST if record is None else ended(record))

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _note(self, key: str, status: EpisodeStatus, more: Mapping[str, JsonValue] | None = None) -> None:
        self._append({"at": rfc3339(self._clock.now()), "episode": key, "status": status.value, **(more or {})})

    def _append(self, body: dict[str, JsonValue]) -> None:
        line = (json.dumps(body, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
        if os.write(self._fd, line) != len(line):
            raise OSError(errno.ENOSPC, "the line was written in part", str(self._folder / MANIFEST_FILE))


def ended(record: EpisodeRecord) -> EpisodeStatus:
    """Return the status of an episode that ran to its end."""
    return EpisodeStatus.FAILED if record.outcome.kind is OutcomeKind.INVALID else EpisodeStatus.DONE


def read_manifest(folder: Path) -> dict[str, EpisodeStatus]:
    """Return the last status of each episode key; empty if nothing was ever planned. Torn lines are skipped.

    Planning says nothing of an episode that another run has already begun or ended.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        return {}
    known = set(EpisodeStatus)
    last: dict[str, EpisodeStatus] = {}
    for line in read_lines(path):
        key, status = (line.body.get("episode"), line.body.get("status")) if line.body else (None, None)
        if not key or status not in known:
            continue
        if status != EpisodeStatus.PLANNED or last.get(str(key)) in {None, EpisodeStatus.LOST}:
            last[str(key)] = EpisodeStatus(str(status))
    return last
