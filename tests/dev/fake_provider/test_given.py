"""Facts of what has to come back: seals hold for one text, and those of the double's own making outlive its process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.dev.fake_provider.given import Given
from geode.dev.fake_provider.wire import seal


@given(text=st.text(), hidden=st.text(), other=st.text())
def test_a_seal_holds_for_its_text_alone(text: str, hidden: str, other: str) -> None:
    """In a double that was started anew as well: a session goes on with it."""
    sealed = seal(text, hidden)
    assert Given().is_sealed(sealed, text)
    assert Given().is_sealed(sealed, other) == (other == text)
    assert not Given().is_sealed(sealed[:-1] + "x", text)


def test_hidden_texts_have_different_seals() -> None:
    assert seal("", "one") != seal("", "two")


@pytest.mark.parametrize("made_up", ["", "x", "fake-seal-", "fake-seal-0-0", "fake-seal--"])
def test_a_seal_that_was_made_up_is_none(made_up: str) -> None:
    assert not Given().is_sealed(made_up, "")


def test_a_seal_of_a_script_is_known_once_it_was_given_out() -> None:
    kept = Given()
    assert not kept.is_sealed("abc", "text")
    kept.keep_seal("abc", "text")
    assert kept.is_sealed("abc", "text")
    assert not kept.is_sealed("abc", "other")


def test_what_was_given_out_is_known_whatever_the_order_of_its_keys() -> None:
    kept = Given()
    kept.keep_whole([{"a": 1, "b": [2]}])
    assert kept.is_whole([{"b": [2], "a": 1}])
    assert not kept.is_whole([{"b": [2], "a": 2}])
    kept.keep_before("call", [{"x": 1, "y": 2}])
    assert kept.before("call") == ('{"x":1,"y":2}',)
    assert kept.before("other") == ()
