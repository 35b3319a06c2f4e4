"""Patterns of rules: which commands, paths and hosts a rule means.

What allows is read narrowly, what denies widely: an allowing pattern must fit the whole command word by word, a denying
one fits however the options are written and in whatever place its program lies.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache

from geode.executor.shell.readers import GIT_WITHOUT_EFFECT, without_git_options
from geode.executor.shell.started import program_of
from geode.executor.shell.syntax import Word

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^\s/?#@\\]*@)?(\[[^\]\s]*\]|[^\s/?#:\\'\"]*)")


class Fit(Enum):
    """Whether a denying pattern means a command. `MAYBE`: it depends on what only the shell will know."""

    NO = 0
    MAYBE = 1
    YES = 2


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """`git status *`: words, each of which may hold `*` and `?`. A last `*` by itself stands for any further words."""

    words: tuple[str, ...]
    open_end: bool

    @classmethod
    def parse(cls, text: str) -> "CommandPattern":
        """Read a pattern.

        Raises:
            ValueError: if it has no words, or an open quote.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is no command pattern ({error})") from error
        if not words:
            raise ValueError("a command pattern needs at least a program; for every command leave `command` out")
        open_end = len(words) > 1 and words[-1] == "*"
        return cls(tuple(words[:-1] if open_end else words), open_end)

    def allows(self, words: Sequence[Word]) -> bool:
        """Whether this means exactly the command `words`."""
        if program_of(words[0]) == "git":
            words = without_git_options(words, GIT_WITHOUT_EFFECT)
        if program_of(words[0]) != self.words[0] or len(words) < len(self.words):
            return False
        if not self.open_end and len(words) > len(self.words):
            return False
        pairs = zip(self.words[1:], words[1:], strict=False)
        return all(word.text is not None and _fits_word(pattern, word.text) for pattern, word in pairs)

    def forbids(self, words: Sequence[Word]) -> Fit:
        """Whether this means the command `words`, however its options are written."""
        program = program_of(words[0])
        if program is None:
            return Fit.MAYBE
        if not fnmatchcase(program.rsplit("/", 1)[-1], self.words[0]) and not fnmatchcase(program, self.words[0]):
            return Fit.NO
        rest = without_git_options(words)[1:] if program.rsplit("/", 1)[-1] == "git" else words[1:]
        texts = [word.text for word in rest if word.text is not None]
        options, operands = _sorted_out(texts)
        wanted_options, wanted_operands = _sorted_out(self.words[1:])
        found = wanted_options <= options and _in_order(wanted_operands, operands, first=program == "git")
        if found:
            return Fit.YES
        return Fit.MAYBE if len(texts) < len(rest) else Fit.NO


def _fits_word(pattern: str, text: str) -> bool:
    # A pattern such as `src/*` means what lies below, not what the dots lead to.
    climbs = ".." in text.split("/") and ".." not in pattern.split("/")
    return fnmatchcase(text, pattern) and not climbs


def _sorted_out(texts: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return options, a letter each if they are short, and the other words."""
    options: set[str] = set()
    operands: list[str] = []
    for text in texts:
        if text.startswith("--") and len(text) > 2:
            options.add(text.partition("=")[0])
        elif text.startswith("-") and len(text) > 1:
            options.update(f"-{letter}" for letter in text[1:])
        elif text != "--":
            operands.append(text)
    return options, operands


def _in_order(wanted: Sequence[str], operands: Sequence[str], *, first: bool) -> bool:
    """Whether operands that fit `wanted` stand in this order: the first ones, or any, since some belong to options."""
    if first:
        return len(operands) >= len(wanted) and all(
            fnmatchcase(text, want) for want, text in zip(wanted, operands, strict=False)
        )
    rest = iter(operands)
    return all(any(fnmatchcase(text, want) for text in rest) for want in wanted)


def path_pattern(*patterns: str, anywhere: bool = False) -> re.Pattern[str]:
    """Return what fits a path, relative to the workspace, that one of `patterns` means, or that lies below such a one.

    `*` stays within a folder, `**` does not. A pattern without a slash means the name in any folder; with `anywhere`
    every pattern does. Letters count alike in either case, as some disks have it.
    """
    written = (_path_expression(pattern, anywhere=anywhere) for pattern in patterns)
    return re.compile(f"(?:{'|'.join(written)})(?:/.*)?", re.DOTALL | re.IGNORECASE)


def _path_expression(pattern: str, *, anywhere: bool) -> str:
    pattern = pattern.removeprefix("/workspace/").removeprefix("./")
    written = ""
    for part in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern):
        written += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return written if "/" in pattern and not anywhere else f"(?:.*/)?{written}"


@lru_cache(maxsize=256)
def _one_path_pattern(pattern: str) -> re.Pattern[str]:
    return path_pattern(pattern)


def path_fits(pattern: str, path: str) -> bool:
    """Whether `path`, relative to the workspace, is what `pattern` means, or lies below it."""
    return _one_path_pattern(pattern).fullmatch(path) is not None


def hosts_in(text: str) -> list[str]:
    """Return the hosts of all URLs in `text`."""
    return [found[1].strip("[]").rstrip(".").lower() for found in _URL.finditer(text) if found[1]]


def host_fits(pattern: str, host: str) -> bool:
    """`example.org` means this host, `*.example.org` every host below it."""
    return fnmatchcase(host, pattern.lower())
