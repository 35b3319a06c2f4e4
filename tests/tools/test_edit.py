"""An edit is exact and single, and a miss tells the model where to look."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.tools.edit import replaced_once
from geode.tools.spec import ToolFailed

SOURCE = b"def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"


def test_one_occurrence_is_replaced() -> None:
    """Across lines, too."""
    assert replaced_once(SOURCE, "sub(a, b):\n    return a - b", "sub(a, b):\n    return 0", "x").endswith(
        b"return 0\n"
    )


def test_several_occurrences_are_counted_with_their_lines() -> None:
    """Changing the first one would be a guess."""
    with pytest.raises(ToolFailed, match=r"old occurs 2 times in 'x\.py' \(lines 2, 6\)"):
        replaced_once(SOURCE, "return a - b", "return a + b", "x.py")


def test_occurrences_that_overlap_are_two() -> None:
    """'aa' stands at two places of 'aaa'; which one is meant cannot be known."""
    with pytest.raises(ToolFailed, match="old occurs 2 times"):
        replaced_once(b"aaa", "aa", "b", "x")


def test_a_miss_names_the_nearest_line() -> None:
    """A blank too few is the most common miss."""
    with pytest.raises(ToolFailed, match=r"occurs 0 times in 'x'.*; line 2 is nearest: '    return a - b'"):
        replaced_once(SOURCE, "   return a -b", "y", "x")
    with pytest.raises(ToolFailed, match=r"must match exactly$"):
        replaced_once(SOURCE, "nothing of the kind, 123456789", "y", "x")


def test_a_file_with_other_line_ends_says_so() -> None:
    """The model cannot see them in what it read."""
    with pytest.raises(ToolFailed, match=r"ends its lines with \\r\\n"):
        replaced_once(b"a\r\nb\r\n", "a\nb", "c", "x")


def test_nothing_to_replace_is_refused() -> None:
    """An edit that changes nothing would be reported as one that did."""
    with pytest.raises(ToolFailed, match="nothing to replace"):
        replaced_once(SOURCE, "add", "add", "x")
    with pytest.raises(ToolFailed, match="nothing to replace"):
        replaced_once(SOURCE, "", "x", "x")


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    """R17: reading with replacement and writing back would destroy them."""
    assert replaced_once(b"caf\xe9 = 1\n", "= 1", "= 2", "x") == b"caf\xe9 = 2\n"


def test_a_miss_in_a_large_file_is_told_in_bounded_time() -> None:
    """A30: looking for the nearest line must not cost more than the edit. The test's own limit is the assertion."""
    with pytest.raises(ToolFailed, match="occurs 0 times"):
        replaced_once(b"abcdefgh ijkl " * 20 * 20_000, "abcdefgx ijkl" * 50, "y", "x")


@given(st.text(max_size=30), st.text(min_size=1, max_size=5), st.text(max_size=5), st.text(max_size=30))
def test_a_unique_text_is_replaced_and_all_else_kept(before: str, old: str, new: str, after: str) -> None:
    """The law of an edit."""
    content = (before + old + after).encode("utf-8", "replace")
    old, new = old.encode("utf-8", "replace").decode(), new.encode("utf-8", "replace").decode()
    places = [at for at in range(len(content)) if content.startswith(old.encode(), at)]
    if len(places) == 1 and old != new:
        edited = replaced_once(content, old, new, "x")
        assert edited == content[: places[0]] + new.encode() + content[places[0] + len(old.encode()) :]
    else:
        with pytest.raises(ToolFailed):
            replaced_once(content, old, new, "x")
