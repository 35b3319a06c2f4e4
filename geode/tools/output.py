"""What a program printed, made into text for a model: bounded, decoded once, and without control sequences.

The bytes are kept as they came until the program has ended, so no character is ever decoded in halves.
"""

import re
from dataclasses import dataclass, field

HEAD_BYTES = 16_000
TAIL_BYTES = 16_000
_BORDER_BYTES = 2_000  # how far a cut may move to fall on a line's end
_MAX_CHARACTER_BYTES = 4
_BAD_SHARE = 0.1
_FEW_BAD = 16
_REPLACED = "\ufffd"
_CONTROL = re.compile(
    r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]                    # CSI: colours, cursor moves, erasing
    | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)  # OSC, DCS: titles, links
    | \x1b[ -/]*[0-~]?                                    # other escapes
    | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]               # other controls
    """,
    re.VERBOSE,
)
_BAD = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")


@dataclass(slots=True)
class Capture:
    """Keeps the head and the tail of a stream, however long it is, and counts all of it."""

    head_bytes: int = HEAD_BYTES
    tail_bytes: int = TAIL_BYTES
    total_bytes: int = 0
    _head: bytearray = field(default_factory=bytearray, repr=False)
    _tail: bytearray = field(default_factory=bytearray, repr=False)

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total_bytes += len(data)
        room = self.head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Trimmed at twice its size, so that the cost of moving bytes stays in proportion to what was read.
        if len(self._tail) > 2 * self.tail_bytes:
            del self._tail[: len(self._tail) - self.tail_bytes]

    @property
    def head(self) -> bytes:
        """The first bytes, as they came."""
        return bytes(self._head)

    def text(self) -> str:
        """Return the text, with the exact number of bytes that were left out between head and tail.

        Text that is mostly not text is named, not shown.
        """
        if self.total_bytes <= self.head_bytes + self.tail_bytes:
            return _readable(bytes(self._head + self._tail), self.total_bytes)
        head = _to_border(bytes(self._head))
        tail = _from_border(bytes(self._tail[max(0, len(self._tail) - self.tail_bytes) :]))
        cut = self.total_bytes - len(head) - len(tail)
        shown = _readable(head, self.total_bytes)
        if shown == _binary(self.total_bytes):
            return shown
        line_end = "" if shown.endswith("\n") else "\n"
        mark = f"[... {cut} of {self.total_bytes} bytes left out; redirect the output to a file to see all ...]"
        return f"{shown}{line_end}{mark}\n{_readable(tail, self.total_bytes)}"


def without_controls(text: str) -> str:
    """Strip terminal control sequences; a carriage return ends a line."""
    if text.isprintable():
        return text
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def is_binary(text: str) -> bool:
    """Whether so much of a decoded text is no text that showing it would only do harm."""
    if text.isascii() and text.isprintable():
        return False
    bad = len(_BAD.findall(text))
    return bad > _FEW_BAD and bad > _BAD_SHARE * len(text)


def _readable(data: bytes, total_bytes: int) -> str:
    text = data.decode("utf-8", "replace")
    return _binary(total_bytes) if is_binary(text) else without_controls(text)


def _binary(total_bytes: int) -> str:
    return f"[binary output, {total_bytes} bytes, not shown; redirect it to a file to keep it]"


def _to_border(data: bytes) -> bytes:
    """Drop what follows the last line's end if one is near, else a character that is not whole."""
    end = data.rfind(b"\n", len(data) - _BORDER_BYTES)
    if end >= 0:
        return data[: end + 1]
    for back in range(1, min(_MAX_CHARACTER_BYTES, len(data) + 1)):
        lead = data[-back]
        if lead >= 0xC0:  # a lead byte; it promises 2, 3 or 4 bytes
            promised = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return data[:-back] if promised > back else data
        if lead < 0x80:
            break
    return data


def _from_border(data: bytes) -> bytes:
    """Begin after the first line's end if one is near, else at a whole character."""
    start = data.find(b"\n", 0, _BORDER_BYTES)
    if start >= 0:
        return data[start + 1 :]
    for skip in range(min(_MAX_CHARACTER_BYTES, len(data))):
        if data[skip] & 0xC0 != 0x80:  # not a continuation byte
            return data[skip:]
    return data
