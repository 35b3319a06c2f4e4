"""The target's own conversation in an Inspect log: what an auditor's sample asked of it, and what it answered.

A sample's `messages` are the auditor's. The target is asked by model calls of the role `target`, whose messages stand
once in `events_data`, as ranges of it, or in older logs in the event itself.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from analysis.importers.inspect_records import Message, Sample

TARGET = "target"


def target_conversation(sample: Sample) -> tuple[Message, ...]:
    """Return what the target was asked last, with all before it, and its answer. Empty if it was never asked.

    What the auditor took back is not in it: it is the conversation that the last answer stands in.
    """
    calls = [event for event in _objects(sample.body.get("events")) if _asks_target(event)]
    if not calls:
        return ()
    last = calls[-1]
    asked = [*_objects(last.get("input")), *_referred(sample.body.get("events_data"), last.get("input_refs"))]
    output = last.get("output")
    choices = _objects(output.get("choices")) if isinstance(output, dict) else ()
    answers = [choice["message"] for choice in list(choices)[:1] if isinstance(choice.get("message"), dict)]
    return tuple(sample.message(item) for item in [*asked, *answers] if isinstance(item, dict))


def _asks_target(event: Mapping[str, JsonValue]) -> bool:
    return event.get("event") == "model" and event.get("role") == TARGET


def _referred(data: JsonValue, ranges: JsonValue) -> Iterator[dict[str, JsonValue]]:
    pool = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(pool, list) or not isinstance(ranges, list):
        return
    for bounds in ranges:
        match bounds:
            case [int(begin), int(end)]:
                yield from _objects(pool[begin:end])


def _objects(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))
