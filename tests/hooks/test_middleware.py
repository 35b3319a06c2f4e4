"""Facts of `geode.hooks.middleware`: one name for one file, and no path that changes sides."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from geode.hooks.middleware import apply_middleware, fold_workspace_paths

PATHS = st.lists(st.sampled_from(["a", "..", ".", "", "workspace", "/workspace", "b c", "workspace-evil"]), max_size=6)


def fold(path: str) -> object:
    return fold_workspace_paths("read_file", {"path": path, "n": 1})["path"]


def meant(path: str) -> str:
    """Where a path leads if the workspace is /workspace and nothing is a link."""
    return posixpath.normpath(posixpath.join("/workspace", path))


def test_steps_are_taken_in_order() -> None:
    def add(letter: str) -> object:
        return lambda _, arguments: {**arguments, "path": str(arguments["path"]) + letter}

    chain = [add("b"), add("c")]
    assert apply_middleware(chain, "t", {"path": "a"}) == {"path": "abc"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/a.py", "src/a.py"),
        ("/workspace/src/a.py", "src/a.py"),
        ("/workspace//src/./a.py", "src/a.py"),
        ("src//a.py", "src/a.py"),
        ("././src/a.py", "src/a.py"),
        (" src/a.py\n", "src/a.py"),
        ("src/", "src"),
        ("", "."),
        (".", "."),
        ("/workspace", "."),
        ("/workspace/", "."),
        # "..", links and everything outside are for the workspace to judge
        ("src/../a.py", "src/../a.py"),
        ("../x", "../x"),
        ("/etc/passwd", "/etc/passwd"),
        ("/workspace-evil/x", "/workspace-evil/x"),
        ("//workspace/x", "//workspace/x"),
    ],
)
def test_every_spelling_of_a_file_in_the_workspace_has_one_form(written: str, name: str) -> None:
    """A guard that knows `tests/a.py` must not be passed by `tests/./a.py`; two locks must not be one file's."""
    assert fold(written) == name


@given(PATHS.map("/".join))
def test_folding_never_changes_which_place_is_meant(path: str) -> None:
    """A18: an outside path made an inside one would be an escape, the other way round a refusal without reason."""
    folded = str(fold(path))
    assert meant(folded) == meant(path.strip())
    assert fold(folded) == folded


@pytest.mark.parametrize("arguments", [{"path": 5}, {"path": None}, {}, {"paths": ["./a"]}, {"path": ["./a"]}])
def test_what_is_no_path_stays_as_it_is(arguments: dict[str, JsonValue]) -> None:
    assert fold_workspace_paths("read_file", dict(arguments)) == arguments


def test_a_shell_command_is_left_alone() -> None:
    assert fold_workspace_paths("shell", {"path": "./a"}) == {"path": "./a"}
    assert fold_workspace_paths("bucket__get", {"path": "./a//b"}) == {"path": "./a//b"}
