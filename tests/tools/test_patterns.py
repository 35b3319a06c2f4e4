"""The time of a regular expression is judged by its shape, on the side of caution."""

import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from geode.tools.patterns import can_explode, compiled_pattern, degree


@pytest.mark.parametrize(
    ("pattern", "power"),
    [("foo", 0), (r"\d+", 1), (r"def .*\(", 1), ("import.*json|from.*json", 2), ("[(+*]+x", 1), (r"a\+b\*", 0)],
)
def test_repetitions_of_single_characters_are_counted(pattern: str, power: int) -> None:
    """Common searches must stay in this process, where they cost microseconds."""
    assert degree(pattern) == power


@pytest.mark.parametrize("pattern", ["(a|b)+", "(a+)+", r"(.*)\1", r"(?P<x>a+)(?P=x)", "(ab)*", "(?:a?){20}"])
def test_repeated_groups_and_back_references_have_no_known_bound(pattern: str) -> None:
    """These run in a child that can be killed."""
    assert degree(pattern) is None


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "((a)*b)+", "(?:a?){25}a{25}", "a?" * 20 + "a" * 20])
def test_the_well_known_explosions_are_recognised(pattern: str) -> None:
    """A30: a schema with an exponential pattern."""
    assert can_explode(pattern)


@pytest.mark.parametrize("pattern", ["^[a-z]+$", "(ab)+", "(a|b)?", r"^\d{4}-\d{2}$", "[(a+)+]+", r"\(a+\)+"])
def test_plain_patterns_do_not_count_as_explosive(pattern: str) -> None:
    """The twin: refusing everything would be safe and useless."""
    assert not can_explode(pattern)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab.*+?()|[]\\{2}x^", min_size=1, max_size=9))
def test_what_has_a_degree_is_quick_on_its_worst_lines(pattern: str) -> None:
    """The judgement is only worth something if no pattern that it lets through can hang."""
    power = degree(pattern)
    assume(power is not None and not can_explode(pattern))
    try:
        compiled = compiled_pattern(pattern)
    except ValueError:
        return
    assert power is not None
    length = min(400, int(200_000 ** (1 / (power + 1))))
    start = time.process_time()
    for line in ("a" * length, "ab" * (length // 2), "a" * length + "x"):
        compiled.search(line)
    assert time.process_time() - start < 0.5
