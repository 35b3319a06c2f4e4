"""Programs that do nothing but start another one (`env`, `nice`, `xargs`), and where in their words it stands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from geode.executor.shell.started import Started
from geode.executor.shell.syntax import UNKNOWN, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options of a program that stand in front of what it starts."""

    plain: str = ""
    valued: str = ""
    long: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    operands: int = 0


CARRIERS: Final = {
    "nohup": _Options(),
    "nice": _Options(plain="0123456789", valued="n", long_valued=("--adjustment",)),
    "ionice": _Options(plain="t", valued="cn"),
    "timeout": _Options(
        plain="vfp",
        valued="ks",
        long=("--foreground", "--preserve-status", "--verbose"),
        long_valued=("--signal", "--kill-after"),
        operands=1,
    ),
    "time": _Options(plain="pv"),
    "setsid": _Options(plain="cfw"),
    "stdbuf": _Options(valued="ioe", long_valued=("--input", "--output", "--error")),
    "command": _Options(plain="p"),
    "builtin": _Options(),
    "exec": _Options(plain="cl", valued="a"),
    "env": _Options(plain="i0v", valued="uC", long=("--ignore-environment",), long_valued=("--unset", "--chdir")),
    "xargs": _Options(
        plain="0rtx",
        valued="adEILnPs",
        long=("--null", "--no-run-if-empty", "--verbose", "--exit"),
        long_valued=(
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-lines",
            "--max-procs",
            "--max-chars",
            "--replace",
        ),
    ),
}


def read_carrier(name: str, options: _Options, words: Sequence[Word], started: Started) -> None:
    """Note what the carrier `name` starts."""
    started.carrier = True
    if name == "command" and len(words) > 1 and words[1].text in ("-v", "-V"):
        return  # it only looks where the program is
    found = _after_options(options, words)
    if found is None:
        started.doubt(f"{name} has options that are not read")
        return
    rest = list(found)
    if name == "env":
        rest = _after_assignments(rest, started)
    if not rest:
        return
    if name == "xargs":
        rest = _with_arguments(rest, words, started)
    started.commands.append(tuple(rest))


def _after_options(options: _Options, words: Sequence[Word]) -> Sequence[Word] | None:
    """Return the words from the started program on, or None for an option that is not known."""
    position = 1
    while position < len(words):
        text = words[position].text
        if text is None and words[position].may_be_option:
            return None
        if text is None or not text.startswith("-") or text == "-":
            break
        position += 1
        if text == "--":
            break
        width = _width(options, text)
        if width is None:
            return None
        position += width
    return words[position + options.operands :]


def _width(options: _Options, text: str) -> int | None:
    """Return how many words the option `text` takes after itself, None if it is not known."""
    if text.startswith("--"):
        name, _, value = text.partition("=")
        if name in options.long and not value:
            return 0
        return (0 if value else 1) if name in options.long_valued else None
    for index, letter in enumerate(text[1:], 2):
        if letter in options.valued:
            return 0 if text[index:] else 1
        if letter not in options.plain:
            return None
    return 0


def _after_assignments(words: list[Word], started: Started) -> list[Word]:
    while words and (found := _ASSIGNMENT.match(words[0].start)):
        started.sets(found[1])
        words = words[1:]
    if words and words[0].text is None:
        started.doubt("what env starts is named by an expansion")
    return words


def _with_arguments(rest: list[Word], words: Sequence[Word], started: Started) -> list[Word]:
    placed = next(
        (
            (word.text or "")[2:] or (words[index + 1].text if index + 1 < len(words) else None)
            for index, word in enumerate(words)
            if (word.text or "").startswith("-I")
        ),
        None,
    )
    if any((word.text or "").startswith("--replace") for word in words):
        placed = ""
    if placed is None:
        return [*rest, UNKNOWN]
    if not placed:
        started.doubt("xargs puts its input where nobody can read")
        return rest
    return [UNKNOWN if word.text is not None and placed in word.text else word for word in rest]
