"""The file tools do what their result says, in one step, inside the workspace only."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from geode.tools.catalogue import workspace_tools
from geode.tools.files import MAX_ENTRIES, MAX_FILE_BYTES, MAX_SHOWN_CHARS
from geode.tools.spec import OutOfScope, ResourceClaim, SafetyLevel, ToolFailed, ToolSpec
from geode.tools.workspace import Workspace
from tests.tools.conftest import Call


@pytest.fixture
def tools(root: Path) -> dict[str, ToolSpec]:
    return workspace_tools(Workspace(root))


async def test_a_folder_is_listed_one_path_a_line(call: Call, root: Path) -> None:
    """ARCHITECTURE.md's table is what prompts, hooks and outlines rely on."""
    (root / "src" / "pkg").mkdir()
    assert (await call("list_files")).text == "README.md\nsrc/"
    assert (await call("list_files", path="/workspace/src")).text == "src/app.py\nsrc/pkg/"
    assert (await call("list_files", path="src/pkg")).text == "(empty folder)"
    with pytest.raises(ToolFailed, match="is a file"):
        await call("list_files", path="README.md")
    with pytest.raises(ToolFailed, match="there is no 'srcs'; did you mean 'src'"):
        await call("list_files", path="srcs")


async def test_names_that_do_not_print_are_escaped(call: Call, root: Path) -> None:
    """A06: text direction marks, line breaks and raw bytes in a name must not pass for something else."""
    (root / "src" / "a\u202eb\nc").touch()
    os.mkfifo(os.fsencode(root / "src") + b"/\xff")
    assert (await call("list_files", path="src")).text == "src/app.py\nsrc/a\\u202eb\\nc\nsrc/\\udcff"


async def test_a_large_folder_is_cut_with_a_count(call: Call, root: Path) -> None:
    """A30: no result grows without a bound."""
    for number in range(MAX_ENTRIES + 3):
        (root / "src" / f"{number:05}").touch()
    lines = (await call("list_files", path="src")).text.splitlines()
    assert len(lines) == MAX_ENTRIES + 1
    assert lines[-1] == "[4 more entries]"


async def test_a_file_is_read_whole_or_by_lines(call: Call, root: Path) -> None:
    """A part says which part it is, so that nobody takes it for the whole."""
    (root / "n.txt").write_text("".join(f"{n}\n" for n in range(1, 11)))
    assert (await call("read_file", path="src/app.py")).text == "def add(a, b):\n    return a - b\n"
    assert (await call("read_file", path="n.txt", start_line=3, line_count=2)).text == "3\n4\n[lines 3-4 of 10]"
    assert (await call("read_file", path="n.txt", start_line=9)).text == "9\n10\n[lines 9-10 of 10]"
    assert (await call("read_file", path="n.txt", line_count=99)).text.endswith("9\n10\n")
    with pytest.raises(ToolFailed, match="start_line is 11, and the file has 10 lines"):
        await call("read_file", path="n.txt", start_line=11)


async def test_lines_are_those_that_end_in_a_line_feed(call: Call, root: Path) -> None:
    """Form feeds and Unicode separators would shift every number against the compiler's and the editor's."""
    (root / "n.txt").write_text("a\x0cb\u2028c\nd")
    assert (await call("read_file", path="n.txt", start_line=2)).text == "d\n[lines 2-2 of 2]"


async def test_an_empty_file_says_so(call: Call, root: Path) -> None:
    """R08: an empty result cannot be stored or sent."""
    (root / "empty").touch()
    assert (await call("read_file", path="empty")).text == "(empty file)"


async def test_long_files_and_long_lines_are_cut_on_characters(call: Call, root: Path) -> None:
    """R14, A30: bounded, and never half an emoji."""
    (root / "long.txt").write_text("🍸" * 99 + "\n" + "x\n" * MAX_SHOWN_CHARS)
    text = (await call("read_file", path="long.txt")).text
    assert text.endswith(f"\nx\n[lines 1-{1 + (MAX_SHOWN_CHARS - 100) // 2} of {MAX_SHOWN_CHARS + 1}]")
    (root / "line.txt").write_text("🍸" * (MAX_SHOWN_CHARS + 5))
    text = (await call("read_file", path="line.txt")).text
    assert text.endswith(f"🍸\n[line 1 of 1: its first {MAX_SHOWN_CHARS} of {MAX_SHOWN_CHARS + 5} characters]")


async def test_what_is_no_text_is_named_with_its_size(call: Call, root: Path) -> None:
    """R17: never throws; a stray byte is replaced, a binary file is said to be one."""
    (root / "image").write_bytes(b"\x89PNG\0" + bytes(range(256)) * 20)
    assert (await call("read_file", path="image")).text == "[binary file, 5125 bytes, not shown]"
    (root / "latin").write_bytes(b"caf\xe9 au lait\n")
    assert (await call("read_file", path="latin")).text == "caf\ufffd au lait\n"


