"""No path that a model can write leads out of its workspace, not even while somebody swaps folders for links."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geode.tools.spec import OutOfScope, ToolFailed
from geode.tools.workspace import NotThere, Workspace


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("canary")
    return folder


@pytest.fixture
def workspace(tmp_path: Path, outside: Path) -> Workspace:
    """A workspace with links of every kind."""
    root = tmp_path / "ws"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "app.py").write_text("print()\n")
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "x").write_text("canary")
    for name, target in {
        "esc": "/",
        "out": "../outside",
        "twin": "../ws-evil",
        "file_out": str(outside / "secret.txt"),
        "in": "src",
        "in_absolute": str(root / "src"),
        "src/deep/up": "../..",
        "src/deep/up_and_out": "../../..",
        "loop": "loop",
        "chain": "in/deep/up/in",
    }.items():
        (root / name).symlink_to(target)
    return Workspace(root)


def read(workspace: Workspace, path: str) -> str:
    with workspace.locate(path) as place, open(place.open(os.O_RDONLY), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("src/app.py", "src/app.py"),
        ("./src//app.py", "src/app.py"),
        ("/workspace/src/app.py", "src/app.py"),
        ("//workspace/./src/app.py", "src/app.py"),
        ("/workspace", "."),
        (".", "."),
        ("src/..", "."),
        ("src/deep/../app.py", "src/app.py"),
        ("in/app.py", "src/app.py"),
        ("in_absolute/app.py", "src/app.py"),
        ("src/deep/up/src/app.py", "src/app.py"),
        ("chain/app.py", "src/app.py"),
        ("in/../src/new.py", "src/new.py"),
        ("new/folder/file", "new/folder/file"),
        ("..%2f", "..%2f"),
        ("a..b", "a..b"),
        ("...", "..."),
    ],
)
def test_paths_inside_resolve_and_links_that_stay_inside_work(workspace: Workspace, path: str, shown: str) -> None:
    """R38: a link that stays inside still works; refusing every link would break real projects."""
    resolved = workspace.resolve(path)
    assert workspace.display(resolved) == shown
    assert resolved == Path(os.path.realpath(resolved))


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../ws-evil/x",
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "/workspace/../outside/secret.txt",
        "/workspace-evil/x",
        "/etc/passwd",
        "/",
        "~/x",
        "~root/.ssh/id_rsa",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "esc/tmp/e",
        "esc",
        "esc/proc/self/root/etc/passwd",
        "/proc/self/root/etc/passwd",
        "out/secret.txt",
        "out/new.txt",
        "twin/x",
        "file_out",
        "src/deep/up_and_out/outside/secret.txt",
        "chain/deep/up_and_out",
        "src/app.py\0.txt",
        "a/" * 5_000,
        "\ud800",
    ],
)
def test_paths_outside_are_out_of_scope(workspace: Workspace, path: str) -> None:
    """R38, A18: links out, prefix twins, `..`, home, URL, NUL, /proc/self/root."""
    with pytest.raises(OutOfScope):
        workspace.resolve(path)
    with pytest.raises(OutOfScope):
        read(workspace, path)


def test_the_refusal_names_where_a_link_leads(workspace: Workspace) -> None:
    """A18: blocked, real path named, so that a person can see what was tried."""
    with pytest.raises(OutOfScope, match="'esc' is a link to '/'"):
        workspace.resolve("esc/tmp/e")


def test_the_real_path_of_the_workspace_is_not_a_path_of_the_model(workspace: Workspace) -> None:
    """The model knows one root; records hold no path of this machine."""
    with pytest.raises(OutOfScope):
        workspace.resolve(str(workspace.root / "src"))


def test_a_path_that_leads_nowhere_fails_without_being_out_of_scope(workspace: Workspace) -> None:
    """The model may correct itself; nobody needs to be warned."""
    for path in ("src/app.py/x", "loop", "loop/x", "missing/../src/app.py", "n" * 300):
        with pytest.raises(ToolFailed) as failed:
            workspace.resolve(path)
        assert not isinstance(failed.value, OutOfScope)


def test_a_missing_file_names_one_that_is_near(workspace: Workspace) -> None:
    """A wrong letter costs one round, not three."""
    with pytest.raises(NotThere, match=r"there is no 'src/ap\.py'; did you mean 'src/app\.py'"):
        read(workspace, "src/ap.py")


PARTS = st.sampled_from(
    [
        *("", "..", ".", "~", "src", "deep", "app.py", "esc", "out", "twin", "file_out", "in", "in_absolute", "up"),
        *("up_and_out", "loop", "chain", "etc", "workspace", "ws", "ws-evil", "outside", "secret.txt", "new", "..%2f"),
    ]
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PARTS, max_size=8), absolute=st.booleans())
def test_no_combination_of_parts_resolves_outside(workspace: Workspace, parts: list[str], absolute: bool) -> None:
    """The kernel's own real path is the judge."""
    path = "/workspace/" * absolute + "/".join(parts)
    real_root = os.path.realpath(workspace.root)
    try:
        resolved = workspace.resolve(path)
    except ToolFailed:
        return
    real = os.path.realpath(resolved)
    assert os.path.commonpath([real, real_root]) == real_root
    assert real == str(resolved)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.text(max_size=40) | st.text(alphabet="./~\\%ws:-e\0", max_size=20))
def test_no_text_resolves_outside(workspace: Workspace, path: str) -> None:
    """Nor does any text raise anything but the one error."""
    try:
        resolved = workspace.resolve(path)
    except ToolFailed:
        return
    assert Path(os.path.realpath(resolved)).is_relative_to(workspace.root)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PARTS, min_size=1, max_size=6))
