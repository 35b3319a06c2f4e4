"""What a server calls an input schema becomes one that is safe to show and to check, or costs only its own tool."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from geode.tools.mcp.schemas import cleaned_schema
from geode.tools.schema import BadSchema, compiled


def accepts(schema: dict[str, JsonValue], arguments: JsonValue) -> bool:
    return bool(compiled(schema).validator.is_valid(arguments))


def test_definitions_stay_beside_the_references_to_them() -> None:
    """R45: a `$ref` whose definition was dropped makes every request fail."""
    raw: JsonValue = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"f": {"$ref": "#/$defs/F"}},
        "$defs": {"F": {"type": "string", "x-internal": True}},
    }
    schema = cleaned_schema(raw)
    assert schema["$defs"] == {"F": {"type": "string"}}
    assert "$schema" not in schema
    assert accepts(schema, {"f": "text"})
    assert not accepts(schema, {"f": 1})


def test_a_schema_may_refer_to_itself() -> None:
    """Trees are honest arguments; their depth is bounded where arguments are read."""
    schema = cleaned_schema({"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}})
    assert accepts(schema, {"child": {"child": {"n": 1}}})
    assert not accepts(schema, {"child": {"n": "1"}})


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (
            {"type": "object", "properties": {"f": {"$ref": "http://169.254.169.254/x"}}},
            "only references inside itself",
        ),
        ({"type": "object", "properties": {"f": {"$ref": "file:///etc/passwd"}}}, "only references inside itself"),
        ({"type": "object", "properties": {"f": {"$ref": "#/$defs/Gone"}}}, "leads nowhere"),
        ({"$ref": "http://169.254.169.254/x"}, "not inside it"),
        ({"$ref": "#"}, "not inside it"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "without end"),
        ({"type": "object", "properties": {"f": {"$dynamicRef": "#x"}}}, "refers to another place"),
        ({"type": "string"}, "its root has type"),
        ({"not": {"type": "object"}}, "negation"),
        ({"type": "object", "properties": {"f": "string"}}, "no schema"),
        ({"type": "object", "properties": {"f": {"type": "strnig"}}}, "not valid under any"),
        ({"type": "object", "properties": {"f": {"description": "x", "enum": "y" * 200_000}}}, "characters"),
        (None, "no object"),
        ([], "no object"),
    ],
)
def test_what_cannot_be_made_safe_is_refused_with_the_reason(raw: JsonValue, told: str) -> None:
    """A12 and R45: nothing is fetched, and nothing is guessed."""
    with pytest.raises(BadSchema) as refused:
        cleaned_schema(raw)
    assert told in str(refused.value)


def test_depth_is_bounded() -> None:
    """R45: a schema nested 2,000 deep must not end the process."""
    raw: JsonValue = {"type": "string"}
    for _ in range(300):
        raw = {"type": "array", "items": raw}
    with pytest.raises(BadSchema, match="nested more than"):
        cleaned_schema({"type": "object", "properties": {"x": raw}})


def test_a_root_that_combines_becomes_one_object() -> None:
    """Providers refuse `anyOf` at the root; the server itself still checks which branch was meant."""
    schema = cleaned_schema(
        {
            "anyOf": [{"properties": {"path": {"type": "string"}}, "required": ["path"]}, {"$ref": "#/$defs/ById"}],
            "allOf": [{"properties": {"why": {"type": "string"}}, "required": ["why"]}],
            "$defs": {"ById": {"type": "object", "properties": {"id": {"type": "integer"}}}},
            "additionalProperties": False,
        }
    )
    assert schema["type"] == "object"
    assert not {"anyOf", "allOf", "additionalProperties"} & schema.keys()
    assert accepts(schema, {"id": 1, "why": "x"})
    assert not accepts(schema, {"id": "one", "why": "x"})
    assert not accepts(schema, {"id": 1})


def test_a_root_that_is_a_reference_is_what_it_refers_to() -> None:
    """Generators of schemas write it so."""
    schema = cleaned_schema({"$ref": "#/definitions/In", "definitions": {"In": {"type": "object", "required": ["a"]}}})
    assert "$ref" not in schema
    assert not accepts(schema, {})


def test_words_of_older_drafts_and_patterns_of_other_dialects_are_no_reason_to_lose_a_tool() -> None:
    """What is left out is checked by the server; what would hang the host is never run here."""
    schema = cleaned_schema(
        {
            "type": ["object", "null"],
            "properties": {
                "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
                "word": {"type": "string", "pattern": r"^\p{L}+$"},
                "bomb": {"type": "string", "pattern": r"^(a+)+$"},
                "code": {"type": "string", "pattern": r"^[A-Z]{3}$"},
            },
        }
    )
    assert accepts(schema, {"age": 0, "pair": ["a", 1], "word": "ü", "bomb": "a" * 40 + "b"})
    assert not accepts(schema, {"code": "abc"})
    assert not accepts(schema, {"pair": [1, "a"]})


def test_texts_lose_what_cannot_be_seen_and_values_stay_as_they_are() -> None:
    """A06: a description can hold orders in letters that nobody sees. A value must stay byte for byte."""
    schema = cleaned_schema(
        {
            "type": "object",
            "properties": {"a": {"description": "x\u200b\U000e0041\u202ey" + "z" * 5000, "enum": ["\u200b"]}},
        }
    )
    properties = schema["properties"]
    assert isinstance(properties, dict)
    part = properties["a"]
    assert isinstance(part, dict)
    assert str(part["description"]).startswith("xyz")
    assert len(str(part["description"])) < 2_100
    assert part["enum"] == ["\u200b"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "$ref", "anyOf", "required", "enum", "$defs", "pattern", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_comes_is_cleaned_or_refused_and_cleaning_is_settled(raw: JsonValue) -> None:
    """A server's list is read without a crash, and what was cleaned once stays as it is."""
    try:
        schema = cleaned_schema(raw)
    except BadSchema:
        return
    assert cleaned_schema(json.loads(json.dumps(schema))) == schema
    compiled(schema).validator.is_valid({})
