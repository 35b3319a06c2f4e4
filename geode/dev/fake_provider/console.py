"""What the double says in a terminal: the variables to export, and a line for each request."""

import json
from collections.abc import Iterator
from typing import Final

from geode.dev.fake_provider.log import RecordedRequest
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.credentials import ACCESS

_ERROR_CHARS_MAX: Final = 300


def exports(double: FakeProvider) -> Iterator[str]:
    """Yield the shell lines that send every route to `double`."""
    for route, access in ACCESS.items():
        yield f"export {access.address_variable}={double.base_url(route)} {access.variable}={double.key(route)}"


def request_line(request: RecordedRequest) -> str:
    """Return one line about a request: status, path, model, its form, its size, and the error if it was refused."""
    form = "stream" if request.body.get("stream") is True else "whole"
    parts = [str(request.status), request.method, request.path, str(request.body.get("model", "-")), form]
    parts.append(f"{len(request.raw)} bytes")
    if request.attempt > 1:
        parts.append(f"attempt {request.attempt}")
    if request.error is not None:
        parts.append(" ".join(_said(request.error).split())[:_ERROR_CHARS_MAX])
    return "  ".join(json.dumps(part)[1:-1] for part in parts)  # what a client sent writes no control characters


def _said(error: str) -> str:
    try:
        body = json.loads(error)
    except ValueError:
        return error
    said = body.get("error", body.get("detail", body)) if isinstance(body, dict) else body
    return str(said.get("message", said)) if isinstance(said, dict) else str(said)
