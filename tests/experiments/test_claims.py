"""Claims between processes: one holder a name, whatever the others try, and none of a process that is dead."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.claims import Claims, Name, block_name, episode_name
from geode.config.paths import StateRoot
from tests.doubles.claimer import Claimer

KEY = "0f" * 32
STEPS = st.lists(
    st.tuples(st.sampled_from(["here", "there"]), st.sampled_from(["take", "release", "look"]), st.integers(0, 2)),
    max_size=40,
)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Claims]:
    claims = Claims(StateRoot(tmp_path))
    yield claims
    claims.close()


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Claimer]:
    with Claimer(tmp_path) as claimer:
        yield claimer


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_a_name_has_one_holder_at_a_time(here: Claims, there: Claimer, steps: list[tuple[str, str, int]]) -> None:
    """Whatever two processes do in whatever order: who holds a name keeps it until it is released."""
    sides, holder = {"here": here, "there": there}, dict[Name, str]()
    names = [episode_name(KEY), block_name("mine", "csv", 0, 1), block_name("mine", "csv", 0, 2)]
    for side, what, index in steps:
        name = names[index]
        match what:
            case "take":
                assert sides[side].take(name) == (name not in holder)
                holder.setdefault(name, side)
            case "look":
                assert sides[side].is_free(name) == (name not in holder)
            case _ if holder.get(name) == side:
                sides[side].release(name)
                del holder[name]
            case _:
                pass
    for name, side in holder.items():
        sides[side].release(name)


def test_a_killed_process_holds_nothing(here: Claims, there: Claimer) -> None:
    """What it was doing is then anybody's to take over, without a word from it, and without a file to clear away."""
    assert there.take(episode_name(KEY))
    assert not here.take(episode_name(KEY))
    there.kill()
    assert here.take(episode_name(KEY))


def test_closing_gives_everything_up(here: Claims, there: Claimer) -> None:
    """A command that has ended is in nobody's way, even if its process lives on."""
    assert there.take(episode_name(KEY))
    there.close()
    assert here.is_free(episode_name(KEY))


def test_a_claim_lasts_as_long_as_its_with(here: Claims, there: Claimer) -> None:
    """It ends with an error, too. And what was not granted is not given up."""
    with here.held(episode_name(KEY)) as granted:
        assert granted
        assert not there.take(episode_name(KEY))
        with here.held(episode_name(KEY)) as again:
            assert not again
        assert not there.take(episode_name(KEY))
    with pytest.raises(ZeroDivisionError), here.held(episode_name(KEY)):
        raise ZeroDivisionError
    assert there.take(episode_name(KEY))


def test_an_episode_is_named_by_the_beginning_of_its_key() -> None:
    """A workspace's name holds no more of it. And no block has the name of an episode."""
    assert episode_name(KEY) == episode_name(KEY[:16]) != episode_name("1" + KEY[1:])
    assert episode_name("f" * 64) < block_name("mine", "csv", 0, 1)
    assert len({block_name("a", "b", 0, 1), block_name("a", "b", 1, 0), block_name("ab", "", 0, 1)}) == 3
