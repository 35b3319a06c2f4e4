"""The exact, single replacement that an edit makes, and what to tell a model whose text does not match."""

import re
from difflib import SequenceMatcher

from geode.tools.spec import ToolFailed

_MAX_LINES_COMPARED = 2_000
_MAX_LINE_CHARS_COMPARED = 300
_NEAR_ENOUGH = 0.5
_MAX_LINES_NAMED = 5


def replaced_once(content: bytes, old_text: str, new_text: str, path: str) -> bytes:
    """Return `content` with the one occurrence of `old_text` replaced.

    Works on bytes, so that a file that is not all UTF-8 keeps the rest as it is. Occurrences that overlap count.

    Raises:
        ToolFailed: if `old_text` does not occur exactly once; says how often, and where to look.
    """
    old, new = old_text.encode(), new_text.encode()
    if not old or old == new:
        raise ToolFailed("old is empty, or the same as new: there is nothing to replace")
    first = content.find(old)
    if first < 0:
        raise ToolFailed(f"old occurs 0 times in {path!r}; it must match exactly{_nearest_line(content, old_text)}")
    if content.find(old, first + 1) >= 0:
        places = [found.start() for found in re.finditer(b"(?=" + re.escape(old) + b")", content)]
        lines = [str(content.count(b"\n", 0, at) + 1) for at in places[:_MAX_LINES_NAMED]]
        more = ", ..." if len(places) > _MAX_LINES_NAMED else ""
        raise ToolFailed(
            f"old occurs {len(places)} times in {path!r} (lines {', '.join(lines)}{more}): take in more of the lines "
            "around the one that is meant"
        )
    return content[:first] + new + content[first + len(old) :]


def _nearest_line(content: bytes, old_text: str) -> str:
    if old_text.replace("\n", "\r\n").encode() in content:
        return "; the file ends its lines with \\r\\n"
    wanted = next((line.strip() for line in old_text.split("\n") if line.strip()), "")
    lines = [line[:_MAX_LINE_CHARS_COMPARED] for line in content.decode("utf-8", "replace").split("\n")]
    best, best_ratio = 0, _NEAR_ENOUGH
    matcher = SequenceMatcher(b=wanted[:_MAX_LINE_CHARS_COMPARED], autojunk=False)
    for number, line in enumerate(lines[:_MAX_LINES_COMPARED], 1):
        matcher.set_seq1(line.strip())
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = number, ratio
    return f"; line {best} is nearest: {lines[best - 1]!r}" if best else ""
