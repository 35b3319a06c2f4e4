"""Text of a stranger as a person can read it: nothing invisible, nothing that turns direction, and bounded."""

import unicodedata

from geode.redaction import clean_text

# Format characters (zero width, direction, tags), controls, private use.
_UNSEEN = frozenset(("Cf", "Cc", "Co", "Cs", "Zl", "Zp"))


def plain_text(text: str, chars_max: int) -> str:
    """Return `text` without what cannot be seen, cut at `chars_max` with a mark."""
    seen = "".join(c for c in clean_text(text) if c in "\n\t" or unicodedata.category(c) not in _UNSEEN).strip()
    return seen if len(seen) <= chars_max else f"{seen[:chars_max]}… [cut]"
