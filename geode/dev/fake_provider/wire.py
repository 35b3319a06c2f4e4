"""What the wires share: one request as it came, one refusal, one planned answer, and how they are written down."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from geode.dev.fake_provider.script import Failure, HttpReply, Script, Step
from geode.llm.routes import Route

# What a stranger sent, parsed. Rules look into it key by key; one that stumbles makes the request malformed.
Body: TypeAlias = dict[str, Any]

_SEAL: Final = "fake-seal-"

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
canonical = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


class Refused(Exception):  # noqa: N818  (named by what happened)
    """The request gets this error in place of an answer."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(reply.body)
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request whose key was accepted and whose body is a JSON object.

    `seed` is drawn from the body: what is drawn for an answer is then the same for the same history, and new for
    another, also after a restart. `attempt` counts requests with this path and body, and matters only to wires that
    never answer twice alike.
    """

    route: Route
    path: str
    headers: Mapping[str, str]
    body: Body
    tokens: int
    id: str
    seed: str
    attempt: int
    script: Script

    @property
    def is_stream(self) -> bool:
        """Whether the reply is to come as server-sent events."""
        return self.body.get("stream") is True

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return str(self.body.get("model", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool on offer, as the agent sees it."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request in words that no wire owns: what the agent looks at.

    `results` pairs each call since the user last spoke with what came of it; `forced` is the tool that must be called.
    """

    prompt: str
    tools: tuple[Tool, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    forced: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply in both of its forms; the one that is not asked for is never built."""

    whole: Callable[[], str]
    events: Callable[[], list[str]]


class Wire(Protocol):
    """One way to speak to a model."""

    def refuse(self, failure: Failure, request: Request | None, *, note: str = "") -> HttpReply:
        """Return the wire's own error body."""
        ...

    def check(self, request: Request) -> None:
        """Raise `Refused` if the request breaks a rule."""
        ...

    def asked(self, body: Body) -> Asked:
        """Return what the agent needs to know."""
        ...

    def answer(self, request: Request, step: Step) -> Answer:
        """Return the reply that `step` describes, and remember what it gave out."""
        ...

    def stream_error(self, failure: Failure, request: Request, events: Sequence[str]) -> str:
        """Return the event that says, under status 200 and after `events`, that it failed."""
        ...


def words(text: str) -> frozenset[str]:
    """Return the words of `text`: a long list of names in a form that can be read."""
    return frozenset(text.split())


def drawn(prefix: str, *parts: object, length: int = 24) -> str:
    """Return an id that the same request always gets."""
    return prefix + hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:length]


def seal(text: str, hidden: str = "") -> str:
    """Return a signature over `text`, another one for other `hidden` text. A later process can check it as well."""
    salt = drawn("", hidden or text, length=12)
    return f"{_SEAL}{salt}-{drawn('', salt, text, length=32)}"


def is_seal(sealed: str, text: str) -> bool:
    """Return whether `sealed` is such a signature over `text`."""
    salt, _, digest = sealed.removeprefix(_SEAL).partition("-")
    return sealed.startswith(_SEAL) and digest == drawn("", salt, text, length=32)


def tokens_of(text: str) -> int:
    """Return a count of tokens that is near enough: four characters each."""
    return max(1, len(text) // 4)


def pieces(text: str, size: int = 24) -> list[str]:
    """Cut `text` as a stream would deliver it."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def arguments_text(arguments: Mapping[str, Any] | str) -> str:
    """Return the JSON text of a call's arguments."""
    return arguments if isinstance(arguments, str) else encode(dict(arguments))


def json_reply(status: int, body: object, headers: Mapping[str, str] | None = None) -> HttpReply:
    """Return an error body as a reply."""
    return HttpReply(status=status, body=encode(body), headers=headers or {})


def text_of(content: object) -> str:
    """Return the text of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""
