"""What a judge is shown of a session of our own: its stored messages, and the stages at which calls were refused."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, ToolUse
from geode.records.checkpoint import SessionCheckpoint
from geode.records.copies import copied
from geode.records.folder import SessionFolder
from geode.records.timeline import read_timeline
from judges.view import Step, StepKind


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


def refusals(events: Iterable[Mapping[str, JsonValue]]) -> Mapping[str, str]:
    """Return the stage at which each refused call was refused, by its id: within a session each call has its own."""
    ended = (event for event in events if event.get("kind") == "call_ended")
    return {str(event["call_id"]): str(event["stage"]) for event in ended if event.get("stage")}


def steps_of(messages: Sequence[Message], refused: Mapping[str, str]) -> Iterator[Step]:
    """Yield the steps of a conversation; `refused` is what `refusals` gave."""
    tools = {use.call_id: use.name for message in messages for use in message.tool_uses}
    for message in messages:
        for block in message.blocks:
            match block:
                case TextBlock():
                    yield Step(kind=_by(message.role, block.origin), text=block.text)
                case ToolUse():
                    yield Step(kind=StepKind.CALLED, text=block.arguments, call_id=block.call_id, tool=block.name)
                case ToolResult():
                    yield Step(
                        kind=StepKind.RESULT,
                        text=block.text,
                        call_id=block.call_id,
                        tool=tools.get(block.call_id, ""),
                        is_error=block.is_error,
                        refused=refused.get(block.call_id, ""),
                    )


def _by(role: Speaker, origin: Origin) -> StepKind:
    if role is Speaker.ASSISTANT:
        return StepKind.SAID
    return StepKind.HOST if origin is Origin.HOST else StepKind.PROMPT
