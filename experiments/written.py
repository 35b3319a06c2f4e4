"""Which cells each sink has in full, so that an interrupted run writes what is missing and nothing twice."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from geode.records.folder import write_atomically

WRITTEN_FILE = "sinks.json"
WRITTEN_SCHEMA = "geode.sinks/1"


class WrittenCells:
    """The variants of one experiment that each sink has written since their cell last grew.

    Losing this file costs one more write of cells that are there already, and sinks take that.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / WRITTEN_FILE
        self._by_sink = _read(self._path)

    def missing(self, sinks: Sequence[str], variants: Sequence[str]) -> tuple[str, ...]:
        """Return the variants whose cell one of the sinks does not have."""
        return tuple(name for name in variants if any(name not in self._by_sink.get(sink, ()) for sink in sinks))

    def grow(self, variants: Iterable[str]) -> None:
        """Say that these cells are about to get episodes that no sink has."""
        growing = set(variants)
        self._write({sink: names - growing for sink, names in self._by_sink.items()})

    def add(self, written: Mapping[str, Iterable[str]]) -> None:
        """Say what the sinks have written, by sink."""
        sinks = self._by_sink.keys() | written.keys()
        self._write({sink: self._by_sink.get(sink, frozenset()) | set(written.get(sink, ())) for sink in sinks})

    def _write(self, by_sink: Mapping[str, frozenset[str]]) -> None:
        if dict(by_sink) != self._by_sink:
            self._by_sink = dict(by_sink)
            body = {sink: sorted(names) for sink, names in sorted(by_sink.items())}
            write_atomically(self._path, json.dumps({"schema": WRITTEN_SCHEMA, "written": body}, indent=1))


def _read(path: Path) -> dict[str, frozenset[str]]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return {str(sink): frozenset(map(str, names)) for sink, names in body["written"].items()}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return {}
