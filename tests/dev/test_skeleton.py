"""What `write_skeleton` writes, and what it refuses: a newcomer's first minute."""

import re
from pathlib import Path
from typing import get_args

import pytest

from experiments.suites import verifying
from geode.dev.skeleton import SkeletonKind, SkeletonRefused, write_skeleton
from geode.hooks.points import ALLOWED, HookEvent, Pass
from geode.tools.catalogue import workspace_tools
from geode.tools.workspace import Workspace


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


def test_a_new_hook_lists_every_point_with_what_may_be_answered(tmp_path: Path) -> None:
    """Its file is what a newcomer has open, and a wrong line there makes a hook that is broken."""
    text = (write_skeleton(SkeletonKind.HOOK, "own_thing", tmp_path) / "own_thing" / "__init__.py").read_text()
    listed = re.findall(r"^    ([A-Z_]+) +([A-Z]\w+) +([A-Z]\w+(?:, [A-Z]\w+)*)(?:  |$)", text, re.MULTILINE)
    shown = {(event.__doc__ or "").split(":")[0]: event.__name__ for event in get_args(HookEvent)}
    assert listed == [
        (point.name, shown[point], ", ".join(answer.__name__ for answer in answers if answer is not Pass))
        for point, answers in ALLOWED.items()
    ]


def test_a_new_task_names_tools_and_checks_that_there_are(tmp_path: Path) -> None:
    """Whoever has no other source takes them from there."""
    task = write_skeleton(SkeletonKind.SUITE, "mine", tmp_path) / "first_task"
    tools = re.findall(r"[a-z_]+", (task / "outline.yaml").read_text().split("# tool: ")[1].split(".\n")[0])
    assert set(tools) - {"or"} <= set(workspace_tools(Workspace(tmp_path)))
    helpers = set(re.findall(r"`(\w+)`", (task / "verify.py").read_text()))
    assert len(helpers) == 5
    assert helpers <= set(vars(verifying))


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
