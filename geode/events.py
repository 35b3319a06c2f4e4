"""What can be observed of a session: one frozen record an event. Nothing reads these back as state."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import ClassVar

from pydantic import JsonValue

PREVIEW_CHARS = 400


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """Return `text`, or its head with the count of what was left out."""
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit} more characters]"


class CallEnd(StrEnum):
    """The four ends of a tool call, and of the effect that it may have had."""

    NOT_STARTED = "not_started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """A session began, or came back (`resumed`)."""

    kind: ClassVar[str] = "session_opened"
    mode: str
    scaffold_id: str
    model: str
    plan_hash: str
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReceived:
    """A turn began with this prompt."""

    kind: ClassVar[str] = "prompt_received"
    turn: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """One model call ended. `latency_ms` is the provider's own time; simulated calls say so.

    A figure that the provider did not give is None.
    """

    kind: ClassVar[str] = "model_called"
    turn: int
    round: int
    stop: str
    served_model: str
    simulated: bool
    latency_ms: int
    uncached_input_tokens: int | None
    cache_write_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    text: str
    reasoning_tokens: int | None = None
    cost_origin: str = ""
    provider: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    """A request to a model gave no response, and was sent again or given up."""

    kind: ClassVar[str] = "attempt_failed"
    turn: int
    round: int
    error: str
    status: int | None
    request_id: str
    elapsed_ms: int
    waited_ms: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """A model call gave no response."""

    kind: ClassVar[str] = "model_failed"
    turn: int
    round: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """One tool call came to its end. `stage` names where it was refused, and is empty when it ran.

    `rule` is the operator's rule that refused it or let it go without asking, with its place; empty if none did.
    """

    kind: ClassVar[str] = "call_ended"
    turn: int
    round: int
    call_id: str
    tool: str
    arguments: str
    end: str
    is_error: bool
    stage: str
    elapsed_ms: float
    result: str
    result_chars: int
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecided:
    """A call that had to be approved was answered: `no`, `once`, `session`, or `stored` for one answered before."""

    kind: ClassVar[str] = "approval_decided"
    turn: int
    round: int
    call_id: str
    tool: str
    level: str
    arguments_hash: str
    answer: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDecided:
    """A hook said something else than *no opinion*. `broken` marks a guard that failed instead of deciding."""

    kind: ClassVar[str] = "hook_decided"
    turn: int
    round: int
    point: str
    hook: str
    decision: str
    reason: str
    broken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted:
    """Older tool results were left out of the request from here on."""

    kind: ClassVar[str] = "context_compacted"
    turn: int
    round: int
    elided_rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEnded:
    """A completion check was decided: accept, repair or escalate."""

    kind: ClassVar[str] = "check_ended"
    turn: int
    round: int
    passed: bool
    decision: str
    reasons: tuple[str, ...]
    repairs_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """A turn is over; `stop_reason` is a `geode.loop.turn.TurnStop`."""

    kind: ClassVar[str] = "turn_ended"
    turn: int
    stop_reason: str
    verified: bool
    rounds: int
    repairs_used: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSettled:
    """An effect whose end was unknown got one. `by` is who decided, `probe` or `operator`; `note` says why."""

    kind: ClassVar[str] = "effect_settled"
    effect: str
    tool: str
    end: str
    by: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something a reader should know that is no event of its own (a repaired history, a failing observer)."""

    kind: ClassVar[str] = "notice"
    about: str
    text: str


Event = (
    SessionOpened
    | PromptReceived
    | ModelCalled
    | AttemptFailed
    | ModelFailed
    | CallEnded
    | ApprovalDecided
    | HookDecided
    | ContextCompacted
    | CheckEnded
    | TurnEnded
    | EffectSettled
    | Notice
)


def event_fields(event: Event) -> dict[str, JsonValue]:
    """Return the fields of `event` as JSON values, its kind first."""
    body: dict[str, JsonValue] = {"kind": event.kind}
    for field in fields(event):
        value = getattr(event, field.name)
        body[field.name] = list(value) if isinstance(value, tuple) else value
    return body
