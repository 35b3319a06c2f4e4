"""Which JSON schemas a provider can hold a model to while it writes (OpenAI's strict mode); the others it refuses."""

from collections.abc import Mapping
from typing import Final

# https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas, without what not all models take.
_KEYWORDS: Final = frozenset(
    {
        "type",
        "description",
        "title",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
    }
)
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})


def allows_strict(schema: object) -> bool:
    """Return whether `schema` is of the subset: closed objects, all of whose properties are required."""
    return isinstance(schema, Mapping) and schema.get("type") == "object" and _is_strict(schema)


def _is_strict(schema: object) -> bool:
    if not isinstance(schema, Mapping) or not schema or not schema.keys() <= _KEYWORDS:
        return False
    types = schema.get("type", [])
    if not {types} <= _TYPES if isinstance(types, str) else not set(types) <= _TYPES:
        return False
    properties = schema.get("properties", {})
    if "object" in types or properties:
        required = schema.get("required", [])
        if schema.get("additionalProperties") is not False or set(required) != set(properties):
            return False
    if "array" in types and "items" not in schema:
        return False
    parts = [*properties.values(), *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    return all(_is_strict(part) for part in parts)
