"""The server: `with FakeProvider(script) as double: double.base_url(Route.ANTHROPIC)`."""

import socket
import threading
from collections.abc import Callable, Mapping
from typing import Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route as Path

from geode.dev.fake_provider.endpoints import BASES
from geode.dev.fake_provider.handling import Handler
from geode.dev.fake_provider.keys import FAKE_KEYS
from geode.dev.fake_provider.log import RecordedRequest
from geode.dev.fake_provider.player import Player
from geode.dev.fake_provider.script import Script
from geode.llm.routes import Route

_STOP_S_MAX: Final = 10.0


class PortUnavailable(Exception):  # noqa: N818  (named by what happened)
    """The double cannot listen; the message names the port and what to do."""


class FakeProvider:
    """A provider on 127.0.0.1 that plays `script`, or its own small agent if there is none.

    A context manager; it listens inside. `play` changes the script and forgets what was recorded, and keeps the port.
    `app` can be driven without a socket as well.

    Args:
        script: what to do.
        keys: the key of each route, in place of the made-up ones. The one of `openai-codex` is a subscription token.
        port: 0 for any that is free.
        on_request: called with each request once it is decided, on the server's thread.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        keys: Mapping[Route, str] | None = None,
        port: int = 0,
        on_request: Callable[[RecordedRequest], None] | None = None,
    ) -> None:
        self._keys = {**FAKE_KEYS, **(keys or {})}
        self._port = port
        self._on_request = on_request
        self._handler = Handler(Player(script or Script()), self._keys, on_request)
        self.app = Starlette(routes=[Path("/{path:path}", self._serve, methods=["GET", "POST"])])
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        listener = _listen(self._port)
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self.app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # a connection that the script drops is no news
            access_log=False,
            timeout_graceful_shutdown=0,
            timeout_keep_alive=60,  # longer than clients keep an idle connection, so that none is closed as it is used
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="fake-provider", daemon=True)
        # It listens already: who connects before the thread runs waits in the backlog.
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_STOP_S_MAX)

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self._port}"

    def base_url(self, route: Route) -> str:
        """Return the base URL of `route` as its SDK wants it."""
        return self.url + BASES[route]

    def key(self, route: Route) -> str:
        """Return the key that `route` takes."""
        return self._keys[route]

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """What was sent, in order."""
        return self._handler.log.requests

    @property
    def abandoned(self) -> int:
        """How many streams were left by their client; seen where the step has `event_ms`."""
        return self._handler.log.abandoned

    @property
    def steps_left(self) -> int:
        """How many steps of the script nobody has taken."""
        return self._handler.player.left

    def wait(self, requests: int, *, abandoned: int = 0, timeout_s: float = 5.0) -> bool:
        """Wait until so many requests came, and so many streams were left; return whether that is so."""
        return self._handler.log.wait(requests, abandoned=abandoned, timeout_s=timeout_s)

    def play(self, script: Script) -> None:
        """Play another script from its start, as if nothing had been asked before."""
        self._handler = Handler(Player(script), self._keys, self._on_request)

    async def _serve(self, http: HttpRequest) -> Response:
        return await self._handler.serve(http)


def _listen(port: int) -> socket.socket:
    # With its protocol named: asyncio sends small packets at once only where it sees that it is TCP, and replies of two
    # packets would else wait 40 ms for the client's acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise PortUnavailable(f"port {port} on 127.0.0.1: {error.strerror}; name another one, or 0 for any") from error
    return listener
