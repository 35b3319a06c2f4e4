"""One process at a time writes to the sinks, and each is told when what it knows of them has grown old."""

from pathlib import Path

import filelock
import pytest

from experiments.sink_turns import SinksBusy, SinkTurns
from geode.config.paths import StateRoot


def test_a_turn_tells_whether_another_had_one_in_between(tmp_path: Path) -> None:
    """A sink that remembers what is stored must forget it then, and only then: finding out takes seconds."""
    one, two = SinkTurns(StateRoot(tmp_path)), SinkTurns(StateRoot(tmp_path))
    told = []
    for turns in (one, one, two, two, one):
        with turns.turn() as taken_over:
            told.append(taken_over)
    assert told == [True, False, True, False, True]


def test_a_turn_ends_with_an_error(tmp_path: Path) -> None:
    """A sink that fails keeps nobody else from writing."""
    with pytest.raises(ZeroDivisionError), SinkTurns(StateRoot(tmp_path)).turn():
        raise ZeroDivisionError
    with SinkTurns(StateRoot(tmp_path)).turn(give_up=lambda: True):
        pass


def test_waiting_for_a_turn_can_be_given_up(tmp_path: Path) -> None:
    """A command that is stopped does not wait for another one's work."""
    root = StateRoot(tmp_path)
    with (
        filelock.FileLock(root.sinks_lock),  # as another process would hold it
        pytest.raises(SinksBusy, match=r"sinks\.lock"),
        SinkTurns(root).turn(give_up=lambda: True),
    ):
        pass
