"""Overrides as a person reads and writes them."""

import re
import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from experiments.overrides import how_to_quote, nearest, quoted, variant_name
from experiments.records import VariantName

KEYS = st.sampled_from(["hooks", "repair", "limits.rounds", "role/target", "+hooks.a.k", "prompt", "~tools.shell"])
VALUES = st.one_of(
    st.sampled_from(["[]", "[a]", "a", "[a,b]", "none", "0", "'0'", "anthropic/claude", "1e-4", "''"]), st.text()
)


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ((), "default"),
        (("hooks=[]",), "hooks=none"),
        (("hooks=[require_test_run]",), "hooks=require_test_run"),
        (("hooks=[a,b]", "repair=0"), "hooks=a+b.repair=0"),
        (("limits.rounds=5", "repeats=30", "name=x", "suite.tasks=[a]"), "limits.rounds=5"),
        (("role/target=apprentice",), "role.target=apprentice"),
        (("hooks=[a]", "+hooks.a.k=3"), "hooks=a.hooks.a.k=3"),
    ],
)
def test_a_variant_is_named_by_what_makes_it(overrides: tuple[str, ...], name: str) -> None:
    """The name stands in every table; keys that all variants share say nothing there."""
    assert variant_name(overrides) == name


@given(st.lists(st.tuples(KEYS, VALUES).map("=".join), max_size=6))
def test_every_list_of_overrides_has_a_name_that_the_records_take(overrides: list[str]) -> None:
    """A sweep must not fail in its last step because of a letter in a value."""
    name = variant_name(overrides)
    assert TypeAdapter(VariantName).validate_python(name) == name
    assert name == variant_name(list(overrides))


@given(
    st.sampled_from(["hooks", "limits.rounds", "role.target"]), st.lists(VALUES, min_size=2, max_size=2, unique=True)
)
def test_two_values_of_one_key_have_two_names(key: str, values: list[str]) -> None:
    """Two scaffolds under one name would be one cell. Quotes, and the brackets of a list of one, change nothing."""
    one, two = (re.sub(r"^\[([\w-]+)\]$|^'(.*)'$|^\"(.*)\"$", r"\1\2\3", value) for value in values)
    if one != two:
        assert variant_name([f"{key}={values[0]}"]) != variant_name([f"{key}={values[1]}"])


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.text(alphabet="\\'\"정 ,#="))
def test_quoted_text_is_read_back_unchanged(text: str) -> None:
    """What a message tells the user to type must be right for every text, also with quotes and backslashes."""
    assert OverridesParser.create().parse_override(f"question={quoted(text)}").value() == text


@pytest.mark.parametrize("text", ["정확도", "a#b", "which, if any?", "it's", '100 $ "now"', "a\\b"])
def test_the_advice_on_quoting_survives_the_shell(text: str) -> None:
    """The advice is for a shell: pasted there, it has to reach Hydra as the same text."""
    advice = how_to_quote(f"question={text}").split("shell: ", 1)[1]
    (argument,) = shlex.split(advice)
    assert OverridesParser.create().parse_override(argument).value() == text


def test_the_nearest_name_comes_first_and_all_names_follow() -> None:
    """A typo is mended by one glance; a wrong idea needs the list."""
    assert nearest("hook", ["hooks", "repair"]) == "; did you mean 'hooks'? There are hooks, repair"
    assert nearest("zzz", ["hooks", "repair"]) == "; there are hooks, repair"
    assert nearest("zzz", []) == "; there are none"
