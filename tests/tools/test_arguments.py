"""What the model sends as arguments is untrusted text; what comes out is one object with one meaning."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from geode.tools.arguments import MAX_DEPTH, MAX_TEXT_CHARS, BadArguments, check_arguments, parse_arguments
from geode.tools.spec import ToolSpec
from tests.doubles.tools import CountingTool

PATH_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "start_line": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["text", "raw"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def spec(schema: dict[str, JsonValue]) -> ToolSpec:
    return CountingTool(name="read_file", input_schema=schema).spec


CLEAN_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | CLEAN_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(CLEAN_TEXT, inner, max_size=4),
    max_leaves=12,
)


def outcome(text: str) -> dict[str, JsonValue] | str:
    try:
        return parse_arguments(text).arguments
    except BadArguments as error:
        return str(error)


@given(st.text())
def test_any_text_gives_an_object_or_the_one_error(text: str) -> None:
    """An exception of another kind would end the turn instead of answering the call."""
    assert len(outcome(text)) < 400


@given(st.text(alphabet='{}[]":,\\u0d8f 1eE+-.ntNaIfy', max_size=60))
def test_text_made_of_json_parts_gives_an_object_or_the_one_error(text: str) -> None:
    """Random text hardly ever gets past the first brace; this does."""
    assert len(outcome(text)) < 400


@given(st.dictionaries(CLEAN_TEXT, JSON_VALUES, max_size=6))
def test_an_object_comes_through_unchanged(value: dict[str, JsonValue]) -> None:
    """Bounds and hygiene must not alter what is in order."""
    assert parse_arguments(json.dumps(value)).arguments == value
    assert parse_arguments(json.dumps(value, ensure_ascii=False)).arguments == value


def test_a_key_that_is_named_twice_is_refused() -> None:
    """CASEBOOK, facts measured: the last of two keys wins silently, so a check may see another path than the tool."""
    with pytest.raises(BadArguments, match="'path' more than once"):
        parse_arguments('{"path":"/safe","path":"/etc"}')
    with pytest.raises(BadArguments, match="more than once"):
        parse_arguments('{"a":{"b":1,"\\u0062":2}}')


def test_keys_that_become_equal_by_cleaning_are_refused() -> None:
    """Otherwise cleaning would bring the ambiguity back."""
    with pytest.raises(BadArguments, match="more than once"):
        parse_arguments('{"a\\ud800":1,"a\\ufffd":2}')


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_empty_text_is_an_empty_object_only_where_nothing_is_required(text: str) -> None:
    """R12: an empty string means {} only if the schema has no required field."""
    arguments = parse_arguments(text).arguments
    assert arguments == {}
    assert check_arguments(spec({"type": "object", "properties": {}}), arguments) is None
    assert "missing 'path'" in (check_arguments(spec(PATH_SCHEMA), arguments) or "")


@pytest.mark.parametrize(
    ("text", "named"), [("null", "null"), ('["a"]', "an array of 1"), ("7", "7"), ("true", "true"), ('"x"', "'x'")]
)
def test_what_is_no_object_is_refused_by_its_kind(text: str, named: str) -> None:
    """R12: arguments of the wrong kind are an error result, not the end of the run."""
    with pytest.raises(BadArguments, match=f"must be a JSON object, not {named}"):
        parse_arguments(text)


def test_a_twice_encoded_object_is_decoded_once_and_noted() -> None:
    """R12: it may be decoded once, and this is recorded; a third layer is not guessed at."""
    once = json.dumps({"q": 1})
    parsed = parse_arguments(json.dumps(once))
    assert (parsed.arguments, parsed.twice_encoded) == ({"q": 1}, True)
    assert not parse_arguments(once).twice_encoded
    with pytest.raises(BadArguments, match="must be a JSON object"):
        parse_arguments(json.dumps(json.dumps(once)))


def test_a_cut_call_is_told_that_it_was_cut() -> None:
    """R10: half a call is never repaired, and the model must learn to send less."""
    for text in ('{"path":"a.txt","content":"line 1', '{"path":"a.txt"', '{"path":', "{"):
        with pytest.raises(BadArguments, match="the call was cut"):
            parse_arguments(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
        '{"a":' + "9" * 5_000 + "}",
        '{"a":9223372036854775808}',
        '{"a":-9223372036854775809}',
        '{"a":1e999}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":"' + "x" * MAX_TEXT_CHARS + '"}',
        '{"' + "k" * 2_000 + '":1}',
    ],
)
def test_what_would_exhaust_a_reader_or_a_store_is_refused_in_a_short_text(text: str) -> None:
    """A30 and CASEBOOK, facts measured: 200,000 brackets, 5,000 digits and 2^63 each break another library."""
    with pytest.raises(BadArguments) as refused:
        parse_arguments(text)
    assert len(str(refused.value)) < 400


def test_the_deepest_object_and_the_largest_integers_are_taken() -> None:
    """The bound itself is inside."""
    deep = '{"a":' * (MAX_DEPTH - 1) + "{}" + "}" * (MAX_DEPTH - 1)
    assert parse_arguments(deep).arguments
    assert parse_arguments('{"a":9223372036854775807,"b":-9223372036854775808}').arguments == {
        "a": 2**63 - 1,
        "b": -(2**63),
    }


def test_unpaired_surrogates_and_nul_are_cleaned_once() -> None:
    """R14: half an emoji would break the checkpoint, the timeline and the next request."""
    parsed = parse_arguments('{"q":"\\ud83c and \\u0000","ok":"\\ud83c\\udf78"}')
    assert parsed.arguments == {"q": "\ufffd and \ufffd", "ok": "🍸"}


def test_problems_name_the_place_what_was_expected_and_what_came() -> None:
    """The model corrects its call from this text alone."""
    told = check_arguments(spec(PATH_SCHEMA), {"pth": "a", "path": 3, "start_line": 0})
    assert told is not None
    assert "'path': expected string, got 3" in told
    assert "unknown 'pth' (did you mean 'path'?)" in told
    assert "'start_line': 0 breaks minimum: 1" in told
    assert "expected one of 'text', 'raw', got 'hex'" in (
        check_arguments(spec(PATH_SCHEMA), {"path": "a", "mode": "hex"}) or ""
    )


def test_many_and_huge_problems_stay_short() -> None:
    """An error text is paid for in every later request."""
    told = check_arguments(spec(PATH_SCHEMA), {f"{n}" * 500: "x" * 10_000 for n in range(200)})
    assert told is not None
    assert len(told) <= 600


def test_arguments_that_fit_have_no_problem() -> None:
    """The twin of the tests above."""
    assert check_arguments(spec(PATH_SCHEMA), {"path": "a", "start_line": 2, "mode": "raw"}) is None


def test_a_schema_that_cannot_be_applied_refuses_the_call() -> None:
    """R45: what nobody could check does not run; a schema that refers to itself for ever must not hang or crash."""
    endless = spec({"type": "object", "properties": {"f": {"$ref": "#/properties/f"}}})
    assert "cannot be applied" in (check_arguments(endless, {"f": 1}) or "")
    remote = spec({"type": "object", "properties": {"f": {"$ref": "http://169.254.169.254/x"}}})
    assert "cannot be applied" in (check_arguments(remote, {"f": 1}) or "")


def test_a_pattern_reads_a_bounded_text() -> None:
    """A30: a polynomial pattern over a megabyte would keep the host for hours."""
    slug = spec({"type": "object", "properties": {"s": {"type": "string", "pattern": "^a*a*a*b$"}}})
    assert "at most 2000 characters" in (check_arguments(slug, {"s": "a" * 100_000}) or "")
    assert "does not match" in (check_arguments(slug, {"s": "c"}) or "")
    assert check_arguments(slug, {"s": "aab"}) is None
