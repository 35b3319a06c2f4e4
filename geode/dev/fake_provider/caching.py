"""The Messages API's prompt cache: which part of a prompt was read from it, and which is written to it."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from geode.dev.fake_provider.anthropic_rules import blocks_of
from geode.dev.fake_provider.wire import Body, canonical, tokens_of

_PREFIX_TOKENS_MIN: Final = 512  # of Opus 5; a shorter prefix is silently not kept
_LOOK_BACK_BLOCKS: Final = 20
_KEPT_MAX: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """Tokens of one prompt that were read and written."""

    read: int = 0
    written: int = 0


class PromptCache:
    """Remembers prefixes by their digest. Nothing in it expires."""

    def __init__(self) -> None:
        self._kept: dict[str, None] = {}

    def look_up(self, body: Body) -> Cached:
        """Return what the cache did for this prompt, and keep its marked prefixes."""
        running, tokens, prefixes, marked = hashlib.sha256(), 0, [], []
        for block in _blocks(body):
            text = canonical({key: value for key, value in block.items() if key != "cache_control"})
            running.update(text.encode("utf-8", "surrogatepass"))
            tokens += tokens_of(text)
            prefixes.append((running.hexdigest(), tokens))
            if block.get("cache_control"):
                marked.append(len(prefixes) - 1)
        if body.get("cache_control") and prefixes:
            marked.append(len(prefixes) - 1)
        marked = [at for at in marked if prefixes[at][1] >= _PREFIX_TOKENS_MIN]
        if not marked:
            return Cached()
        read = max(
            (
                prefixes[back][1]
                for at in marked
                for back in range(max(0, at - _LOOK_BACK_BLOCKS), at + 1)
                if prefixes[back][0] in self._kept
            ),
            default=0,
        )
        for at in marked:
            while len(self._kept) >= _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[prefixes[at][0]] = None
        return Cached(read=read, written=max(0, prefixes[marked[-1]][1] - read))


def _blocks(body: Body) -> Iterator[Mapping[str, Any]]:
    yield from body.get("tools", [])
    system = body.get("system") or []
    yield from [{"type": "text", "text": system}] if isinstance(system, str) else system
    for message in body["messages"]:
        yield from blocks_of(message)
