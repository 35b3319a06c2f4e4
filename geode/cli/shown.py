"""Somebody else's text, as a person can judge it: what does not print, or looks like another thing, is spelled out."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

_WORD = re.compile(r"[^\W\d_]+")
_SPACES = re.compile(r" {8,}")
# Scripts with letters that look like Latin ones.
_LIKE_LATIN = frozenset(("ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "DESERET", "GREEK", "LISU"))
# They count as letters or symbols, and show nothing.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_INVISIBLE = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Mc", "Me", "Mn", "Zl", "Zp", "Zs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Lines that hold nothing but what they seem to hold, and what a reader should be told of them."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...]


def shown(text: str) -> Shown:
    """Spell `text` out. Each line break of the text, and nothing else, begins a line."""
    spelled: Counter[str] = Counter()
    lines = tuple(_line(line, spelled) for line in text.split("\n"))
    scripts = Counter(script for letter in text if (script := _script(letter)) in _LIKE_LATIN)
    warnings = [f"{count} times U+{ord(letter):04X}, {_name(letter)}" for letter, count in spelled.most_common(5)]
    if len(spelled) > 5:
        warnings.append(f"{len(spelled) - 5} other characters that are spelled out")
    warnings += [f"{count} letters of the {script.lower()} script" for script, count in scripts.items()]
    return Shown(lines=lines, warnings=tuple(warnings))


def _line(line: str, spelled: Counter[str]) -> str:
    doubles = {
        found.start() + index
        for found in _WORD.finditer(line)
        if not found[0].isascii()
        for index in _doubles(found[0])
    }
    written = []
    for index, letter in enumerate(line):
        if index in doubles or not _is_plain(letter):
            spelled[letter] += 1
            written.append("\\t" if letter == "\t" else f"<U+{ord(letter):04X}>")
        else:
            written.append(letter)
    return _SPACES.sub(lambda found: f"<{len(found[0])} spaces>", "".join(written))


def _is_plain(letter: str) -> bool:
    if letter.isascii():
        return letter.isprintable()
    if letter in _BLANK or unicodedata.category(letter) in _INVISIBLE:
        return False
    # A letter that is another writing of an ASCII one: full width, mathematical.
    return not unicodedata.normalize("NFKC", letter).isascii()


def _doubles(word: str) -> list[int]:
    """Return the places of letters of another script in a word that has Latin ones."""
    scripts = [_script(letter) for letter in word]
    return [i for i, script in enumerate(scripts) if script in _LIKE_LATIN] if "LATIN" in scripts else []


def _script(letter: str) -> str:
    return "LATIN" if letter.isascii() and letter.isalpha() else _name(letter).partition(" ")[0]


def _name(letter: str) -> str:
    return unicodedata.name(letter, "") or {"Cc": "a control character", "Co": "a private character"}.get(
        unicodedata.category(letter), "a character without a name"
    )
