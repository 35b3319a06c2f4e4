"""What the double is to do: a queue of steps, in words that no wire owns. Each wire says them in its own.

A step is one reply, or one failure. It is taken from the queue by a request that breaks no rule; a refused request
takes none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import ConfigDict, JsonValue, with_config

from geode.llm.routes import Route

_closed = with_config(ConfigDict(extra="forbid"))  # a script is read from a file as well


class Ending(StrEnum):
    """Why a reply ends. Each wire has its own word for it; any other string is sent as it stands.

    `PAUSE` is known to Anthropic alone; on another wire the script is refused.
    """

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    REFUSAL = "refusal"
    PAUSE = "pause"
    WINDOW = "window"
    FAILED = "failed"


_ENDINGS = frozenset(Ending)


class Failure(StrEnum):
    """A failure in place of a reply. A wire that does not have one of its own for it gives the nearest (`failures`)."""

    BAD_REQUEST = "bad_request"
    BAD_KEY = "bad_key"
    TOKEN_EXPIRED = "token_expired"  # noqa: S105
    FORBIDDEN = "forbidden"
    UNKNOWN_MODEL = "unknown_model"
    NOT_FOUND = "not_found"
    TIMEOUT = "timeout"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    CONTEXT_TOO_LONG = "context_too_long"
    CONTENT_FILTER = "content_filter"
    RATE_LIMITED = "rate_limited"
    CONCURRENCY = "concurrency"
    CREDITS = "credits"
    """OpenRouter 402 `openrouter_credits`, Z.ai 429 with 1113, Anthropic 402, OpenAI 429 `insufficient_quota`."""
    KEY_LIMIT = "key_limit"
    IN_FLIGHT_BUDGET = "in_flight_budget"
    PLAN_QUOTA = "plan_quota"
    PLAN_EXPIRED = "plan_expired"
    NOT_IN_PLAN = "not_in_plan"
    FAIR_USE = "fair_use"
    SERVER = "server"
    UNAVAILABLE = "unavailable"
    OVERLOADED = "overloaded"
    HTML_200 = "html_200"
    EMPTY_CHOICES = "empty_choices"
    """Status 200, an `error` and no choices: OpenRouter's. On Responses: status 200 and `status: failed`."""
    DROPPED = "dropped"
    """The connection is lost before the reply is whole."""


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """A reply word for word, for what no name stands for."""

    status: int
    body: str
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call. Arguments given as text are sent as they stand, broken or not; an id that is not given is drawn.

    An id stands for the reasoning before it, which has to come back with it: give none twice with another reasoning.
    """

    name: str
    arguments: Mapping[str, JsonValue] | str = field(default_factory=dict)
    call_id: str | None = None


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """Reasoning before the answer, sealed by a signature (or encrypted content) that is drawn if it is not given.

    With an empty `text` only the seal is sent. A redacted one is opaque as a whole.
    """

    text: str = ""
    seal: str | None = None
    redacted: bool = False


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the reply says of its usage. What is None is counted; input is uncached input alone, on each wire."""

    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The stream ends after so many events, without its last one; `drop` loses the connection instead of closing it."""

    after_events: int
    drop: bool = False


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamError:
    """The stream ends after so many events with an error in it, under status 200."""

    after_events: int
    failure: Failure = Failure.OVERLOADED


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One reply: reasoning, text, further blocks, calls, in this order; or a failure in its place.

    Attributes:
        refusal: text of a refusal; it sets the ending.
        blocks: content blocks (Anthropic) or output items (Responses) that are sent word for word.
        ending: drawn from the content if it is None. A string that is no `Ending` is sent as the wire's own word.
        answers: for decisions, by question id: a probability, or probabilities by label or level.
        retry_after_s: the header Retry-After of a failure.
        first_byte_ms: delay before the head of the reply.
        event_ms: delay before each event of a stream.
        cut, stream_error: what befalls a stream; a reply in one piece has neither.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    refusal: str | None = None
    blocks: tuple[Mapping[str, JsonValue], ...] = ()
    ending: Ending | str | None = None
    answers: Mapping[str, JsonValue] = field(default_factory=dict)
    figures: Figures = Figures()
    served_model: str | None = None
    failure: Failure | HttpReply | None = None
    retry_after_s: float | None = None
    first_byte_ms: int = 0
    event_ms: int = 0
    cut: Cut | None = None
    stream_error: StreamError | None = None

    @property
    def end(self) -> Ending | str:
        """The ending, from the content if none is given."""
        if self.ending is not None:
            return Ending(self.ending) if self.ending in _ENDINGS else self.ending
        if self.refusal is not None:
            return Ending.REFUSAL
        return Ending.TOOLS if self.calls else Ending.END


@_closed
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The steps, in order: those of the model first, then those of the route, then those for all.

    Attributes:
        then: what follows for ever once the steps are used up. Without it the request is refused, so that a loop that
            asks too often is seen; a script without any step leaves everything to the agent.
        context_tokens: the window of every model; None for no limit.
        models: ids that are known besides those of the wire.
        latency_ms: delay before the head of each reply.
    """

    steps: tuple[Step, ...] = ()
    by_route: Mapping[Route, tuple[Step, ...]] = field(default_factory=dict)
    by_model: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    then: Step | None = None
    context_tokens: int | None = None
    models: tuple[str, ...] = ()
    latency_ms: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the agent plays everything."""
        return not (self.steps or self.by_route or self.by_model or self.then)
