"""Facts of `geode.cli.shown`: a reader sees what a text holds, whatever it tries to look like (A06, A21)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.cli.shown import shown


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("git status", ("git status",)),
        ("a\nb", ("a", "b")),
        ("rm x\rls  ", ("rm x<U+000D>ls  ",)),
        ("\x1b[2K\x1b[1A", ("<U+001B>[2K<U+001B>[1A",)),
        ("a\tb", ("a\\tb",)),
        ("a\u202eb\u2066", ("a<U+202E>b<U+2066>",)),
        ("l\u200bs", ("l<U+200B>s",)),
        ("\U000e0041tag", ("<U+E0041>tag",)),
        ("\u2028x\u0085y", ("<U+2028>x<U+0085>y",)),
        ("a\u00a0b\u3000c", ("a<U+00A0>b<U+3000>c",)),
        ("\u3164\u2800\u115f", ("<U+3164><U+2800><U+115F>",)),
        ("c\u0430t", ("c<U+0430>t",)),
        ("ｃｕｒｌ", ("<U+FF43><U+FF55><U+FF52><U+FF4C>",)),
        ("𝐥𝐬", ("<U+1D425><U+1D42C>",)),
        ("e\u0301", ("e<U+0301>",)),
        ("x" + " " * 4_000 + "rm", ("x<4000 spaces>rm",)),
        ("정확도 é ß 漢字 привет", ("정확도 é ß 漢字 привет",)),
        ("🍸", ("🍸",)),
        ("", ("",)),
    ],
)
def test_what_does_not_print_or_looks_like_something_else_is_spelled_out(text: str, lines: tuple[str, ...]) -> None:
    assert shown(text).lines == lines


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("git status", ()),
        ("정확도 é", ()),
        ("c\u0430t", ("1 times U+0430, CYRILLIC SMALL LETTER A", "1 letters of the cyrillic script")),
        ("сору x", ("4 letters of the cyrillic script",)),
        ("\x1b\x1b", ("2 times U+001B, a control character",)),
    ],
)
def test_what_was_spelled_out_is_said_beside_the_text(text: str, warnings: tuple[str, ...]) -> None:
    assert shown(text).warnings == warnings


@given(text=st.text(max_size=80))
def test_nothing_that_moves_or_hides_reaches_the_terminal(text: str) -> None:
    """Each line is printable, and no line begins but where one of the text does."""
    made = shown(text)
    assert len(made.lines) == text.count("\n") + 1
    for line in made.lines:
        assert line.isprintable()
        assert not any(unicodedata.category(letter) in ("Cf", "Cc", "Mn", "Zl", "Zp") for letter in line)


@given(text=st.text(alphabet=st.characters(codec="ascii", exclude_characters="\n"), max_size=80))
def test_two_texts_that_differ_are_shown_differently(text: str) -> None:
    """What is spelled out is spelled out reversibly, as long as nobody writes such a spelling himself."""
    if "<" in text or "\\" in text:
        return
    (line,) = shown(text).lines
    back = line.replace("\\t", "\t")
    for code in range(32):
        back = back.replace(f"<U+{code:04X}>", chr(code))
    back = back.replace("<U+007F>", "\x7f")
    for count in range(8, 81):
        back = back.replace(f"<{count} spaces>", " " * count)
    assert back == text
