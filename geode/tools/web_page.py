"""One page of the public web: asked for, followed through its redirects, and read. It owns the network's libraries.

No cookie or credential is ever sent, each redirect is judged like the first address, and size is bounded.
"""

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpcore
from inscriptis import get_text

import geode
from geode.redaction import clean_text
from geode.tools.output import without_controls
from geode.tools.spec import OutOfScope, ToolFailed
from geode.tools.web_address import NotPublic, PublicNetwork

BYTES_MAX = 4_000_000
REDIRECTS_MAX = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = (
    ("User-Agent", f"geode/{geode.__version__}"),
    ("Accept", "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8"),
    ("Accept-Encoding", "identity"),  # so that the bytes that are counted are the bytes that are read
)
_IS_HTML = re.compile(r"text/html|application/xhtml\+xml")
_IS_TEXT = re.compile(r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|yaml|javascript)\b")
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What came back, and the URL that it came from after all redirects. `cut` says that there was more."""

    url: str
    status: int
    kind: str
    body: bytes
    cut: bool

    @property
    def is_good(self) -> bool:
        """Whether the server says that this is what was asked for."""
        return 200 <= self.status < 300

    def text(self) -> str:
        """Return the readable text, without control characters.

        Raises:
            ToolFailed: if it claims to be HTML and cannot be read as such.
        """
        if not _IS_TEXT.match(self.kind):
            return f"({self.kind or 'content of no stated type'}, {len(self.body)} bytes: no text)"
        found = _CHARSET.search(self.kind)
        try:
            text = self.body.decode(found[1] if found else "utf-8", "replace")
        except LookupError:
            text = self.body.decode("utf-8", "replace")
        if _IS_HTML.match(self.kind):
            text = _readable(text)
        note = f"\n[cut after {BYTES_MAX} bytes]" if self.cut else ""
        return without_controls(clean_text(text)).strip() + note


async def get_page(
    url: str, *, time_limit_s: float, checked: Callable[[str], str], network: httpcore.AsyncNetworkBackend | None = None
) -> Page:
    """Fetch `url` from what `network` reaches, by default the public network. `checked` judges each redirect.

    Raises:
        OutOfScope: if a host is not of the public network, or a redirect leads where nothing may go.
        ToolFailed: if it cannot be fetched.
    """
    try:
        return await _get(network or PublicNetwork(), url, time_limit_s, checked)
    except NotPublic as problem:
        raise OutOfScope(str(problem)) from problem
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, ssl.SSLError) as error:
        raise ToolFailed(f"it cannot be fetched: {str(error) or type(error).__name__}") from error


async def _get(
    network: httpcore.AsyncNetworkBackend, url: str, time_limit_s: float, checked: Callable[[str], str]
) -> Page:
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), time_limit_s)
    async with httpcore.AsyncConnectionPool(
        ssl_context=ssl.create_default_context(), network_backend=network, max_connections=1
    ) as pool:
        for _ in range(REDIRECTS_MAX + 1):
            headers = [("Host", urlsplit(url).netloc), *_HEADERS]
            async with pool.stream("GET", url, headers=headers, extensions={"timeout": timeouts}) as response:
                told = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
                if response.status in _REDIRECTS and "location" in told:
                    following = checked(urljoin(url, told["location"]))
                    if url.startswith("https:") and following.startswith("http:"):
                        raise OutOfScope(f"{url} leads from https to {following}, which is not followed")
                    url = following
                    continue
                body = bytearray()
                async for chunk in response.aiter_stream():
                    body += chunk
                    if len(body) > BYTES_MAX:
                        break
                kind = told.get("content-type", "").lower()
                cut = len(body) > BYTES_MAX
                return Page(url=url, status=response.status, kind=kind, body=bytes(body[:BYTES_MAX]), cut=cut)
    raise ToolFailed(f"it leads on more than {REDIRECTS_MAX} times")


def _readable(html: str) -> str:
    try:
        return str(get_text(html))
    except (ValueError, RecursionError, AssertionError) as error:
        raise ToolFailed(f"the page cannot be read as HTML ({type(error).__name__})") from error
