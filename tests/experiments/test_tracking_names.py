"""MLflow's keys: a published map that loses no name, and no value that is cut or garbled without a word."""

import hashlib
import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.tracking_names import KEY_CHARS, NOTE_TAG, TEXT_CHARS, key_of, name_of, screen

NAMES = st.text(st.sampled_from("ab_x40/.- @,[]:정\u00e9\n\0\ud800"), min_size=1, max_size=12) | st.text(
    min_size=1, max_size=30
)


@given(NAMES)
def test_a_key_gives_its_name_back(name: str) -> None:
    """Two names never share a key, so no metric is overwritten by another one's."""
    assert name_of(key_of(name)) == name


@given(NAMES)
def test_a_key_is_one_that_mlflow_takes(name: str) -> None:
    """One bad key makes MLflow refuse the whole batch, the good entries with it."""
    key = key_of(name)
    assert re.fullmatch(r"[/\w.\- ]+", key)
    assert posixpath.normpath(key) == key
    assert not key.startswith(("/", ".."))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("pass_rate", "pass_rate"),
        ("model.target", "model.target"),
        ("pass@1", "pass_x40_1"),
        ("a/b", "a/b"),
        ("a/../b", "a_x2f_.._x2f_b"),
        ("_x40_", "_x5f_x40_"),
        ("정확도", "정확도"),
    ],
)
def test_the_published_map(name: str, key: str) -> None:
    """Readers of MLflow's pages look names up by this map; it must not change under them."""
    assert key_of(name) == key


@pytest.mark.parametrize("name", ["", "n" * (KEY_CHARS + 1), "@" * KEY_CHARS])
def test_a_name_without_a_key_is_set_aside_and_the_others_stay(name: str) -> None:
    """A name that cannot be kept whole is reported, not shortened into another one."""
    entries = screen(metrics={name: 1.0, "good": 2.0}, params={name: "p"}, tags={name: "t"})
    assert entries.metrics == {"good": 2.0}
    assert entries.params == entries.tags == {}
    assert [problem.kind.value for problem in entries.set_aside] == ["metric", "param", "tag"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_measurement_is_refused(value: float) -> None:
    """MLflow stores infinity as 1.8e308, and shows NaN as if it had been measured."""
    entries = screen(metrics={"bad": value, "good": 1.0})
    assert entries.metrics == {"good": 1.0}
    assert "no measurement" in str(entries.set_aside[0])


def test_a_long_value_stands_in_an_artifact_and_its_hash_where_it_was_meant_to_be() -> None:
    """MLflow would cut it at 6,000 characters and say nothing."""
    config = "x: 1\n" * 4_000
    entries = screen(params={"config": config, "short": "y" * TEXT_CHARS})
    ((path, text),) = entries.texts.items()
    assert text == config
    assert path in entries.params["config"]
    assert hashlib.sha256(config.encode()).hexdigest() in entries.params["config"]
    assert len(entries.params["config"]) < TEXT_CHARS
    assert entries.params["short"] == "y" * TEXT_CHARS


def test_a_note_may_be_long_since_mlflow_shows_it_whole() -> None:
    """The table of verdicts is for people; a hash in its place would be of no use."""
    entries = screen(tags={NOTE_TAG: "n" * 7_000})
    assert entries.tags == {NOTE_TAG: "n" * 7_000}
    assert not entries.texts


def test_text_that_no_store_can_hold_is_cleaned() -> None:
    """An unpaired surrogate would break the write of everything beside it."""
    assert screen(params={"p": "a\ud800b\0"}).params == {"p": "a\ufffdb\ufffd"}
