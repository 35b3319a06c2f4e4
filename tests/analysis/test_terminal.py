"""What a tool or a model wrote must not act on the terminal that shows it."""

import io
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from analysis.terminal import printable


def test_escape_sequences_and_direction_marks_are_written_out() -> None:
    """Colour codes, a window title, a line that overwrites itself, text that reads backwards."""
    assert printable("\x1b[31mX\x1b[0m") == r"\x1b[31mX\x1b[0m"
    assert printable("a\rb\x07\x9b") == r"a\rb\x07\x9b"
    assert printable("\u202eabc\ud83c") == r"\u202eabc\ud83c"


def test_letters_and_line_breaks_stay() -> None:
    """Korean, accents, tabs and square brackets are text."""
    assert printable("정확도 é\t[red]\n") == "정확도 é\t[red]\n"


@given(st.text())
def test_nothing_that_acts_is_left(text: str) -> None:
    """Whatever goes in, only characters that show come out, and they can be written to any stream."""
    shown = printable(text)
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs"} or c in "\n\t" for c in shown)
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system=None, highlight=False).print(Text(shown))
    assert "\x1b" not in out.getvalue()
