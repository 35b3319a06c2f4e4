"""Facts of `geode.canonical`: equal content has one name, and different content never shares one."""

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.canonical import canonical_json, content_hash

SOUND_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | SOUND_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SOUND_TEXT, inner, max_size=4),
    max_leaves=12,
)


def reversed_keys(value: object) -> object:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def exact(value: object) -> object:
    """A form in which 1, 1.0 and True differ, and 0.0 and -0.0, but key order does not count."""
    if isinstance(value, dict):
        return ("dict", frozenset((key, exact(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(exact(item) for item in value))
    return (type(value).__name__, repr(value))


def test_the_form_is_sorted_compact_and_readable() -> None:
    value = {"b": 1, "a": [True, None, 1.5, "정확도"], "": {}}
    assert canonical_json(value) == '{"":{},"a":[true,null,1.5,"정확도"],"b":1}'


def test_the_name_is_the_sha256_of_the_text() -> None:
    """Somebody else can compute it with two standard tools."""
    assert content_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert content_hash({"k": "é"}) == hashlib.sha256('{"k":"é"}'.encode()).hexdigest()


@given(JSON_VALUES)
def test_the_order_of_keys_does_not_count(value: object) -> None:
    assert canonical_json(value) == canonical_json(reversed_keys(value))


@given(JSON_VALUES)
def test_the_text_reads_back_as_the_same_value(value: object) -> None:
    """So two values with one text are one value: nothing is lost that could be confused."""
    assert exact(json.loads(canonical_json(value))) == exact(value)


@given(JSON_VALUES, JSON_VALUES)
def test_different_values_have_different_names(one: object, other: object) -> None:
    assert (content_hash(one) == content_hash(other)) == (exact(one) == exact(other))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_lacks_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"deep": [number]})


@pytest.mark.parametrize("key", [1, True, None, 1.5, ("a",)])
def test_a_key_that_is_no_string_is_refused_at_any_depth(key: object) -> None:
    """json.dumps would turn 1 and "1" into one key."""
    with pytest.raises(TypeError, match="mapping key"):
        canonical_json([{"deep": ({key: 1},)}])


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), 1j])
def test_a_value_that_json_lacks_is_refused_with_what_is_allowed(value: object) -> None:
    with pytest.raises(TypeError, match="only null, booleans"):
        canonical_json({"k": value})


def test_half_a_character_has_no_name() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        content_hash("\ud83c")
