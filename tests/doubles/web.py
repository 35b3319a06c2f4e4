"""A small web on loopback: names that lead to it, pages by path, and a record of what was asked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from geode.tools.web_address import PublicNetwork

Answer = Callable[[asyncio.StreamWriter], None] | bytes
"""A whole response, or what writes one."""


def page(body: bytes | str, *, status: str = "200 OK", kind: str = "text/html; charset=utf-8", **more: str) -> bytes:
    """Return a response with `body`."""
    content = body.encode() if isinstance(body, str) else body
    headers = {"Content-Type": kind, "Content-Length": str(len(content)), "Connection": "close", **more}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + content


@dataclass
class LoopbackWeb:
    """Serves `pages` by path on `port`. `asked` holds each request's head."""

    pages: Mapping[str, Answer]
    port: int = 0
    asked: list[str] = field(default_factory=list)

    def network(self, names: Mapping[str, Sequence[str]] | None = None) -> PublicNetwork:
        """The network on which `names` have these addresses, and every other name is this server's."""

        async def resolve(host: str, port: int) -> Sequence[str]:
            return (names or {}).get(host, ("127.0.0.1",))

        return PublicNetwork(resolve, allowed=lambda address: address == "127.0.0.1")

    def url(self, path: str, host: str = "example.test") -> str:
        """The address of a page."""
        return f"http://{host}:{self.port}{path}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.asked.append(head)
            answer = self.pages.get(head.split(" ")[1], page("none", status="404 Not Found"))
            if callable(answer):
                answer(writer)
            else:
                writer.write(answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(pages: Mapping[str, Answer]) -> AsyncIterator[LoopbackWeb]:
    """Serve pages on a free port."""
    web = LoopbackWeb(pages)
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    async with server:
        yield web
