"""Typed reading of foreign JSON: a wrong value is reported, never converted."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.fields import Fields

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize(
    ("getter", "value"),
    [
        ("integer", True),
        ("integer", 1.0),
        ("integer", "1"),
        ("integer", 2**63),
        ("number", "n/a"),
        ("number", float("nan")),
        ("number", float("inf")),
        ("number", 10**400),
        ("number", False),
        ("flag", 1),
        ("text", 1),
        ("text", ["a"]),
        ("moment", "2030-01-01T00:00:00"),
        ("moment", "yesterday"),
    ],
)
def test_a_value_of_another_type_is_odd(getter: str, value: object) -> None:
    """A default, or a conversion, in place of a measurement is a lie."""
    fields = Fields({"x": value})
    assert getattr(fields, getter)("x") is None
    assert [(oddity.name, oddity.missing) for oddity in fields.oddities] == [("x", False)]


def test_what_fits_is_given_and_null_is_nothing_odd() -> None:
    """null is a value of these formats: an aborted attempt has no turn count."""
    fields = Fields({"i": 3, "n": 3, "f": False, "t": "a\0b", "m": "2030-01-01T00:00:00.000Z", "null": None})
    assert (fields.integer("i"), fields.number("n"), fields.flag("f"), fields.text("t")) == (3, 3.0, False, "a\ufffdb")
    assert fields.moment("m") == datetime(2030, 1, 1, tzinfo=UTC)
    assert fields.integer("null") is None
    assert fields.oddities == []


def test_an_object_that_is_not_there_is_reported_once() -> None:
    """Its ten fields are missing too, and saying so ten times hides the one thing that happened."""
    fields = Fields({"usage": [], "time": {"start": 1}})
    assert fields.nested("usage").integer("tokens") is None
    assert fields.nested("time").text("start") is None
    assert fields.nested("gone").text("x") is None
    assert [oddity.text for oddity in fields.oddities] == [
        "usage is [], not an object",
        "time.start is 1, not a string",
        "gone is missing",
    ]


@given(st.dictionaries(st.sampled_from("xyz"), JSON))
def test_no_value_makes_a_getter_raise(body: dict[str, object]) -> None:
    """An importer reads a hundred thousand of them; one strange one must not end it."""
    fields = Fields(body)
    for getter in (fields.text, fields.flag, fields.integer, fields.number, fields.moment, fields.nested):
        getter("x")
