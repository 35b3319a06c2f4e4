"""A server's input schema made safe: known keywords only, references inside itself, bounded in depth and size.

What no provider takes, or what can hang the host, is left out, and the server still checks it for itself. What would
change the meaning if it were left out makes the schema unusable. One copy is both shown to the model and checked.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from geode.redaction import clean_text
from geode.tools.mcp.plain import plain_text
from geode.tools.patterns import can_explode, compiled_pattern
from geode.tools.schema import MAX_DEPTH, BadSchema, compiled

TEXT_CHARS_MAX = 2_000
_COUNTS = frozenset(("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"))
_VALUES = _COUNTS | {
    "const",
    "default",
    "enum",
    "format",
    "maximum",
    "minimum",
    "multipleOf",
    "uniqueItems",
    "type",
    "$ref",
}
_TEXTS = frozenset(("title", "description"))
_BOUNDS = frozenset(("exclusiveMaximum", "exclusiveMinimum"))
_SCHEMAS = frozenset(("additionalProperties", "contains", "items", "not", "propertyNames"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAPS = frozenset(("properties", "$defs", "definitions"))
# Leaving these out would make a reference mean something else.
_REFUSED = frozenset(("$dynamicRef", "$recursiveRef"))
_COMBINED = ("allOf", "anyOf", "oneOf")
_REFERENCES_MAX = 8


def cleaned_schema(raw: JsonValue) -> dict[str, JsonValue]:
    """Return a copy of `raw` that can be bound.

    Raises:
        BadSchema: if it cannot be made safe.
    """
    if not isinstance(raw, dict):
        raise BadSchema("it is no object")
    schema = _cleaned(raw, 0)
    assert isinstance(schema, dict)
    return compiled(_as_object(schema)).schema


def _cleaned(part: JsonValue, depth: int) -> JsonValue:
    if isinstance(part, bool):
        return part
    if not isinstance(part, dict):
        raise BadSchema(f"a part of it is no schema ({part!r:.40})")
    if depth > MAX_DEPTH:
        raise BadSchema(f"it is nested more than {MAX_DEPTH} deep")
    clean: dict[str, JsonValue] = {}
    for key, value in part.items():
        if key in _REFUSED:
            raise BadSchema(f"it refers to another place by {key!r}")
        word = "prefixItems" if key == "items" and isinstance(value, list) else key  # as an older draft has it
        if _is_plain(word, value):
            clean[word] = value
        elif word in _TEXTS and isinstance(value, str):
            clean[word] = plain_text(value, TEXT_CHARS_MAX)
        elif word in _SCHEMAS:
            clean[word] = _cleaned(value, depth + 1)
        elif word in _LISTS and isinstance(value, list) and value:
            clean[word] = [_cleaned(item, depth + 1) for item in value]
        elif word in _MAPS and isinstance(value, dict):
            clean[word] = {clean_text(name): _cleaned(item, depth + 1) for name, item in value.items()}
    return clean


def _is_plain(word: str, value: JsonValue) -> bool:
    """Whether the value can stand as it is."""
    if word in _BOUNDS:
        return not isinstance(value, bool)  # which it is in an older draft
    if word == "required":
        return isinstance(value, list)
    if word == "pattern":
        return isinstance(value, str) and _is_harmless(value)
    return word in _VALUES


def _is_harmless(pattern: str) -> bool:
    try:
        compiled_pattern(pattern)
    except ValueError:
        return False  # of another dialect
    return not can_explode(pattern)


def _as_object(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Give the root the one form that every provider takes: an object, with nothing combined or referred to at its top.

    Which branch is meant, only a call shows: their properties are joined, and their other demands are the server's to
    check.
    """
    root = {**schema, **_target(schema, schema)}
    kind = root.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise BadSchema(f"its root has type {kind!r:.40}, and arguments are an object")
    properties, required = dict(_mapping(root.get("properties"))), _texts(root.get("required"))
    for keyword in _COMBINED:
        branches = root.pop(keyword, None)
        for branch in branches if isinstance(branches, list) else ():
            meant = _target(_mapping(branch), schema)
            properties = {**_mapping(meant.get("properties")), **properties}
            if keyword == "allOf":
                required += [name for name in _texts(meant.get("required")) if name not in required]
            root.pop("additionalProperties", None)
    if "not" in root:
        raise BadSchema("its root is a negation")
    root.pop("$ref", None)
    return {**root, "type": "object", "properties": properties, "required": list[JsonValue](required)}


def _target(part: Mapping[str, JsonValue], root: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """What `part` refers to inside `root`, or `part` itself."""
    for _ in range(_REFERENCES_MAX):
        if not isinstance(reference := part.get("$ref"), str):
            return part
        found: JsonValue = dict(root)
        for step in reference.removeprefix("#").strip("/").split("/"):
            found = _mapping(found).get(step.replace("~1", "/").replace("~0", "~"))
        if not reference.startswith("#/") or not isinstance(found, dict):
            raise BadSchema(f"it refers to {reference!r:.80}, which is not inside it")
        part = found
    raise BadSchema("its root refers to itself without end")


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _texts(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
