"""A search finds what is there, says what it left out, and cannot hang the host."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.tools.grep import MAX_HITS, MAX_LINE_CHARS_SHOWN, glob_pattern
from geode.tools.search import search_tool
from geode.tools.spec import OutOfScope, ToolFailed
from geode.tools.workspace import Workspace
from tests.tools.conftest import Call


@pytest.fixture
def project(root: Path) -> Path:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("def hidden\n")
    (root / "src" / "util.py").write_text("import os\r\ndef util(x):\r\n    pass\r\n")
    (root / "notes.txt").write_text("def of a word\n")
    (root / "data.bin").write_bytes(b"def \0\n")
    (root / "out").symlink_to(root.parent)
    return root


@pytest.mark.parametrize("pattern", ["^def ", "^(?:d|e|f){3} "])
async def test_hits_are_shown_with_path_and_line(call: Call, project: Path, pattern: str) -> None:
    """Both ways of searching, here and in a child, give the same text: the table's."""
    del project
    output = await call("search", pattern=pattern)
    assert output.text == "notes.txt:1: def of a word\nsrc/app.py:1: def add(a, b):\nsrc/util.py:2: def util(x):"


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ({"path": "src"}, ["src/app.py", "src/util.py"]),
        ({"path": "/workspace/src/app.py"}, ["src/app.py"]),
        ({"glob": "*.py"}, ["src/app.py", "src/util.py"]),
        ({"glob": "src/**/*.py"}, ["src/app.py", "src/util.py"]),
        ({"glob": "*.{txt,md}"}, ["notes.txt"]),
        ({"path": "src", "glob": "a*"}, ["src/app.py"]),
    ],
)
async def test_path_and_glob_narrow_a_search(
    call: Call, project: Path, arguments: dict[str, str], files: list[str]
) -> None:
    """Paths in results are relative to the workspace, wherever the search began."""
    del project
    output = await call("search", pattern="def", **arguments)
    assert [line.split(":")[0] for line in output.text.splitlines()] == files


async def test_nothing_found_says_how_much_was_searched(call: Call, project: Path) -> None:
    """'No matches' of a search that skipped everything would mislead."""
    del project
    output = await call("search", pattern="zzz")
    assert output.text == "no matches in 4 files (1 skipped: binary or too large)"


async def test_many_hits_are_cut_with_a_count_and_long_lines_are_cut(call: Call, root: Path) -> None:
    """A30, R18: the result is bounded, and says by how much."""
    (root / "many.txt").write_text("hit \x1b[31mred\n" * (MAX_HITS + 7))
    lines = (await call("search", pattern="hit")).text.splitlines()
    assert lines[0] == "many.txt:1: hit red"
    assert len(lines) == MAX_HITS + 1
    assert lines[-1] == "[7 more matches; narrow the pattern, the path or the glob]"
    (root / "many.txt").write_text("hit" + "🍸" * 1_000)
    line = (await call("search", pattern="hit")).text
    assert line == "many.txt:1: hit" + "🍸" * (MAX_LINE_CHARS_SHOWN - 3)


async def test_a_search_does_not_follow_links_out(call: Call, project: Path) -> None:
    """R38: `out` leads to the folder with the canary."""
    del project
    assert "canary" not in (await call("search", pattern="canary")).text
    with pytest.raises(OutOfScope):
        await call("search", pattern="canary", path="out")
    with pytest.raises(ToolFailed, match="there is no 'srx'; did you mean 'src'"):
        await call("search", pattern="x", path="srx")


async def test_a_bad_pattern_tells_where_it_goes_wrong(call: Call) -> None:
    """The model meant a bracket."""
    with pytest.raises(ToolFailed, match=r"'add\(' is no regular expression .*backslash"):
        await call("search", pattern="add(")


async def test_a_catastrophic_pattern_is_stopped_while_the_loop_stays_free(root: Path) -> None:
    """A30: `re` cannot be interrupted and holds the interpreter, so it must not run here."""
    (root / "a.txt").write_text("a" * 60 + "\n")
    search = search_tool(Workspace(root), time_limit_s=0.2)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticker = asyncio.create_task(tick())
    start = time.monotonic()
    with pytest.raises(ToolFailed, match=r"took more than 0\.2 s and was stopped"):
        await search.handler({"pattern": "(a+)+$x"})
    ticker.cancel()
    assert time.monotonic() - start < 4
    assert ticks > 20


@pytest.mark.parametrize("pattern", ["a*a*a*b", "a.*a.*a.*b"])
async def test_a_slow_pattern_on_long_lines_is_stopped_too(root: Path, pattern: str) -> None:
    """Polynomial time is enough to hang: 2,000 letters to the fourth power."""
    (root / "a.txt").write_text("a" * 2_000 + "\n")
    search = search_tool(Workspace(root), time_limit_s=0.2)
    with pytest.raises(ToolFailed, match="was stopped"):
        await search.handler({"pattern": pattern})


async def test_a_search_over_too_much_ends_in_time_and_says_so(root: Path) -> None:
    """A part of the answer is kept, and marked as a part."""
    (root / "a.txt").write_text("x\n" * 200_000)
    search = search_tool(Workspace(root), time_limit_s=0.01)
    text = (await search.handler({"pattern": "x"})).text
    assert text.startswith("a.txt:1: x\n")
    assert text.endswith("[stopped after 0.01 s, with 2 files searched: not all of them]")


async def test_no_handle_is_left_open(call: Call, project: Path) -> None:
    """A session makes thousands of calls."""
    del project
    await call("search", pattern="def")
    before = len(os.listdir("/proc/self/fd"))
    for pattern in ("def", "(d|e)+f", "zzz"):
        await call("search", pattern=pattern)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.py", "a/b.py", True),
        ("*.py", "a/b.pyc", False),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/c/b.py", False),
        ("a/**/*.py", "a/b.py", True),
        ("a/**/*.py", "a/c/d/b.py", True),
        ("**/test_*", "x/test_a", True),
        ("/a.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("[a-c].py", "b.py", True),
        ("[!a-c].py", "b.py", False),
        ("*.{py,txt}", "x.txt", True),
        ("{a,b", "a", True),
        ("a+b(c).py", "a+b(c).py", True),
    ],
)
def test_globs_mean_what_people_expect(glob: str, path: str, matches: bool) -> None:
    """As in ignore files and editors."""
    assert (glob_pattern(glob).match(path) is not None) is matches


@given(st.text(max_size=30) | st.text(alphabet="*?[]!{},/\\-^a.", max_size=20))
def test_any_text_is_a_usable_glob(glob: str) -> None:
    """A filter that makes no sense matches nothing; it does not end the call."""
    glob_pattern(glob).match("a/b.py")
