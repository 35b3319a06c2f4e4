"""What `write_skeleton` writes, and what it refuses: a newcomer's first minute."""

from pathlib import Path

import pytest

from geode.dev.skeleton import SkeletonKind, SkeletonRefused, write_skeleton


@pytest.mark.parametrize("kind", list(SkeletonKind))
def test_nothing_of_the_template_is_left(tmp_path: Path, kind: SkeletonKind) -> None:
    """A placeholder that stays is found by the user, in an error of something else."""
    folder = write_skeleton(kind, "own_thing", tmp_path / "not" / "yet")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 3
    for path in files:
        assert "@" not in path.name
        assert "template" not in path.name
        assert "@NAME@" not in path.read_text()
        assert "@CLASS@" not in path.read_text()


def test_the_name_becomes_the_class_and_the_entry_point(tmp_path: Path) -> None:
    """One name, wherever the hook is spoken of."""
    folder = write_skeleton(SkeletonKind.HOOK, "own_thing", tmp_path)
    assert "class OwnThing(" in (folder / "own_thing" / "__init__.py").read_text()
    assert 'own_thing = "own_thing:build"' in (folder / "pyproject.toml").read_text()
    assert (folder / "tests" / "test_own_thing.py").is_file()


def test_what_is_there_already_stays_as_it_is(tmp_path: Path) -> None:
    """The second call with one name would otherwise cost a day's work."""
    folder = write_skeleton(SkeletonKind.SUITE, "mine", tmp_path)
    (folder / "suite.yaml").write_text("mine")
    with pytest.raises(SkeletonRefused, match="is there already; nothing was written"):
        write_skeleton(SkeletonKind.SUITE, "mine", tmp_path)
    assert (folder / "suite.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("kind", "name", "why"),
    [
        (SkeletonKind.SUITE, "My-Suite", "'My-Suite' will not do as a name"),
        (SkeletonKind.SUITE, "../x", "will not do as a name"),
        (SkeletonKind.HOOK, "stop_repeats", "there is a hook 'stop_repeats' already"),
        (SkeletonKind.HOOK, "json", "'json' is a word or a module of Python already; take another name, as my_json"),
        (SkeletonKind.HOOK, "class", "'class' is a word or a module"),
    ],
)
def test_a_name_that_would_clash_later_is_refused_at_once(
    tmp_path: Path, kind: SkeletonKind, name: str, why: str
) -> None:
    """A hook called json would break every program of its environment, and say something else."""
    with pytest.raises(SkeletonRefused, match=why):
        write_skeleton(kind, name, tmp_path)
    assert list(tmp_path.iterdir()) == []
