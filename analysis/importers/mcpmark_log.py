"""Reads one MCPMark execution log: a JSON array of calls, each result being JSON inside a string."""

import json
from dataclasses import dataclass

from pydantic import JsonValue

from analysis.fields import Fields
from geode.redaction import clean_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One entry of a log. `is_error` is the server's flag; None where the entry does not have it."""

    call_id: str | None
    tool: str | None
    arguments: str | None
    is_error: bool | None
    result: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The calls in order. `torn` says where the array breaks off, `odd` what is not as the format says, by entry."""

    calls: tuple[Call, ...]
    torn: str | None = None
    odd: tuple[str, ...] = ()


def read_log(text: str) -> Log:
    """Read a log; of a broken one, the entries before the break."""
    entries, torn = _entries(text)
    odd: list[str] = []
    calls = tuple(_call(entry, f"entry {number}", odd) for number, entry in enumerate(entries, start=1))
    return Log(calls=calls, torn=torn, odd=tuple(odd))


def _entries(text: str) -> tuple[list[JsonValue], str | None]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        found = _entries_before_the_break(text)
        return found, f"the log is broken ({error}); {len(found)} whole entries before the break are kept"
    if isinstance(whole, list):
        return whole, None
    return [], f"the log holds {type(whole).__name__}, not an array; nothing of it is kept"


def _entries_before_the_break(text: str) -> list[JsonValue]:
    decoder, found = json.JSONDecoder(), list[JsonValue]()
    at = len(text) - len(text.lstrip())
    if not text.startswith("[", at):
        return found
    while True:
        at += 1  # past the opening bracket, or the comma after an entry
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found
        found.append(entry)
        at += len(text[at:]) - len(text[at:].lstrip())
        if not text.startswith(",", at):
            return found


def _call(entry: JsonValue, place: str, odd: list[str]) -> Call:
    if not isinstance(entry, dict):
        odd.append(f"{place} is {type(entry).__name__}, not an object")
        return Call(call_id=None, tool=None, arguments=None, is_error=None, result=None)
    fields = Fields(entry)
    outer = fields.nested("result").text("result")
    result, is_error = _result(outer, place, odd)
    call = Call(
        call_id=fields.text("tool_use_id"),
        tool=fields.text("tool"),
        arguments=clean_text(json.dumps(fields.nested("input").body, ensure_ascii=False)),
        is_error=is_error,
        result=result,
    )
    odd += [f"{place}: {oddity.text}" for oddity in fields.oddities]
    return call


def _result(outer: str | None, place: str, odd: list[str]) -> tuple[str | None, bool | None]:
    """Return the text of a result and its error flag. A result that is no JSON is kept as the text it is."""
    if outer is None:
        return None, None
    try:
        body = json.loads(outer)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        odd.append(f"{place}: the result string holds no JSON object; kept as text")
        return outer, None
    fields = Fields(body)
    is_error = fields.flag("isError")
    odd += [f"{place}: result {oddity.text}" for oddity in fields.oddities]
    content = body.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    # Parts that are no text (GitHub's `resource`) repeat what the text part names; the archive keeps them.
    texts = [text for part in parts if part.get("type") == "text" and isinstance(text := part.get("text"), str)]
    return clean_text("\n".join(texts)), is_error
