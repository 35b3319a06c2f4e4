"""What comes out of a pipe is cut into lines within bounds, whatever the pieces."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from geode.redaction import Redactor
from geode.tools.mcp import stdio
from geode.tools.mcp.serverlog import ServerLog
from geode.tools.mcp.stdio import _Lines, _TooLong, _without_depth


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_lines_are_the_same_however_they_are_cut_into_pieces(pieces: list[bytes]) -> None:
    """A pipe gives bytes, not lines."""
    lines = _Lines()
    got = [line for piece in pieces for line in lines.feed(piece)]
    assert got == b"".join(pieces).split(b"\n")[:-1]


def test_a_line_over_its_bound_is_dropped_and_the_next_one_is_whole() -> None:
    """R43: a line of gigabytes takes no more memory than its bound, and costs only itself."""
    lines = _Lines()
    head = b'{"jsonrpc":"2.0","id":7,"result":'
    assert lines.feed(head) == []
    half = b"x" * (stdio.LINE_BYTES_MAX // 2 + 1)
    assert lines.feed(half) == []
    assert lines.feed(half) == []
    assert lines.feed(half) == []
    assert len(lines._rest) == 0
    (dropped, following) = lines.feed(b"end\nnext\n")
    assert isinstance(dropped, _TooLong)
    assert dropped.head.startswith(head)
    assert following == b"next"
    assert isinstance(lines.feed(b"y" * (stdio.LINE_BYTES_MAX + 1) + b"\n")[0], _TooLong)


NESTED = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(NESTED)
def test_what_is_not_deep_is_not_touched(value: object) -> None:
    """Pruning must cost nothing where nothing is wrong."""
    text = json.dumps(value, ensure_ascii=False)
    assert _without_depth(text) == text


def test_what_is_deep_becomes_null_in_its_place() -> None:
    """R45: one schema nested 2,000 deep must not cost the list that it stands in."""
    abyss = '{"a":[' * 1_000 + '"]}"' + "]}" * 1_000
    pruned = json.loads(_without_depth(f'{{"first": 1, "deep": {abyss}, "again": {abyss}, "last": "\\"[{{"}}'))
    assert (pruned["first"], pruned["last"]) == (1, '"[{')
    at, levels = pruned["deep"], 0
    while at is not None:
        at, levels = (at["a"] if isinstance(at, dict) else at[0]), levels + 1
    assert 90 < levels < 100


def test_the_log_of_a_server_holds_no_secret_and_has_a_bound(tmp_path: Path) -> None:
    """R40: what a server prints may hold the key that it was given."""
    log = ServerLog(tmp_path / "s.log", Redactor(needles=("hunter2hunter2",)), bytes_max=300)
    log.feed(b"password hunter2")
    log.feed(b"hunter2 taken\n" + b"x" * 20_000)
    for _ in range(50):
        log.feed(b"a line of some length\n")
    log.close()
    text = (tmp_path / "s.log").read_text()
    assert text.startswith("password [redacted] taken\n")
    assert 300 <= len(text) < 350
    assert text.endswith("[the log is full]\n")
    again = ServerLog(tmp_path / "s.log", Redactor(), bytes_max=300)
    again.feed(b"after")
    again.close()
    assert (tmp_path / "s.log").read_text() == "after\n"