def test_what_is_refused_would_lead_out_or_nowhere(workspace: Workspace, parts: list[str]) -> None:
    """The twin: what really lies inside is never out of scope."""
    path = "/".join(parts)
    if path.startswith(("/", "~")) or "missing" in path:
        return
    target = workspace.root / path
    try:
        real = target.resolve(strict=True)
    except (OSError, RuntimeError):
        return
    if real.is_relative_to(workspace.root) and not leaves_on_the_way(workspace.root, path):
        assert workspace.resolve(path) == real


def leaves_on_the_way(root: Path, path: str) -> bool:
    """Whether a prefix of the path is outside, though the whole leads back in."""
    prefixes = [root.joinpath(*path.split("/")[:n]) for n in range(1, path.count("/") + 2)]
    return any(not prefix.resolve().is_relative_to(root) for prefix in prefixes)


SWAPPER = """
import os, sys
race, kept, outside = sys.argv[1:]
while True:
    os.rename(race, kept)
    os.symlink(outside, race)
    os.unlink(race)
    os.rename(kept, race)
"""


def read_by_names(workspace: Workspace, path: str) -> str:
    """The way that does not hold: check the real path, then open by name."""
    target = workspace.root / path
    try:
        return target.read_text() if target.resolve().is_relative_to(workspace.root) else "refused"
    except OSError:
        return "gone"


def read_by_handles(workspace: Workspace, path: str) -> str:
    try:
        return read(workspace, path)
    except OutOfScope:
        return "refused"
    except ToolFailed:
        return "gone"


def test_a_folder_swapped_for_a_link_during_the_walk_never_leads_out(workspace: Workspace, outside: Path) -> None:
    """R38, A23: a check on names and a use by names leave a gap, which is shown beside; handles have none."""
    race = workspace.root / "race"
    race.mkdir()
    (race / "secret.txt").write_text("inside")
    by_names: set[str] = set()
    by_handles: set[str] = set()
    end = time.monotonic() + 20
    with subprocess.Popen([sys.executable, "-c", SWAPPER, race, workspace.root / "kept", outside]) as swapper:
        try:
            while not ("canary" in by_names and "inside" in by_handles) and time.monotonic() < end:
                for _ in range(100):
                    by_names.add(read_by_names(workspace, "race/secret.txt"))
                    by_handles.add(read_by_handles(workspace, "race/secret.txt"))
        finally:
            swapper.kill()
    assert "canary" not in by_handles
    if "canary" not in by_names:
        pytest.skip("the swap never fell into the gap on this machine")


def test_a_file_swapped_for_a_link_after_the_check_is_not_opened(workspace: Workspace, outside: Path) -> None:
    """The last component is opened without following it."""
    with workspace.locate("src/app.py") as place:
        (workspace.root / "src/app.py").unlink()
        (workspace.root / "src/app.py").symlink_to(outside / "secret.txt")
        with pytest.raises(OutOfScope, match="became a link"):
            place.open(os.O_RDONLY)


def test_a_folder_moved_out_during_the_walk_does_not_take_the_walk_along(workspace: Workspace, tmp_path: Path) -> None:
    """`..` goes back by the names that were walked, never by where a moved folder hangs by then."""
    (workspace.root / "a" / "b").mkdir(parents=True)
    (tmp_path / "secret").write_text("canary")
    (workspace.root / "a").rename(tmp_path / "a")
    with pytest.raises(ToolFailed):
        read(workspace, "a/b/../../secret")


def test_no_handle_is_left_open(workspace: Workspace) -> None:
    """A session makes thousands of calls."""
    before = len(os.listdir("/proc/self/fd"))
    for path in ("chain/app.py", "esc/x", "src/deep/up/../x", "missing/x", "src/app.py/x", "../x"):
        try:
            workspace.resolve(path)
        except ToolFailed:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


def test_output_names_the_workspace_as_the_model_knows_it(tmp_path: Path) -> None:
    """An episode folder holds no absolute path of this machine; twins keep their own name."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    workspace = Workspace(tmp_path / "link")
    text = f"{real}/a.py {tmp_path}/link/b: {real} {real}. {real}-evil {real}.bak"
    assert workspace.hide(text) == f"/workspace/a.py /workspace/b: /workspace /workspace. {real}-evil {real}.bak"
    assert workspace.root == real


@pytest.mark.parametrize(
    ("command", "revealed"),
    [
        ("cat /workspace/a", "cat ROOT/a"),
        ("cd /workspace && ls '/workspace' \"/workspace/x\"", "cd ROOT && ls 'ROOT' \"ROOT/x\""),
        ("gcc -I/workspace/include x=/workspace", "gcc -IROOT/include x=ROOT"),
        ("cat /workspace-evil /workspace2 /workspace.bak src/workspace/x", None),
        ("cat ./workspace ~/workspace my/workspace -/workspace", None),
        ("echo in /workspace.", "echo in ROOT."),
    ],
)
def test_commands_get_the_real_root_at_word_borders(workspace: Workspace, command: str, revealed: str | None) -> None:
    """`/workspace` does not exist for the shell."""
    expected = command if revealed is None else revealed.replace("ROOT", str(workspace.root))
    assert workspace.reveal(command) == expected


@pytest.mark.parametrize("root", [Path("/"), Path("/nonexistent/x"), Path(__file__)])
def test_what_is_no_folder_is_no_workspace(root: Path) -> None:
    """A mistake in the set-up is an error at once, not a session that writes somewhere."""
    with pytest.raises(NotADirectoryError, match="cannot be a workspace"):
        Workspace(root)


@pytest.fixture(autouse=True)
def _no_change_outside(outside: Path) -> Iterator[None]:
    yield
    assert sorted(os.listdir(outside)) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "canary"
