"""Which schemas a model can be held to while it writes."""

import pytest

from geode.llm.strict_schema import allows_strict

CLOSED = {"additionalProperties": False}
ONE = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], **CLOSED}


@pytest.mark.parametrize(
    "schema",
    [
        ONE,
        {"type": "object", "properties": {}, **CLOSED},
        {
            "type": "object",
            "properties": {"a": ONE, "b": {"type": ["integer", "null"]}},
            "required": ["b", "a"],
            **CLOSED,
        },
        {"type": "object", "properties": {"a": {"type": "array", "items": ONE}}, "required": ["a"], **CLOSED},
        {"type": "object", "properties": {"a": {"anyOf": [ONE, {"type": "null"}]}}, "required": ["a"], **CLOSED},
        {"type": "object", "properties": {"a": {"enum": ["x", "y"], "description": "d"}}, "required": ["a"], **CLOSED},
    ],
)
def test_closed_objects_with_all_properties_required_allow_it(schema: object) -> None:
    assert allows_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "object"},
        {"type": "array", "items": ONE},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": [], **CLOSED},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}, "required": ["a"], **CLOSED},
        {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"], **CLOSED},
        {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"], **CLOSED},
        {"type": "object", "properties": {"a": {}}, "required": ["a"], **CLOSED},
        {"type": "object", "properties": {"a": {"$ref": "#/x"}}, "required": ["a"], **CLOSED},
        {"type": "object", "properties": {"a": {"type": "date"}}, "required": ["a"], **CLOSED},
    ],
)
def test_one_that_the_provider_would_refuse_does_not(schema: object) -> None:
    """A refused schema refuses every request of the session."""
    assert not allows_strict(schema)
