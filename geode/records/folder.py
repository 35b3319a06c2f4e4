"""The folder of a session or an episode: which file holds what, and its small status file."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

STATE_SCHEMA = "geode.state/1"


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """The files of one session under `path`. It can be copied to another machine; it holds no absolute path."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """SQLite: the checkpoint."""
        return self.path / "session.db"

    @property
    def receipts(self) -> Path:
        """SQLite: the effect receipts."""
        return self.path / "effects.db"

    @property
    def timeline(self) -> Path:
        """JSONL: everything that happened."""
        return self.path / "timeline.jsonl"

    @property
    def evidence(self) -> Path:
        """JSONL: diagnostics."""
        return self.path / "evidence.jsonl"

    @property
    def state(self) -> Path:
        """JSON: what the session is, and its status."""
        return self.path / "state.json"

    @property
    def children(self) -> Path:
        """The records of the sessions of sub-agents, a folder each."""
        return self.path / "children"

    def write_state(self, body: dict[str, JsonValue]) -> None:
        """Replace the status file atomically."""
        write_atomically(self.state, json.dumps({"schema": STATE_SCHEMA, **body}, ensure_ascii=False, indent=1))

    def read_state(self) -> dict[str, JsonValue]:
        """Return the status file's content.

        Raises:
            FileNotFoundError: if there is none: this is no session folder.
            ValueError: if it cannot be read, or was written by a newer version.
        """
        try:
            body = json.loads(self.state.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{self.state} cannot be read ({error}); keep it, and start a new session") from error
        if not isinstance(body, dict) or body.get("schema") != STATE_SCHEMA:
            raise ValueError(f"{self.state} is no {STATE_SCHEMA} record; it may be from a newer version of GEODE")
        return body


def write_atomically(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a file so that it is either the old or the new one, never a part; `durable` also syncs it to the disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if durable:
            _sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    # The file's name is content of its folder, and is lost with it.
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
