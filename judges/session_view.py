"""What a judge is shown of a session of our own: its messages, and the stages at which calls were refused."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, ToolUse
from judges.view import Step, StepKind


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
