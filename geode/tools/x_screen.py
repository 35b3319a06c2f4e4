"""A screen of an X server: pictures by Pillow, the pointer and the keyboard by the XTEST extension.

Needs the extra `geode[computer]`. Nothing else imports it, so that nobody pays for what they do not use.
"""

import io
from pathlib import Path
from typing import Final

from PIL import ImageGrab
from Xlib import XK, X, error
from Xlib.display import Display
from Xlib.ext import xtest

from geode.tools.computer import ScreenFailed, Size

_SOCKETS: Final = Path("/tmp/.X11-unix")  # noqa: S108  (where X servers have them)
_UNICODE: Final = 0x01000000  # a keysym above this is a code point; below 256 both are the same
_LATIN_1_MAX = 0xFF
_CONTROLS: Final = {"\n": "Return", "\t": "Tab", "\r": "Return"}
_NAMES: Final = {
    "ctrl": "Control_L",
    "control": "Control_L",
    "shift": "Shift_L",
    "alt": "Alt_L",
    "super": "Super_L",
    "enter": "Return",
    "esc": "Escape",
    "space": "space",
    "backspace": "BackSpace",
    "tab": "Tab",
    "delete": "Delete",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
}


class XScreen:
    """The `Screen` of the display `name`, such as `:1`.

    Raises:
        ScreenFailed: if there is no such display, or it has no XTEST.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        if name.startswith(":") and not _SOCKETS.joinpath(f"X{name[1:].partition('.')[0]}").exists():
            raise ScreenFailed(f"the display {name!r} cannot be opened: no X server of this machine has that number")
        try:
            self._display = Display(name)
        except (error.DisplayError, OSError) as problem:
            raise ScreenFailed(
                f"the display {name!r} cannot be opened ({problem}); is an X server running?"
            ) from problem
        if not self._display.has_extension("XTEST"):
            raise ScreenFailed(f"the display {name!r} has no XTEST, which the pointer and the keyboard need")
        self._spare = self._unused_keycode()

    def close(self) -> None:
        """Leave the display."""
        self._display.close()

    def size(self) -> Size:
        """See `Screen`."""
        screen = self._display.screen()
        return Size(width=screen.width_in_pixels, height=screen.height_in_pixels)

    def picture(self) -> bytes:
        """See `Screen`."""
        try:
            image = ImageGrab.grab(xdisplay=self._name)
        except OSError as problem:
            raise ScreenFailed(f"no picture of {self._name!r} can be taken ({problem})") from problem
        written = io.BytesIO()
        image.save(written, "PNG")
        return written.getvalue()

    def move(self, x: int, y: int) -> None:
        """See `Screen`."""
        xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
        self._display.sync()

    def press(self, button: int) -> None:
        """See `Screen`."""
        xtest.fake_input(self._display, X.ButtonPress, button)
        xtest.fake_input(self._display, X.ButtonRelease, button)
        self._display.sync()

    def key(self, combination: str) -> None:
        """See `Screen`."""
        parts = [part for part in combination.replace(" ", "").split("+") if part] or [combination]
        symbols = [self._symbol(part) for part in parts]
        codes = [self._code(symbol) for symbol in symbols]
        for code in codes:
            xtest.fake_input(self._display, X.KeyPress, code)
        for code in reversed(codes):
            xtest.fake_input(self._display, X.KeyRelease, code)
        self._display.sync()

    def type(self, text: str) -> None:
        """See `Screen`."""
        shift = self._code(XK.string_to_keysym("Shift_L"))
        for letter in text:
            symbol = self._symbol(_CONTROLS[letter]) if letter in _CONTROLS else _symbol_of(letter)
            found = list(self._display.keysym_to_keycodes(symbol))
            plain = [(code, level) for code, level in found if level in (0, 1)]
            code, level = plain[0] if plain else (self._lent(symbol), 0)
            if level:
                xtest.fake_input(self._display, X.KeyPress, shift)
            xtest.fake_input(self._display, X.KeyPress, code)
            xtest.fake_input(self._display, X.KeyRelease, code)
            if level:
                xtest.fake_input(self._display, X.KeyRelease, shift)
            self._display.sync()

    def _symbol(self, name: str) -> int:
        known = _NAMES.get(name.lower(), name)
        symbol = int(XK.string_to_keysym(known)) or (_symbol_of(known) if len(known) == 1 else 0)
        if not symbol:
            raise ScreenFailed(f"there is no key {name!r}; write ctrl+s, Return, F5 or a letter")
        return symbol

    def _code(self, symbol: int) -> int:
        return int(self._display.keysym_to_keycode(symbol)) or self._lent(symbol)

    def _lent(self, symbol: int) -> int:
        """Lend a key that no letter is on to a symbol that no key has."""
        self._display.change_keyboard_mapping(self._spare, [(symbol, symbol)])
        self._display.sync()
        return self._spare

    def _unused_keycode(self) -> int:
        first = self._display.display.info.min_keycode
        count = self._display.display.info.max_keycode - first + 1
        for place, symbols in enumerate(self._display.get_keyboard_mapping(first, count)):
            if not any(symbols):
                return int(first + place)
        raise ScreenFailed(f"every key of {self._name!r} is in use, so that no other letter can be typed")


def _symbol_of(letter: str) -> int:
    code = ord(letter)
    return code if code <= _LATIN_1_MAX else _UNICODE + code
