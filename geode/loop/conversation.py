"""The conversation: always well formed, digested as it grows, and shortened only at round borders.

Every check is made when a message is added, so that a request costs nothing to validate however long the history is.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from hashlib import sha256
from typing import assert_never

from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, ToolUse, encode_message
from geode.records.receipts import ReceiptState

CHARS_PER_TOKEN = 4  # a rule of thumb for English and code; a provider's own count replaces it where there is one
_ELIDED = "[an earlier result of {chars} characters was left out to save space; call the tool again if you need it]"
_LOST = "The process ended before this call's result was saved."
_ELIDE_DOWN_TO = 0.6
_WORTH_ELIDING_CHARS = 400


class IllFormed(ValueError):  # noqa: N818  (named by what is wrong)
    """A message does not fit onto the history: the provider would refuse the whole request."""


class Conversation:
    """The messages of one session.

    Tool uses are answered one to one, in order, by the message that follows them, and no call id occurs twice.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._view: list[Message] = []
        self._open: tuple[str, ...] = ()
        self._call_ids: set[str] = set()
        self._chars = 0
        self._running = sha256(b"").hexdigest()
        self.elided = 0

    @property
    def messages(self) -> Sequence[Message]:
        """The whole history."""
        return self._messages

    @property
    def awaited(self) -> tuple[str, ...]:
        """The ids of the calls that the next message must answer."""
        return self._open

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls so far."""
        return self._call_ids

    @property
    def digest(self) -> str:
        """A running SHA-256 over the encoded messages, and over how far they are shortened."""
        return sha256(f"{self._running}/{self.elided}".encode()).hexdigest() if self.elided else self._running

    @property
    def tokens(self) -> int:
        """An estimate of what the request's messages cost, from their characters."""
        return self._chars // CHARS_PER_TOKEN

    def append(self, message: Message) -> str:
        """Add `message` and return its encoded form.

        Raises:
            IllFormed: saying which rule it breaks.
        """
        self._check(message)
        body = encode_message(message)
        self._running = sha256(self._running.encode() + body.encode()).hexdigest()
        self._messages.append(message)
        self._view.append(message)
        self._chars += _chars(message)
        self._open = tuple(use.call_id for use in message.tool_uses)
        self._call_ids.update(self._open)
        return body

    def request(self, *, paused: bool = False) -> tuple[Message, ...]:
        """Return the messages to send. A model that `paused` goes on with its own last message.

        Raises:
            IllFormed: if it is not the model's turn.
        """
        if self._open or not self._view or (self._view[-1].role is not Speaker.USER and not paused):
            raise IllFormed("the history does not end in a message that a model can answer")
        return tuple(self._view)

    def shorten(self, tokens_max: int, *, spare_last_round: bool = True) -> int:
        """Leave out old tool results until the request is well below `tokens_max` tokens; return of how many rounds.

        Nothing but the text of results goes: every pair stays a pair.
        """
        if self.tokens <= tokens_max:
            return 0
        rounds = 0
        border = self._last_round_start() if spare_last_round else len(self._view)
        while self.elided < border and self.tokens > tokens_max * _ELIDE_DOWN_TO:
            rounds += self.elide_to(self.elided + 1)
        return rounds

    def elide_to(self, index: int) -> int:
        """Leave out the long results of all messages before `index`; return how many messages that shortened."""
        shortened = 0
        for at in range(self.elided, min(index, len(self._view))):
            short = _elided(self._view[at])
            shortened += short is not self._view[at]
            self._chars += _chars(short) - _chars(self._view[at])
            self._view[at] = short
        self.elided = max(self.elided, index)
        return shortened

    def _last_round_start(self) -> int:
        for at in range(len(self._view) - 1, -1, -1):
            if self._view[at].role is Speaker.ASSISTANT:
                return at
        return 0

    def _check(self, message: Message) -> None:
        if not message.blocks:
            raise IllFormed("a message needs at least one block")
        if any(not isinstance(block, ToolUse) and not block.text.strip() for block in message.blocks):
            raise IllFormed("a text or a result may not be empty")
        if message.role is Speaker.ASSISTANT and not self._messages:
            raise IllFormed("a conversation begins with the user")
        results = tuple(block.call_id for block in message.blocks if isinstance(block, ToolResult))
        uses = tuple(use.call_id for use in message.tool_uses)
        if message.role is Speaker.USER:
            if uses:
                raise IllFormed("a user message may not ask for tools")
            if results != self._open:
                raise IllFormed(f"results for {list(results)} do not answer the calls {list(self._open)}")
            if results and not isinstance(message.blocks[0], ToolResult):
                raise IllFormed("results come first in their message")
        else:
            if results or self._open:
                raise IllFormed(f"the calls {list(self._open)} must be answered before the model speaks again")
            if "" in uses or len(set(uses)) != len(uses) or not self._call_ids.isdisjoint(uses):
                raise IllFormed(f"call ids must be unique and not empty, but are {list(uses)}")


def with_unique_ids(uses: Iterable[ToolUse], taken: AbstractSet[str]) -> tuple[ToolUse, ...]:
    """Rename calls whose id is empty, in `taken` or repeated, by a stable suffix.

    Providers repeat ids, within a message and between turns, and refuse a history that does.
    """
    renamed: list[ToolUse] = []
    given: set[str] = set()
    for position, use in enumerate(uses):
        call_id, suffix = use.call_id or f"call_{position}", 1
        unique = call_id
        while unique in taken or unique in given:
            suffix += 1
            unique = f"{call_id}_{suffix}"
        given.add(unique)
        renamed.append(use if unique == use.call_id else replace(use, call_id=unique))
    return tuple(renamed)


def answers_for_lost_calls(calls: Sequence[ToolUse], receipts: Mapping[str, ReceiptState]) -> Message:
    """Return the message that answers calls whose process died before their results were saved.

    `receipts` says what is on record of the effect of a call, by its id.
    """
    blocks = tuple(
        ToolResult(call_id=call.call_id, text=f"{_LOST} {_told(receipts.get(call.call_id))}", is_error=True)
        for call in calls
    )
    return Message(role=Speaker.USER, blocks=blocks)


def _told(state: ReceiptState | None) -> str:
    match state:
        case None:
            return "No effect of it is on record; it may not have run at all."
        case ReceiptState.NOT_STARTED | ReceiptState.ADMITTED:
            return "It was not started."
        case ReceiptState.SUCCEEDED:
            return "It ran and succeeded, and is not to be repeated for its effect."
        case ReceiptState.FAILED:
            return "It failed, and had no effect."
        case ReceiptState.UNCERTAIN | ReceiptState.STARTED:
            return "Whether it took effect is unknown. Look before you do it again."
    assert_never(state)


def host_message(text: str) -> Message:
    """Return a user message in the host's name."""
    return Message(role=Speaker.USER, blocks=(TextBlock(text=text, origin=Origin.HOST),))


def tokens_of(message: Message) -> int:
    """Estimate what `message` costs."""
    return _chars(message) // CHARS_PER_TOKEN


def _chars(message: Message) -> int:
    total = 0
    for block in message.blocks:
        total += len(block.arguments) + len(block.name) if isinstance(block, ToolUse) else len(block.text)
    return total


def _elided(message: Message) -> Message:
    if message.role is Speaker.ASSISTANT:
        return message
    blocks = tuple(
        replace(block, text=_ELIDED.format(chars=len(block.text)))
        if isinstance(block, ToolResult) and len(block.text) > _WORTH_ELIDING_CHARS
        else block
        for block in message.blocks
    )
    return message if blocks == message.blocks else replace(message, blocks=blocks)
