"""Which cells each sink has in full, so that an interrupted run writes what is missing and nothing twice."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.sinks import Cell
from geode.canonical import content_hash
from geode.records.folder import write_atomically

WRITTEN_FILE = "sinks.json"
WRITTEN_SCHEMA = "geode.sinks/2"


class WrittenCells:
    """What each sink has of one experiment, as the file says at this moment. Change it only in a turn of `SinkTurns`.

    Losing the file costs one more write of cells that are there already, and sinks take that.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / WRITTEN_FILE
        self._marks = _read(self._path)

    def has(self, sink: str, cell: Cell) -> bool:
        """Whether the sink has this very cell, each episode as it is on record."""
        return self._marks.get(sink, {}).get(cell.variant.name) == _mark(cell)

    def missing(self, sinks: Sequence[str], cells: Iterable[Cell]) -> tuple[str, ...]:
        """Return the variants whose cell one of the sinks does not have."""
        return tuple(cell.variant.name for cell in cells if not all(self.has(sink, cell) for sink in sinks))

    def add(self, sink: str, cell: Cell) -> None:
        """Say that the sink has written the cell."""
        self._write({**self._marks, sink: {**self._marks.get(sink, {}), cell.variant.name: _mark(cell)}})

    def _write(self, marks: Mapping[str, Mapping[str, str]]) -> None:
        self._marks = marks
        body = {"schema": WRITTEN_SCHEMA, "written": marks}
        write_atomically(self._path, json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True))


def _mark(cell: Cell) -> str:
    # An episode that is run again keeps its key.
    episodes = sorted((e.record.episode_key, e.record.ended_at.isoformat()) for e in cell.episodes)
    return content_hash([cell.experiment.repeats, *map(list, episodes)])[:16]


def _read(path: Path) -> Mapping[str, Mapping[str, str]]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["schema"] != WRITTEN_SCHEMA:
            return {}
        return {str(sink): {str(k): str(v) for k, v in marks.items()} for sink, marks in body["written"].items()}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return {}
