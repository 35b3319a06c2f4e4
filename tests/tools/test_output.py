"""What a program prints reaches the model bounded, whole in its characters, and without terminal tricks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.tools.output import Capture, without_controls

CUT = re.compile(r"\[\.\.\. (\d+) of (\d+) bytes left out; [^\]]*\]")


def captured(data: bytes, *, head: int = 100, tail: int = 100, chunk: int = 7) -> str:
    capture = Capture(head_bytes=head, tail_bytes=tail)
    for start in range(0, len(data), chunk):
        capture.feed(data[start : start + chunk])
    assert capture.total_bytes == len(data)
    return capture.text()


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffd")), st.integers(1, 9))
def test_a_cut_never_falls_inside_a_character(text: str, chunk: int) -> None:
    """R14: half an emoji makes the next request invalid."""
    shown = captured(text.encode(), head=10, tail=10, chunk=chunk)
    assert "\ufffd" not in shown
    if len(text.encode()) <= 20:
        assert shown == text


@given(st.lists(st.sampled_from(["a", "é", "한", "🍸", "\n"]), max_size=60), st.integers(1, 9))
def test_what_is_left_out_is_counted_exactly(parts: list[str], chunk: int) -> None:
    """R18: head and tail with an exact count of what was cut."""
    text = "".join(parts)
    size = len(text.encode())
    shown = captured(text.encode(), head=10, tail=10, chunk=chunk)
    if size > 20:
        mark = CUT.search(shown)
        assert mark is not None
        head, tail = shown[: mark.start()], shown[mark.end() + 1 :]
        assert text.startswith(head.removesuffix("\n"))
        assert text.endswith(tail)
        assert int(mark[2]) == size
        # The line's end before the mark is the text's own, or was added where the head has none.
        kept = {len(part.encode()) + len(tail.encode()) for part in (head, head.removesuffix("\n"))}
        assert size - int(mark[1]) in kept


def test_the_reported_emoji_at_the_cap_is_whole() -> None:
    """R14: 29,999 letters and an emoji, with a cap of 30,000."""
    text = captured(b"a" * 29_999 + "🍸".encode(), head=30_000, tail=0, chunk=1_024)
    assert text.startswith("a" * 29_999)
    assert "\ufffd" not in text
    assert "[... 4 of 30003 bytes left out" in text


def test_a_character_that_spans_two_reads_is_whole() -> None:
    """R17: 1,023 letters and then an é, read in blocks of 1,024."""
    assert captured(b"a" * 1_023 + "é".encode(), head=4_000, chunk=1_024) == "a" * 1_023 + "é"


def test_bytes_that_are_no_text_are_replaced_or_named() -> None:
    """R17: a stray byte is a replacement character; a flood of them is named with its size, not shown."""
    assert captured(b"\xf0") == "\ufffd"
    noise = bytes(range(128, 256)) * 100
    assert captured(noise) == "[binary output, 12800 bytes, not shown; redirect it to a file to keep it]"
    assert captured(b"ok\n" + noise, head=13_000).startswith("[binary output, 12803 bytes")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mX\x1b[0m", "X"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1b[2K\x1b[1Ab", "ab"),
        ("\x9b31mX", "X"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00\x07\x08b\x7f\tc", "ab\tc"),
        ("\x1b(B\x1b=\x1bMx", "x"),
        ("end\x1b", "end"),
        ("한글 🍸 é", "한글 🍸 é"),
    ],
)
def test_control_sequences_are_stripped(raw: str, shown: str) -> None:
    """R18, A21: colours cost tokens, and cursor moves can show a person something else than what is there."""
    assert without_controls(raw) == shown


@given(st.text(alphabet="\x1b[]PX^_\x9b\x9d\x07\\0;1mKab\r\n", max_size=80))
def test_no_control_character_survives(text: str) -> None:
    """Whatever an output nests, nothing that a terminal obeys is left."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", without_controls(text))


def test_memory_stays_bounded_while_reading() -> None:
    """R18, A30: the flood is counted, not kept."""
    capture = Capture(head_bytes=1_000, tail_bytes=1_000)
    block = b"x" * 65_536
    for _ in range(200):
        capture.feed(block)
        assert len(capture._head) + len(capture._tail) <= 3_000 + len(block)
    assert f"of {200 * 65_536} bytes left out" in capture.text()
