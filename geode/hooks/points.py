"""The points at which hooks decide: what each is shown, and what it may answer."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from geode.authority import Arguments, SafetyLevel


class HookPoint(StrEnum):
    """Where the host asks its hooks, in the order of a turn."""

    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    PERMISSION_REQUEST = "PermissionRequest"
    POST_TOOL_USE = "PostToolUse"
    PRE_COMPACT = "PreCompact"
    PRE_VERIFY = "PreVerify"
    POST_VERIFY = "PostVerify"
    STOP = "Stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSubmitted:
    """UserPromptSubmit: a prompt came in."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProposed:
    """PreToolUse: a call passed scope, policy and schema, and may still be blocked, rewritten or sent to approval.

    `said` is what the model wrote beside its calls in this round.
    """

    tool: str
    level: SafetyLevel
    arguments: Arguments
    round: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAsked:
    """PermissionRequest: somebody is about to be asked to approve a call in its final form.

    A hook may refuse in their place. It cannot approve: that is for a person, or for a rule of the operator.
    """

    tool: str
    level: SafetyLevel
    arguments: Arguments
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    """PostToolUse: a call ran and has its result. Context may be added; the result may be withheld from the model.

    `rounds_left` are those that the limits allow this prompt after this one; None means that nobody said.
    """

    tool: str
    level: SafetyLevel
    arguments: Arguments
    text: str
    is_error: bool
    round: int = 0
    rounds_left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """PreCompact: the request has grown to `tokens`, and old tool results are about to be left out of it."""

    tokens: int
    tokens_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifying:
    """PreVerify: an answer was proposed, and the completion check is about to look at it."""

    answer: str
    repairs_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnVerified:
    """PostVerify: the completion check spoke. A hook may be stricter, never turn a failure into a pass."""

    answer: str
    passed: bool
    reasons: tuple[str, ...]
    repairs_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Stop: the turn is about to end."""

    answer: str
    verified: bool
    continuations_left: int


HookEvent = (
    PromptSubmitted | ToolProposed | PermissionAsked | ToolEnded | Compacting | Verifying | TurnVerified | Stopping
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """No opinion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The prompt, the call or the compaction does not go ahead; the reason is told."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """The call goes ahead with these arguments, after scope, policy and schema have looked again."""

    arguments: dict[str, JsonValue]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The call goes ahead only if somebody approves it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddContext:
    """The model also reads this text, marked as the host's."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withhold:
    """The model reads this reason in place of the result. The effect stands."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The answer is sent back with this instruction, if the repair budget allows."""

    instruction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalate:
    """The answer is delivered as not verified."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """The turn goes on once more with this instruction, within the scaffold's bound."""

    instruction: str


Decision = Pass | Block | Rewrite | Ask | AddContext | Withhold | Repair | Escalate | Continue

ALLOWED: dict[HookPoint, tuple[type[Decision], ...]] = {
    HookPoint.USER_PROMPT_SUBMIT: (Pass, Block, AddContext),
    HookPoint.PRE_TOOL_USE: (Pass, Block, Rewrite, Ask),
    HookPoint.PERMISSION_REQUEST: (Pass, Block),
    HookPoint.POST_TOOL_USE: (Pass, AddContext, Withhold),
    HookPoint.PRE_COMPACT: (Pass, Block),
    HookPoint.PRE_VERIFY: (Pass, Repair, Escalate),
    HookPoint.POST_VERIFY: (Pass, Repair, Escalate),
    HookPoint.STOP: (Pass, Continue),
}
"""What a hook may answer where. Any other answer is nonsense, and counts as the hook being broken."""


class DecisionHook(Protocol):
    """A hook that decides.

    `decide` is called for each event of its `points`, within `time_limit_s`; it must await nothing that blocks the
    thread. Raising, hanging or an answer that the point does not allow makes the hook *broken* for that event, and a
    broken hook counts as the strictest answer. `snapshot` and `restore` carry its memory through the checkpoint as
    JSON (None for a hook without memory).
    """

    @property
    def name(self) -> str:
        """The name in the scaffold."""
        ...

    @property
    def points(self) -> frozenset[HookPoint]:
        """The points at which it wants to be asked."""
        ...

    @property
    def time_limit_s(self) -> float:
        """After so many seconds it is broken."""
        ...

    async def decide(self, event: HookEvent) -> Decision:
        """Decide."""
        ...

    def snapshot(self) -> JsonValue:
        """Return its memory."""
        ...

    def restore(self, memory: JsonValue) -> None:
        """Take back what `snapshot` returned."""
        ...
