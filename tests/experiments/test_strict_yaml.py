"""YAML without its silent traps."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from experiments.suites.strict_yaml import parse_yaml

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=10)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(value=VALUES)
def test_plain_values_survive(value: object) -> None:
    """Strictness costs nothing that a task file needs."""
    assert parse_yaml(yaml.safe_dump(value)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", r"the key 'a' stands twice in the mapping at line 1; keep one"),
        ("x:\n- {p: 1, p: 1}\n", r"the key 'p' stands twice in the mapping at line 2"),
        ("a: &x [1]\nb: *x\n", r"an alias refers to line 1; write its content out"),
        ("a: &x [*x]\n", r"an alias refers to line 1"),
        ("a: [1\n", r"line 2"),
        ("a: 2025-99-99\n", r"month must be in"),
        ("a: !!python/object:os.system x\n", r"could not determine a constructor"),
        ("--- 1\n--- 2\n", r"expected a single document"),
        ("[" * 100_000, r"nest"),
    ],
)
def test_a_trap_is_an_error_that_says_where(text: str, message: str) -> None:
    """The last of two equal keys wins silently in plain YAML, and an alias bomb fills the memory."""
    with pytest.raises(ValueError, match=message):
        parse_yaml(text)


def test_an_empty_text_is_nothing() -> None:
    """As in plain YAML; whoever needs a mapping asks for one."""
    assert parse_yaml("# only a comment\n") is None
