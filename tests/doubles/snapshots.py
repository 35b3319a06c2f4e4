"""Requests as the loop makes them, for tests of what stands behind `LLMAdapter`."""

from collections.abc import Sequence

from geode.llm.messages import Message, ModelResponse, Speaker, StepSnapshot, TextBlock, ToolResult, ToolSchema

READ = ToolSchema(
    name="read_file",
    description="Reads a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def asked(*said: str | Message, tools: Sequence[ToolSchema] = (), system: str = "") -> StepSnapshot:
    """A request. Of texts every other one is the model's."""
    speakers = (Speaker.USER, Speaker.ASSISTANT)
    messages = tuple(
        text if isinstance(text, Message) else Message(role=speakers[at % 2], blocks=(TextBlock(text=text),))
        for at, text in enumerate(said or ("hello",))
    )
    return StepSnapshot(
        session_id="s",
        turn=1,
        round=1,
        model="zai/glm-5.3",
        system=system,
        messages=messages,
        tools=tuple(tools),
        plan_hash="",
        plan_generation=0,
        max_output_tokens=1_000,
        history_digest="",
    )


def answered(response: ModelResponse) -> Message:
    """A response as the message that the history keeps."""
    return Message(role=Speaker.ASSISTANT, blocks=response.blocks, raw=response.raw)


def results(response: ModelResponse, text: str = "it holds nothing", *, is_error: bool = False) -> Message:
    """The results of all calls of a response."""
    uses = answered(response).tool_uses
    blocks = tuple(ToolResult(call_id=use.call_id, text=text, is_error=is_error) for use in uses)
    return Message(role=Speaker.USER, blocks=blocks)
