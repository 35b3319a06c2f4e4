"""The timeline: everything that happened in a session, refused calls included. Observation, never state."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from geode.clock import Clock, rfc3339
from geode.events import Event, event_fields
from geode.records.jsonl import JsonLines, read_lines

TIMELINE_SCHEMA = "geode.timeline/1"


class TimelineNewer(Exception):  # noqa: N818  (named by what happened)
    """The timeline was written by a newer version."""


class SessionTimeline:
    """Appends events to `timeline.jsonl`. It is an observer: call it with an event."""

    def __init__(self, path: Path, session_id: str, clock: Clock) -> None:
        self._clock = clock
        self._lines = JsonLines(
            path, {"schema": TIMELINE_SCHEMA, "session_id": session_id, "opened_at": rfc3339(clock.now())}
        )

    def __call__(self, event: Event) -> None:
        """Append `event`."""
        self._lines.append({"at": rfc3339(self._clock.now()), **event_fields(event)})

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def read_timeline(path: Path) -> Iterator[dict[str, JsonValue]]:
    """Yield the events of a timeline in order. A line that cannot be read comes as a `notice` about it.

    Raises:
        TimelineNewer: if its schema is not known.
    """
    for line in read_lines(path):
        if line.body is None:
            yield {"seq": None, "at": None, "kind": "notice", "about": "timeline", "text": line.problem}
        elif "schema" in line.body:
            if line.body["schema"] != TIMELINE_SCHEMA:
                raise TimelineNewer(
                    f"{path} has schema {line.body['schema']!r}, this version reads {TIMELINE_SCHEMA!r}"
                )
        else:
            yield line.body
