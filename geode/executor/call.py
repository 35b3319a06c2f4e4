"""One call to a tool: where in the session it stands, and what became of it."""

from dataclasses import dataclass

from geode.events import CallEnd
from geode.llm.messages import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the session a call stands: with its id, the key of its receipt.

    `said` and `rounds_left` are for the hooks: the text beside the calls, and the rounds that this prompt has after it.
    """

    turn: int
    round: int
    path: str = ""
    attempt: int = 1
    said: str = ""
    rounds_left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedCall:
    """What became of one call. `stage` names where it was refused, and is empty when it ran.

    `rule` is the operator's rule that refused it or let it go without asking, if one did.

    `contexts` are texts that hooks want the model to read beside the result.

    `lost_record` is set if the effect ran but its end could not be made durable: the session must not go on.
    """

    result: ToolResult
    end: CallEnd
    stage: str = ""
    rule: str = ""
    contexts: tuple[str, ...] = ()
    lost_record: str = ""
