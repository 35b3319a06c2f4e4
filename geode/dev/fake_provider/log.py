"""What the double was sent: each request as it came, with its key taken out."""

import hashlib
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from geode.dev.fake_provider.wire import Body
from geode.llm.routes import Route

_KEPT_MAX: Final = 10_000
_KEY_HEADERS: Final = ("authorization", "x-api-key", "cookie")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """One request and what was decided about it.

    Attributes:
        route: whose endpoint was asked, None for a path that nobody serves.
        headers: by lower-case name; a key is replaced by the first digits of its SHA-256 (`redacted`).
        raw: the body, byte for byte, after its content encoding.
        body: the body parsed; empty if it is no JSON object.
        attempt: 1 for the first request with this path and body, 2 for its first repetition, ...
        status: of the reply.
        error: the body of the reply if it was no answer.
    """

    route: Route | None
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Body
    attempt: int
    status: int
    error: str | None = None


class RequestLog:
    """Keeps the last requests in the order in which they were decided; safe to read from another thread."""

    def __init__(self) -> None:
        self._requests: deque[RecordedRequest] = deque(maxlen=_KEPT_MAX)
        self._count = 0
        self._seen: dict[bytes, int] = {}
        self._abandoned = 0
        self._news = threading.Condition()

    def seen(self, path: str, raw: bytes) -> int:
        """Return how many requests with this path and body were counted before."""
        return self._seen.get(_digest(path, raw), 0)

    def attempt(self, path: str, raw: bytes) -> int:
        """Count one more request with this path and body, and return how many there were."""
        digest = _digest(path, raw)
        attempt = self._seen.pop(digest, 0) + 1
        if len(self._seen) >= _KEPT_MAX:
            del self._seen[next(iter(self._seen))]
        self._seen[digest] = attempt
        return attempt

    def add(self, request: RecordedRequest) -> None:
        """Add a request."""
        with self._news:
            self._requests.append(request)
            self._count += 1
            self._news.notify_all()

    def abandon(self) -> None:
        """Note that a client went away before its stream had ended."""
        with self._news:
            self._abandoned += 1
            self._news.notify_all()

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """The requests so far, the last ten thousand at most."""
        with self._news:
            return tuple(self._requests)

    @property
    def abandoned(self) -> int:
        """How many streams were left by their client."""
        with self._news:
            return self._abandoned

    def wait(self, count: int, *, abandoned: int = 0, timeout_s: float = 5.0) -> bool:
        """Wait until there are so many requests, and abandoned streams; return whether there are."""
        with self._news:
            return self._news.wait_for(lambda: self._count >= count and self._abandoned >= abandoned, timeout=timeout_s)


def _digest(path: str, raw: bytes) -> bytes:
    return hashlib.sha256(path.encode() + b"\0" + raw).digest()


def redacted(key: str) -> str:
    """Return what stands for a key in the log."""
    return "sha256:" + hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def safe_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name, keys redacted."""
    named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    return {name: redacted(bare_key(value)) if name in _KEY_HEADERS else value for name, value in named.items()}


def bare_key(value: str) -> str:
    """Return the key of an Authorization header, or the value as it is."""
    scheme, _, key = value.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else value
