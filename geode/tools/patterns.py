"""How much time a regular expression can take, judged by its shape: `re` cannot be interrupted once it runs.

Both judgements err on the side of caution: they look at the text of the pattern, not at what its parts can match.
"""

import re
import warnings
from functools import lru_cache

MAX_PATTERN_CHARS = 1_000
_MAX_REPETITIONS = 8  # `a?a?a?...aaa` doubles its time with each
_LITERAL = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_BACK_REFERENCE = re.compile(r"\\[1-9]|\(\?P=")
_GROUP_HEAD = re.compile(r"\(\?(?:P?<\w+>|<[=!]|[:=!>]|[a-zA-Z-]+:?)")
_INNERMOST_GROUP = re.compile(r"\(([^()]*)\)([*+{?]?)")


@lru_cache(maxsize=256)
def compiled_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that somebody else wrote.

    Raises:
        ValueError: if it is no regular expression; says where it goes wrong.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hints to the author of a pattern are not for our log
            return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{pattern[:80]!r} is no regular expression ({error})") from error


def degree(pattern: str) -> int | None:
    """The power of a line's length that bounds the time for matching up to one place, or None if none is known.

    Each repetition adds one, if what it repeats is a single character; a search tries every place, which adds one more.
    """
    flat = _flat(pattern)
    if _BACK_REFERENCE.search(pattern) or re.search(r"\)[*+{?]", flat):
        return None
    return len(re.findall(r"[*+{?]", flat))


def can_explode(pattern: str) -> bool:
    """Whether time can grow exponentially: choices inside a repetition, or very many repetitions."""
    flat = _flat(pattern)
    if len(pattern) > MAX_PATTERN_CHARS or len(re.findall(r"[*+{?]", flat)) > _MAX_REPETITIONS:
        return True
    while group := _INNERMOST_GROUP.search(flat):
        has_choice = re.search(r"[*+{?|]", group[1]) is not None
        if has_choice and group[2] in ("*", "+", "{"):
            return True
        # The group becomes a letter, which keeps the mark that a choice stands here.
        flat = flat[: group.start()] + ("x?" if has_choice else "x") + flat[group.end(1) + 1 :]
    return False


def _flat(pattern: str) -> str:
    return _GROUP_HEAD.sub("(", _LITERAL.sub("x", pattern))
