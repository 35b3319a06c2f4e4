"""What must not leave in the arguments of a call, however it is written: secrets of ours, and the system prompt.

A model never has any business with a secret of ours, so that a call which holds one is refused, whatever it is for. The
system prompt is known to it, and a part of it in a call that reaches outside is for somebody to see first.
"""

import base64
import re
from collections.abc import Iterator
from functools import cached_property
from urllib.parse import unquote

from geode.authority import Arguments
from geode.executor.touched import texts_in
from geode.redaction import Redactor

_PART_CHARS = 40  # letters and digits in a row that no text shares with another one by chance
_PIECE_CHARS_MIN = 4
_SECRET_CHARS_MIN = 10
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){8,}")
_NOT_PLAIN = re.compile(r"[^0-9a-z]+")


class Outgoing:
    """Looks through arguments.

    Args:
        redactor: knows the secrets.
        prompt: the system prompt.
    """

    def __init__(self, redactor: Redactor, prompt: str = "") -> None:
        self._secrets = tuple((secret, _plain(secret)) for secret in redactor.secrets if _is_no_word(secret))
        self._prompt = prompt

    def holds_secret(self, arguments: Arguments) -> bool:
        """Whether a secret stands in the arguments: as it is, encoded, reversed, broken up, or in two pieces."""
        if not self._secrets:
            return False
        for text in _readings(arguments):
            plain = _plain(text)
            if any(secret in text or letters in plain or _in_two(secret, text) for secret, letters in self._secrets):
                return True
        return False

    def holds_prompt(self, arguments: Arguments) -> bool:
        """Whether a part of the system prompt stands in the arguments."""
        return any(
            plain[start : start + _PART_CHARS] in self._parts
            for plain in map(_plain, _readings(arguments))
            for start in range(len(plain) - _PART_CHARS + 1)
        )

    @cached_property
    def _parts(self) -> frozenset[str]:
        plain = _plain(self._prompt)
        return frozenset(plain[start : start + _PART_CHARS] for start in range(len(plain) - _PART_CHARS + 1))


def _is_no_word(secret: str) -> bool:
    """Whether nobody writes it without meaning it: a password that is a word stands in too much honest text."""
    plain = _plain(secret)
    mixed = not plain.isalpha() and not plain.isdecimal()
    return len(plain) >= _SECRET_CHARS_MIN * (1 if mixed else 2)


def _plain(text: str) -> str:
    return _NOT_PLAIN.sub("", text.lower())


def _in_two(secret: str, text: str) -> bool:
    """Whether the beginning and the rest of the secret both stand in the text, wherever it was cut."""
    if secret[:_PIECE_CHARS_MIN] not in text or secret[-_PIECE_CHARS_MIN:] not in text:
        return False
    return _longest(secret, text, head=True) + _longest(secret, text, head=False) >= len(secret)


def _longest(secret: str, text: str, *, head: bool) -> int:
    """Return how much of the secret's beginning, or end, stands in the text. If so much does, less does, too."""
    low, high = 0, len(secret)
    while low < high:
        middle = (low + high + 1) // 2
        if (secret[:middle] if head else secret[len(secret) - middle :]) in text:
            low = middle
        else:
            high = middle - 1
    return low


def _readings(arguments: Arguments) -> Iterator[str]:
    """Yield all texts of the arguments as one, and what they may stand for."""
    text = "\n".join(texts_in(dict(arguments)))
    yield text
    yield text[::-1]
    if "%" in text:
        yield unquote(text)
    yield from _decoded(text)


def _decoded(text: str) -> Iterator[str]:
    for found in _HEX.findall(text):
        yield bytes.fromhex(found).decode("utf-8", "replace")
    for found in _BASE64.findall(text):
        digits = found.rstrip("=").replace("-", "+").replace("_", "/")
        for before in range(4):  # what stands in front of it may be read as digits of it
            part = digits[before:]
            part = part[:-1] if len(part) % 4 == 1 else part
            yield base64.b64decode(part + "=" * (-len(part) % 4)).decode("utf-8", "replace")
