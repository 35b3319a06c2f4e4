"""An answer becomes text: every part of it is named, nothing is fetched, and nothing is empty."""

import pytest
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import JsonValue

from geode.tools.mcp.results import TEXT_CHARS_MAX, output_of


def text_of(*content: ContentBlock, structured: JsonValue = None) -> str:
    return output_of(CallToolResult(content=list(content), structured_content=structured)).text


def test_parts_are_joined_and_what_is_no_text_is_named() -> None:
    """A12: a link of a server's is shown, and nothing asks for what is behind it."""
    text = text_of(
        TextContent(text="one"),
        TextContent(text="two"),
        ImageContent(data="aGVsbG8=", mime_type="image/png"),
        AudioContent(data="aGVsbG8=", mime_type="audio/wav"),
        ResourceLink(name="meta", uri="http://169.254.169.254/latest"),
        EmbeddedResource(resource=TextResourceContents(uri="file:///a", text="inside")),
        EmbeddedResource(resource=BlobResourceContents(uri="file:///b", blob="aGVsbG8=")),
    )
    assert text.split("\n\n") == [
        "one",
        "two",
        "[an image, image/png, 6 bytes; it is not shown]",
        "[a sound, audio/wav, 6 bytes; it is not played]",
        "[a link to meta: http://169.254.169.254/latest; it was not fetched]",
        "[file:///a]\ninside",
        "[file:///b, 6 bytes that are no text]",
    ]


@pytest.mark.parametrize("content", [[], [TextContent(text="")], [TextContent(text=" \n")]])
def test_an_empty_answer_is_said_to_be_empty(content: list[ContentBlock]) -> None:
    """No provider takes an empty result."""
    assert text_of(*content) == "(the tool gave no content)"


@pytest.mark.parametrize(
    ("said", "structured", "text"),
    [
        ('{"rows": [1]}', {"rows": [1]}, '{"rows": [1]}'),
        ("5", {"result": 5}, "5"),
        ("plain", {"result": "plain"}, "plain"),
        ("two rows", {"rows": [1, 2]}, 'two rows\n\n{"rows": [1, 2]}'),
    ],
)
def test_structured_content_is_added_where_the_text_does_not_say_it(
    said: str, structured: JsonValue, text: str
) -> None:
    """Servers repeat their content in both forms; the model should pay for it once."""
    assert text_of(TextContent(text=said), structured=structured) == text
    assert text_of(structured=structured) != "(the tool gave no content)"


def test_an_error_of_the_tool_is_an_error_result() -> None:
    """The tool ran and says that it failed: that is an end, and the model may act on it."""
    output = output_of(CallToolResult(content=[TextContent(text="disk full")], is_error=True))
    assert (output.text, output.is_error) == ("disk full", True)


def test_a_huge_answer_is_cut_in_the_middle_with_the_count() -> None:
    """A30."""
    text = text_of(TextContent(text="a" * TEXT_CHARS_MAX), TextContent(text="b" * TEXT_CHARS_MAX))
    assert len(text) < TEXT_CHARS_MAX + 100
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "[... 200002 characters left out ...]" in text
