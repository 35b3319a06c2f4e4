"""A tool's schema may come from a stranger; it is bounded, local, and the same for the model and the check."""

import pytest
from pydantic import JsonValue

from geode.tools.schema import BadSchema, compiled

Schema = dict[str, JsonValue]


def with_field(field: JsonValue, **root: JsonValue) -> Schema:
    return {"type": "object", "properties": {"f": field}, **root}


def deep(levels: int) -> Schema:
    part: JsonValue = {"type": "string"}
    for _ in range(levels):
        part = {"type": "object", "properties": {"f": part}}
    return with_field(part)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"f": {"$ref": "#/$defs/F"}}, "$defs": {"F": {"type": "string"}}},
        with_field({"$ref": "#/definitions/a~1b"}, definitions={"a/b": {"type": "string"}}),
        with_field({"$ref": "#"}),
        with_field({"type": ["string", "null"]}),
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        with_field({"type": "string", "pattern": "^[a-z]+$"}, **{"$schema": "http://json-schema.org/draft-07/schema#"}),
        with_field({"type": "string"}, **{"$id": "https://example.com/tool.json"}),
        deep(20),
    ],
)
def test_local_references_unions_and_self_reference_are_usable(schema: Schema) -> None:
    """R45: definitions are kept, and a schema with them is not set aside."""
    assert compiled(schema).schema == schema


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (with_field({"$ref": "http://169.254.169.254/x"}), "only references inside itself"),
        (with_field({"$ref": "file:///etc/passwd"}), "only references inside itself"),
        (with_field({"$dynamicRef": "https://example.com/s#meta"}), "only references inside itself"),
        (with_field({"$ref": "#/$defs/Missing"}), "leads nowhere"),
        (with_field({"$id": "https://example.com/inner", "type": "string"}), "only its root may"),
        (deep(200), "deep"),
        (deep(2_000), "without end"),
        ({"type": "array"}, "must have type 'object'"),
        ({}, "must have type 'object'"),
        (with_field({"type": "strng"}), "properties/f"),
        (with_field({"type": "string", "pattern": "("}), "no regular expression"),
        (with_field({"type": "string", "pattern": "^(a+)+$"}), "exponential"),
        ({"type": "object", "patternProperties": {"^(a|a)*$": {}}}, "exponential"),
        (with_field({"type": "string", "description": "x" * 200_000}), "at most"),
    ],
)
def test_what_fetches_hangs_or_misleads_is_refused(schema: Schema, told: str) -> None:
    """R45, A12, A30: no remote reference, bounded depth, no pattern that takes exponential time."""
    with pytest.raises(BadSchema, match=told) as refused:
        compiled(schema)
    assert len(str(refused.value)) < 500


def test_a_checked_schema_does_not_change_with_the_mapping_it_came_from() -> None:
    """A08: what was shown and approved stays what is checked, whatever its owner does afterwards."""
    field: Schema = {"type": "string"}
    schema = with_field(field)
    checked = compiled(schema)
    field["type"] = "integer"
    assert checked.schema == with_field({"type": "string"})
    assert checked.validator.is_valid({"f": "text"})


def test_equal_schemas_are_compiled_once() -> None:
    """Binding a plan for each episode must cost next to nothing."""
    assert compiled(with_field({"type": "string"})) is compiled(with_field({"type": "string"}))
