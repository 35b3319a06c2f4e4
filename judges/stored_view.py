"""What a judge is shown of a session that has ended: read from its records, which it leaves as they are."""

from pathlib import Path

from geode.records.checkpoint import SessionCheckpoint
from geode.records.copies import copied
from geode.records.folder import SessionFolder
from geode.records.timeline import read_timeline
from judges.session_view import refusals, steps_of
from judges.view import Step


def steps_of_folder(folder: Path) -> tuple[Step, ...]:
    """Read what happened in the session recorded in `folder`, in order.

    Raises:
        RecordError: if a living process has it open, or its conversation is gone or damaged.
        TimelineNewer: if a newer version wrote its timeline.
    """
    session = SessionFolder(folder)
    with copied(session.checkpoint) as copy:
        checkpoint = SessionCheckpoint.open(copy, None)
        try:
            messages = [placed.message for placed in checkpoint.placed_messages()]
        finally:
            checkpoint.close()
    events = read_timeline(session.timeline) if session.timeline.is_file() else ()
    return tuple(steps_of(messages, refusals(events)))