async def test_what_cannot_be_read_to_an_end_is_refused(call: Call, root: Path) -> None:
    """A30: a pipe would wait for ever, a device never ends, a huge file fills the memory."""
    os.mkfifo(root / "pipe")
    with pytest.raises(ToolFailed, match="no regular file"):
        await call("read_file", path="pipe")
    with pytest.raises(ToolFailed, match="is a folder"):
        await call("read_file", path="src")
    (root / "huge").touch()
    os.truncate(root / "huge", MAX_FILE_BYTES + 1)
    with pytest.raises(ToolFailed, match=f"more than {MAX_FILE_BYTES} bytes"):
        await call("read_file", path="huge")


async def test_a_file_is_written_with_its_folders(call: Call, root: Path) -> None:
    """The count is of characters, as the model sees them."""
    output = await call("write_file", path="/workspace/new/deep/한글.txt", content="🍸é\n")
    assert output.text == "wrote new/deep/한글.txt (3 characters)"
    assert (root / "new/deep/한글.txt").read_text() == "🍸é\n"


async def test_a_write_keeps_the_mode_and_leaves_nothing_beside(call: Call, root: Path) -> None:
    """A script stays executable; a temporary file would be a change that nobody asked for."""
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)
    await call("write_file", path="run.sh", content="new")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750
    assert sorted(os.listdir(root)) == ["README.md", "run.sh", "src"]


async def test_a_write_is_one_step_for_every_reader(call: Call, root: Path) -> None:
    """Who has the old file open keeps the old content; nobody ever sees a half."""
    reader = os.open(root / "README.md", os.O_RDONLY)
    await call("write_file", path="README.md", content="x" * 100_000)
    assert os.read(reader, 100) == b"# Demo\n"
    os.close(reader)


async def test_a_write_through_a_link_inside_changes_its_target(call: Call, root: Path) -> None:
    """R38: a link that stays inside works, and stays a link."""
    (root / "link.py").symlink_to("src/app.py")
    assert (await call("write_file", path="link.py", content="new")).text == "wrote src/app.py (3 characters)"
    assert (root / "link.py").is_symlink()
    assert (root / "src/app.py").read_text() == "new"


async def test_a_write_never_changes_a_file_outside_through_a_hard_link(call: Call, root: Path) -> None:
    """R38: a hard link cannot be told from a file, so the entry is replaced and the shared content left alone."""
    os.link(root.parent / "secret.txt", root / "hard")
    await call("write_file", path="hard", content="mine")
    await call("edit_file", path="hard", old="mine", new="ours")
    assert (root / "hard").read_text() == "ours"
    assert (root.parent / "secret.txt").read_text() == "canary"


async def test_a_write_outside_is_refused_and_does_nothing(call: Call, root: Path) -> None:
    """R38, A18: `ln -s / ws/esc`, then 'edit README'."""
    (root / "esc").symlink_to(root.parent)
    (root / "README").symlink_to(root.parent / "secret.txt")
    for name, arguments in (
        ("write_file", {"content": "x"}),
        ("edit_file", {"old": "canary", "new": "x"}),
        ("read_file", {}),
        ("list_files", {}),
    ):
        for path in ("esc/secret.txt", "README", "../secret.txt", "esc/new/x"):
            with pytest.raises(OutOfScope):
                await call(name, path=path, **arguments)
    assert sorted(os.listdir(root.parent)) == ["secret.txt", "ws"]
    assert (root.parent / "secret.txt").read_text() == "canary"


async def test_what_cannot_be_written_is_left_as_it_was(call: Call, root: Path) -> None:
    """`ToolFailed` promises that nothing happened."""
    (root / "locked").write_text("keep")
    (root / "locked").chmod(0o444)
    for path, told in (("src", "no regular file"), ("locked", "read-only"), ("README.md/x", "Not a directory")):
        with pytest.raises(ToolFailed, match=told):
            await call("write_file", path=path, content="x")
    with pytest.raises(ToolFailed, match="File name too long"):
        await call("write_file", path="n" * 254 + "é", content="x")
    assert (root / "locked").read_text() == "keep"
    assert sorted(os.listdir(root)) == ["README.md", "locked", "src"]


async def test_text_is_cleaned_before_it_is_written(tools: dict[str, ToolSpec], root: Path) -> None:
    """R14: a rewrite by a hook may bring half an emoji; the file and the records must agree."""
    await tools["write_file"].handler({"path": "x", "content": "\ud83c"})
    assert (root / "x").read_text() == "\ufffd"


