"""What one simple command starts, and under which name rules know a program."""

import re
from dataclasses import dataclass, field
from typing import Final

from geode.executor.shell.syntax import Doubt, Word, steers

_PLACES: Final = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")
_HARMLESS = re.compile(r"LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|CI|COLUMNS|LINES")


@dataclass(slots=True)
class Started:
    """What one simple command starts. `carrier` means that it does nothing itself but start the others."""

    commands: list[tuple[Word, ...]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    carrier: bool = False

    def doubt(self, text: str, *, hides: bool = True) -> "Started":
        """Note a doubt, and return this."""
        self.doubts.append(Doubt(text=text, hides=hides))
        return self

    def sets(self, variable: str, for_whom: str = "for a command") -> None:
        """Note that a variable is set, as far as that is a reason to look."""
        if steers(variable):
            self.doubt(f"it sets {variable}, which can change what runs")
        elif not _HARMLESS.fullmatch(variable):
            self.doubt(f"it sets {variable} {for_whom}", hides=False)


def program_of(word: Word) -> str | None:
    """Return the name under which rules know the program, None if only the shell will know it.

    A program in one of the places of the fixed PATH goes by its name; one anywhere else keeps its whole path, since
    `./ls` is not `ls`.
    """
    if word.text is None:
        return None
    for place in _PLACES:
        if word.text.startswith(place) and "/" not in word.text[len(place) :]:
            return word.text[len(place) :]
    return word.text
