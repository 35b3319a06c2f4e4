"""What the double gave out and wants back unchanged: seals of reasoning, paused turns, blocks nobody knows."""

from collections.abc import Sequence
from typing import Any, Final

from geode.dev.fake_provider.wire import canonical, is_seal

_KEPT_MAX: Final = 50_000


class Given:
    """Remembers, up to a limit, the oldest forgotten first. Seals of its own making are known without memory."""

    def __init__(self) -> None:
        self._sealed: dict[str, str] = {}
        self._before: dict[str, tuple[str, ...]] = {}
        self._whole: dict[str, None] = {}

    def keep_seal(self, sealed: str, text: str) -> None:
        """Remember that `sealed` stands for `text`."""
        _put(self._sealed, sealed, text)

    def is_sealed(self, sealed: str, text: str) -> bool:
        """Return whether reasoning came back as it was given out."""
        return is_seal(sealed, text) or self._sealed.get(sealed) == text

    def keep_before(self, call_id: str, reasoning: Sequence[object]) -> None:
        """Remember the reasoning that led to a call."""
        _put(self._before, call_id, tuple(canonical(item) for item in reasoning))

    def before(self, call_id: str) -> tuple[str, ...]:
        """Return, in canonical form, the reasoning that must come back with a call; nothing for calls of others."""
        return self._before.get(call_id, ())

    def keep_whole(self, content: object) -> None:
        """Remember something that may come back as it is."""
        _put(self._whole, canonical(content), None)

    def is_whole(self, content: object) -> bool:
        """Return whether `content` was given out like this."""
        return canonical(content) in self._whole


def _put(kept: dict[str, Any], key: str, value: object) -> None:
    if len(kept) >= _KEPT_MAX:
        del kept[next(iter(kept))]
    kept[key] = value