async def test_an_edit_replaces_the_one_occurrence(call: Call, root: Path) -> None:
    """The plain case, in the words of the table."""
    output = await call("edit_file", path="src/app.py", old="a - b", new="a + b")
    assert output.text == "edited src/app.py: 1 replacement"
    assert (root / "src/app.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_claims_name_the_real_file_and_exclude_the_shell(tools: dict[str, ToolSpec], root: Path) -> None:
    """Two names of one file are one resource; a command may change anything, so it runs alone."""
    (root / "link.py").symlink_to("src/app.py")
    shared, alone = ResourceClaim(resource="tree", exclusive=False), ResourceClaim(resource="tree", exclusive=True)
    for path in ("link.py", "/workspace/src/app.py"):
        assert tools["read_file"].claims({"path": path}) == (
            ResourceClaim(resource="file:/workspace/src/app.py", exclusive=False),
            shared,
        )
        assert tools["edit_file"].claims({"path": path})[0] == ResourceClaim(
            resource="file:/workspace/src/app.py", exclusive=True
        )
    assert tools["list_files"].claims({}) == tools["search"].claims({}) == (shared,)
    assert tools["shell"].claims({}) == (alone,)
    assert tools["write_file"].claims({"path": "../x"}) == (alone,)


def test_levels_say_what_a_call_can_do(tools: dict[str, ToolSpec]) -> None:
    """Policy decides by these alone."""
    levels = {name: spec.level for name, spec in tools.items()}
    assert levels == {
        "list_files": SafetyLevel.READ,
        "read_file": SafetyLevel.READ,
        "search": SafetyLevel.READ,
        "write_file": SafetyLevel.WRITE,
        "edit_file": SafetyLevel.WRITE,
        "shell": SafetyLevel.EXECUTE,
        "git_status": SafetyLevel.READ,
        "git_diff": SafetyLevel.READ,
        "git_log": SafetyLevel.READ,
        "git_commit": SafetyLevel.WRITE,
        "git_branch": SafetyLevel.WRITE,
        "web_fetch": SafetyLevel.EXTERNAL,
    }


WRITES = [
    ("write_file", {"path": "src/app.py", "content": "new"}),
    ("write_file", {"path": "fresh/x", "content": "new"}),
    ("edit_file", {"path": "src/app.py", "old": "a - b", "new": "a + b"}),
]


@pytest.mark.parametrize(("name", "arguments"), WRITES)
async def test_a_probe_tells_whether_a_write_happened(
    tools: dict[str, ToolSpec], root: Path, name: str, arguments: dict[str, str]
) -> None:
    """Contract 5.5: after a crash the file itself settles the receipt; what somebody else wrote settles nothing."""
    spec = tools[name]
    assert spec.intent is not None
    assert spec.settled_by_probe is not None
    intent = spec.intent(arguments)
    assert spec.settled_by_probe(arguments, intent) is False
    await spec.handler(arguments)
    assert spec.settled_by_probe(arguments, intent) is True
    (root / arguments["path"]).write_text("somebody else")
    assert spec.settled_by_probe(arguments, intent) is None


def test_a_probe_of_an_edit_that_could_not_apply_says_no(tools: dict[str, ToolSpec]) -> None:
    """Its handler fails before it changes anything."""
    spec, arguments = tools["edit_file"], {"path": "src/app.py", "old": "zzz", "new": "y"}
    assert spec.intent is not None
    assert spec.settled_by_probe is not None
    assert spec.settled_by_probe(arguments, spec.intent(arguments)) is False


def test_writing_what_is_there_already_counts_as_done(tools: dict[str, ToolSpec]) -> None:
    """Before and after are the same: the wanted state holds."""
    spec, arguments = tools["write_file"], {"path": "README.md", "content": "# Demo\n"}
    assert spec.intent is not None
    assert spec.settled_by_probe is not None
    assert spec.settled_by_probe(arguments, spec.intent(arguments)) is True


def test_scope_is_judged_before_the_schema(tools: dict[str, ToolSpec]) -> None:
    """It runs on arguments of any shape and raises nothing but `OutOfScope`."""
    shapes: list[JsonValue] = [None, 5, [], {}, "missing/x", "src/app.py/x", "loop"]
    for spec in tools.values():
        for path in shapes:
            spec.check_scope({"path": path, "command": path})


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200))
async def test_what_is_written_is_what_stands_in_the_file(call: Call, root: Path, content: str) -> None:
    """No line end is translated, no mark is added."""
    await call("write_file", path="x", content=content)
    assert (root / "x").read_bytes() == content.encode()
