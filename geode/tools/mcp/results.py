"""A server's answer as text for the model: nothing of it is fetched, followed or obeyed, and nothing is left empty."""

import json
from collections.abc import Sequence

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

from geode.tools.mcp.plain import plain_text
from geode.tools.spec import ToolOutput

TEXT_CHARS_MAX = 200_000
_LABEL_CHARS_MAX = 500


def output_of(result: CallToolResult) -> ToolOutput:
    """Join the parts of an answer. Structured content is added where the text does not already say it."""
    parts = [part for block in result.content if (part := _part(block)).strip()]
    structured = result.structured_content
    if structured is not None and not _is_said(structured, parts):
        parts.append(json.dumps(structured, ensure_ascii=False))
    text = "\n\n".join(parts) or "(the tool gave no content)"
    if len(text) > TEXT_CHARS_MAX:
        half = TEXT_CHARS_MAX // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
    return ToolOutput(text=text, is_error=result.is_error)


def _part(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=mime, data=data):
            return f"[an image, {_label(mime)}, {_bytes(data)} bytes; it is not shown]"
        case AudioContent(mime_type=mime, data=data):
            return f"[a sound, {_label(mime)}, {_bytes(data)} bytes; it is not played]"
        case ResourceLink(name=name, uri=uri):
            return f"[a link to {_label(name)}: {_label(str(uri))}; it was not fetched]"
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[{_label(str(uri))}]\n{text}"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=blob)):
            return f"[{_label(str(uri))}, {_bytes(blob)} bytes that are no text]"
    return f"[content of a kind that is not known: {type(block).__name__}]"


def _is_said(structured: JsonValue, parts: Sequence[str]) -> bool:
    # Servers wrap what is no object as {"result": ...}, and repeat the content as text.
    values = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        values.append(structured["result"])
    for text in ("\n".join(parts), *parts):
        if text in values:
            return True
        try:
            if json.loads(text) in values:
                return True
        except (ValueError, RecursionError):
            continue
    return False


def _label(text: str) -> str:
    return plain_text(text, _LABEL_CHARS_MAX).replace("\n", " ")


def _bytes(base64_text: str) -> int:
    return len(base64_text) * 3 // 4
